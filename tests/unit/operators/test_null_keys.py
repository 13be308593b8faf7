"""A NULL key joins nothing, but a reading without a key can still be an alarm of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson
from click.testing import CliRunner

from tamis.cli import main
from tamis.expressions.nodes import Call, Column, Literal, Type
from tamis.expressions.vectors import Vector
from tamis.operators.time_join.filter_dispatch import Dispatch
from tamis.plan.model import Entry, TopicPlan
from tamis_edge.core.rows import Batch
from tamis_edge.core.topic_run import TopicRun

SQL = """
CREATE STREAM air (station VARCHAR KEY, ts TIMESTAMP, temp DOUBLE,
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);
CREATE ALERT hot AS SELECT ts, temp FROM air WHERE temp > 5;
CREATE ALERT steep AS SELECT a.ts FROM air a JOIN air b
  ON a.station = b.station AND ABS(a.ts - b.ts) <= INTERVAL '1' SECOND WHERE a.temp - b.temp > 1;
"""


def verified(sql: str, tmp_path: Path) -> dict[str, tuple[int, int]]:
    """The numbers of alarms without and with Tamis, by alert."""
    (tmp_path / "q.sql").write_text(sql)
    (tmp_path / "air.csv").write_text("station,ts,temp\nk,1,6\n,2,7\n,3,9\n,4,8\n")
    arguments = ["verify", str(tmp_path / "q.sql"), "--input", f"air={tmp_path / 'air.csv'}", "--json"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0
    return {v["query"]: (v["reference_alarms"], v["alarms"]) for v in orjson.loads(result.stdout)}


def test_verify_finds_the_alarm_of_a_reading_without_key(tmp_path: Path) -> None:
    found = verified(SQL, tmp_path)
    assert found == {"hot": (4, 4), "steep": (0, 0)}


def test_readings_without_key_stand_for_each_other_where_one_alarm_within_a_span_is_enough(
    tmp_path: Path,
) -> None:
    stream = SQL.split("CREATE ALERT", maxsplit=1)[0]
    thinned = "CREATE ALERT q WITH (within = '1 second') AS SELECT ts, temp FROM air WHERE temp > 5;"
    assert verified(stream + thinned, tmp_path) == {"q": (4, 3)}


def test_an_edge_sends_it_where_there_is_no_omission() -> None:
    value = Column("", "temp", Type.DOUBLE)
    warm = Call(">", (value, Literal(5.0, Type.DOUBLE)), Type.BOOLEAN)
    plain = Entry(warm, ("station",), None, 0, "both", None, 1)
    omitting = Entry(None, ("station",), value, 1_000_000, "above", None, 1)
    alone = replace(omitting, null_keys=True)
    topic = TopicPlan("tamis.stream.air.1", ("station",), ("temp",), (plain, omitting, alone))
    times = np.arange(3, dtype=np.int64)
    columns = {
        "station": Vector.from_list(["k", None, None], Type.VARCHAR),
        "temp": Vector.from_list([6.0, 7.0, 1.0], Type.DOUBLE),
    }
    run = TopicRun(topic, 1)
    dispatch = Dispatch([warm, None])
    run.obey(topic, dispatch.row)
    batch = Batch(columns, times, times, times)
    wanted = run.matches(batch, dispatch.over(columns, 3).found)
    assert wanted.published.tolist() == [True, True, False]
    assert [mask.tolist() for mask in wanted.offered] == [[True, False, False], [True, True, True]]
