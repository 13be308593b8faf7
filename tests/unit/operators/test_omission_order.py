"""Values that round to the same DOUBLE but differ: edges compare the exact values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import orjson
from click.testing import CliRunner

from tamis.cli import main
from tamis.expressions.vectors import Vector
from tamis.omission.exact_ranks import ExactRanks, ExactValues
from tamis.operators.time_join.filter_dispatch import Dispatch
from tamis.operators.time_join.replay import retained_rows
from tamis.plan.model import TopicPlan
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of
from tamis.recordings.typed import Recording
from tamis_edge.core.rows import Batch
from tamis_edge.core.topic_run import TopicRun

SQL = """
CREATE STREAM sa (k INT KEY, ts TIMESTAMP, x DOUBLE NOT NULL, z DOUBLE NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL '0' SECOND);
CREATE STREAM sb (k INT KEY, ts TIMESTAMP, y DOUBLE NOT NULL, WATERMARK FOR ts AS ts - INTERVAL '0' SECOND);
CREATE ALERT q AS SELECT a.k FROM sa a JOIN sb b
  ON a.k = b.k AND ABS(a.ts - b.ts) <= INTERVAL '10' SECOND WHERE a.x + b.y - a.z > 12;
"""
SECOND = 1_000_000
# x - z is rounded to 991.9 in all but the last. It is that in 0, 2 and 5, less in 1 and 4, and more in 3.
READINGS = [
    (1013.4, 21.5),
    (1013.3, 21.4),
    (1013.4, 21.5),
    (1013.1, 21.2),
    (1013.3, 21.4),
    (1013.4, 21.5),
    (5.0, 3.0),
]


def planned() -> tuple[TopicPlan, Recording]:
    catalog = catalog_of(SQL)
    (topic,) = first_plan(catalog).streams[0].topics
    x, z = (Vector(np.array(column)) for column in zip(*READINGS, strict=True))
    n = len(READINGS)
    columns = {
        "k": Vector(np.ones(n, np.int64)),
        "ts": Vector(np.arange(n, dtype=np.int64) * SECOND),
        "x": x,
        "z": z,
    }
    return topic, Recording(catalog.streams["sa"], columns, np.zeros(n, np.bool_), {}, 0)


def test_the_highest_value_is_retained_though_others_are_rounded_to_it() -> None:
    topic, recording = planned()
    assert [entry.exact for entry in topic.entries] == [True]
    assert retained_rows(topic, recording).tolist() == [True, False, False, True, False, True, True]


def test_an_edge_retains_the_same() -> None:
    topic, recording = planned()
    run, dispatch = TopicRun(topic, 1), Dispatch([entry.filter for entry in topic.entries])
    run.obey(topic, dispatch.row)
    published = []
    for at in range(len(recording)):  # each in a batch of its own
        row = np.array([at])
        times = recording.columns["ts"].data[row]
        batch = Batch({name: one.take(row) for name, one in recording.columns.items()}, times, row, times)
        wanted = run.matches(batch, dispatch.over(batch.columns, 1).found)
        codes = run.keys.codes([batch.columns["k"]], 1)
        published += run.offer(row, batch, codes, wanted, 0).tolist()
        published += run.decide(int(times[0]), 0).tolist()
    published += run.end().tolist()
    assert sorted(published) == np.flatnonzero(retained_rows(topic, recording)).tolist()


def placed(
    places: ExactRanks, time: int, value: tuple[float, float], *, alive: int = -9, reading: float = 0.0
) -> float | None:
    one = np.array([1])
    exact = np.array([not reading])
    given = ExactValues(one, one * time, np.array([value[0]]), np.array([value[1]]), exact)
    found, none = places.of(given, [reading], one * alive)
    return None if none[0] else float(found[0])


def test_places_compare_as_values_do() -> None:
    r = np.random.default_rng(1)
    places = ExactRanks()
    seen: dict[tuple[float, float], float] = {}
    heads = [1.0, float(np.nextafter(1, 2)), 2.0, -1.0, 0.0, 1e-300]
    for _ in range(3_000):
        head = heads[r.integers(len(heads))]
        value = (head, float(r.integers(-9, 10)) * head * 1e-18)
        place = placed(places, 0, value)
        assert place is not None and seen.setdefault(value, place) == place
    ordered = [seen[value] for value in sorted(seen)]
    assert ordered == sorted(set(ordered))
    assert len(ordered) == 5 * 19 + 1


def test_what_can_not_be_told_apart_has_no_place() -> None:
    places, value = ExactRanks(), (3.0, 1e-17)
    found = [placed(places, time, value, reading=reading) for time, reading in ((0, 1.0), (1, 2.0), (2, 1.0))]
    assert found == [3.0, None, 3.0]
    # The first readings can't stand for anything any more.
    later = [placed(places, 9, value, alive=3, reading=reading) for reading in (2.0, 1.0)]
    assert later == [3.0, None]


def test_an_alarm_of_rounding_alone_is_counted_apart(tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text(SQL)
    (tmp_path / "sa.csv").write_text("k,ts,x,z\n1,0,3,2\n1,1000000,1e17,1e17\n1,2000000,3,2\n")
    (tmp_path / "sb.csv").write_text("k,ts,y\n1,1000000,10\n")
    inputs = [arg for name in ("sa", "sb") for arg in ("--input", f"{name}={tmp_path / name}.csv")]
    result = CliRunner().invoke(main, ["verify", str(tmp_path / "q.sql"), *inputs, "--json"])
    assert result.exit_code == 0
    (found,) = orjson.loads(result.stdout)
    counted = {name: found[name] for name in ("reference_alarms", "missed", "extra", "at_threshold")}
    assert counted == {"reference_alarms": 1, "missed": 0, "extra": 0, "at_threshold": 1}
