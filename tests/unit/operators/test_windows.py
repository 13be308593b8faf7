"""Windows from SQL to the alarm: plans, entries, verdicts, rows, identities and what the joiner keeps."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson
import pytest
from click.testing import CliRunner
from tests.unit.certificates.catalogs import TWO

from tamis.cli import main
from tamis.declarations.definitions import Window
from tamis.errors import InputError
from tamis.expressions.nodes import Column, Type
from tamis.expressions.vectors import Vector
from tamis.omission.window_batch import panes_in, retained_in_windows
from tamis.omission.window_stream import WindowState
from tamis.operators.time_join.filter_dispatch import Dispatch
from tamis.plan.json_form import decode_plan, encode_plan
from tamis.plan.model import Definition, Plan
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of
from tamis_alerts.core.rules import rules_of
from tamis_joiner.core.alarms import join_alarms
from tamis_joiner.core.compiled_plan import CompiledJoin, retention_groups
from tamis_joiner.core.frontiers import Frontiers
from tamis_joiner.core.records.envelopes import ProgressRecord
from tamis_joiner.core.shed_spans import ShedSpans
from tamis_joiner.core.tuples.filter_bitmaps import FilterBitmaps, PassingTuples
from tamis_joiner.core.tuples.retention import needed
from tamis_joiner.core.tuples.stored_tuples import StoredTuples
from tamis_registry.core.plan.retirement import span

SECOND = 1_000_000
MINUTE = 60 * SECOND


def alert(name: str, windows: str, condition: str, more: str = "") -> str:
    a, b = (windows.format(stream) for stream in "ab")
    return (
        f"CREATE ALERT {name} {more} AS SELECT a.k, b.window_start, a.window_end AS until"
        f" FROM {a} AS a JOIN {b} AS b ON a.k = b.k AND a.window_start = b.window_start WHERE {condition};"
    )


HOP = "HOP({}, ts, INTERVAL '20' SECOND, INTERVAL '1' MINUTE)"
TUMBLE = "TUMBLE({}, ts, INTERVAL '1' MINUTE)"


def plan(*alerts: str) -> Plan:
    return first_plan(catalog_of(TWO, *alerts), shards={"a:e/f": "a", "b:e/f": "b"})


def test_a_plan_with_windows_survives_and_one_without_has_no_word_of_them() -> None:
    hopping = plan(alert("q", HOP, "a.x + b.x > 3"))
    assert hopping.definitions[0].window == Window(20 * SECOND, MINUTE)
    data = encode_plan(hopping)
    assert decode_plan(data) == hopping
    assert b'"window"' not in encode_plan(plan("CREATE ALERT q AS SELECT k FROM a WHERE x > 3"))
    for wrong in (b'{"slide":7,"size":60}', b'{"slide":0,"size":0}', b"3", b'{"slide":7}', b"null"):
        with pytest.raises(InputError, match="window"):
            decode_plan(data.replace(b'{"slide":20000000,"size":60000000}', wrong))


def test_a_plan_has_offsets_only_if_a_query_needs_them() -> None:
    shifted = plan(alert("q", "TUMBLE({}, ts, INTERVAL '1' MINUTE, INTERVAL '-8' SECOND)", "a.x + b.x > 3"))
    assert shifted.definitions[0].window == Window(MINUTE, MINUTE, 52 * SECOND)
    data = encode_plan(shifted)
    assert decode_plan(data) == shifted
    assert b'"offset":52000000' in data and b'"cumulative"' not in data
    with pytest.raises(InputError, match="offset less than the distance"):
        decode_plan(data.replace(b'"offset":52000000', b'"offset":60000000'))
    assert b'"offset"' not in encode_plan(plan(alert("q", TUMBLE, "a.x + b.x > 3")))


def test_entries_of_equal_windows_are_one_and_others_are_not() -> None:
    made = plan(
        alert("p", HOP, "a.x + b.x > 3"),
        alert("q", HOP, "a.x + b.x < 1", "WITH (max_delay = '5s')"),
        alert("r", TUMBLE, "a.x + b.x > 3"),
        "CREATE ALERT s AS SELECT a.k FROM a JOIN b ON a.k = b.k AND a.x + b.x > 3"
        " AND a.ts - b.ts BETWEEN INTERVAL '-30' SECOND AND INTERVAL '30' SECOND;",
    )
    (topic,) = made.streams[0].topics
    assert [(e.interval, e.sides, e.max_delay, e.window) for e in topic.entries] == [
        (MINUTE, "both", 5 * SECOND, Window(20 * SECOND, MINUTE)),
        (MINUTE, "above", None, Window(MINUTE, MINUTE)),
        (MINUTE, "above", None, None),
    ]
    assert [d.window for d in made.definitions] == [
        Window(20 * SECOND, MINUTE),
        Window(20 * SECOND, MINUTE),
        Window(MINUTE, MINUTE),
        None,
    ]
    assert "window_start" not in topic.columns
    assert [span(d) for d in made.definitions] == [MINUTE - 1, MINUTE - 1, MINUTE - 1, 30 * SECOND]


def test_bounds_besides_windows_leave_nothing_to_omit() -> None:
    (definition,) = plan(alert("q", TUMBLE, "a.x + b.x > 3 AND a.ts > b.ts")).definitions
    assert [source.interval for source in definition.inputs] == [0, 0]
    assert definition.window == Window(MINUTE, MINUTE)


def test_the_verdict_says_which_windows(tmp_path: Path) -> None:
    file = tmp_path / "q.sql"
    file.write_text(TWO + alert("q", HOP, "a.x + b.x > 3") + alert("r", TUMBLE, "abs(a.x - b.x) > 3"))
    text = CliRunner().invoke(main, ["explain", "--verbose", str(file)]).stdout
    for line in (
        "a: a tuple that is the highest of no window is omitted\n    windows of 60 s every 20 s\n    proo",
        "b: a tuple that is neither the highest nor the lowest of its window is omitted\n    windows of 60 s",
        "rate(a) over 4321.999999 s",
    ):
        assert line in text, text
    document = orjson.loads(CliRunner().invoke(main, ["explain", str(file), "--json"]).stdout)
    streams = [source for query in document["queries"] for source in query["streams"]]
    assert [source["window"] for source in streams] == [{"slide": 20 * SECOND, "size": MINUTE}] * 2 + [
        {"slide": MINUTE, "size": MINUTE}
    ] * 2
    assert {source["omission"]["interval"] for source in streams} == {MINUTE}


def test_run_writes_a_row_for_each_window(tmp_path: Path) -> None:
    sql, left, right = tmp_path / "q.sql", tmp_path / "a.csv", tmp_path / "b.csv"
    sql.write_text(TWO.replace("pos DOUBLE CHECK (pos BETWEEN 0.1 AND 100)", "pos DOUBLE"))
    sql.write_text(sql.read_text() + alert("q", HOP, "a.x + b.x > 3"))
    streams = catalog_of(TWO).streams
    for path, stream, time in ((left, "a", "1969-12-31T23:59:50Z"), (right, "b", "1970-01-01T00:00:05Z")):
        names = [column.name for column in streams[stream].columns]
        values = {"k": "1", "ts": time, "x": "2"}
        path.write_text(",".join(names) + "\n" + ",".join(values.get(name, "") for name in names) + "\n")
    inputs = ["--input", f"a={left}", "--input", f"b={right}"]
    result = CliRunner().invoke(main, ["run", str(sql), *inputs])
    assert result.stdout == (
        "k,window_start,until\n"
        "1,1969-12-31T23:59:20Z,1970-01-01T00:00:20Z\n"
        "1,1969-12-31T23:59:40Z,1970-01-01T00:00:40Z\n"
    ), result.output
    verified = CliRunner().invoke(main, ["verify", str(sql), *inputs, "--json"])
    (verdict,) = orjson.loads(verified.stdout)
    assert (verdict["reference_alarms"], verdict["alarms"], verdict["missed"]) == (2, 2, 0)


def test_identities_are_remembered_for_as_long_as_tuples_of_a_window_may_be_apart() -> None:
    rule = rules_of(plan(alert("q", HOP, "a.x + b.x > 3", "WITH (gap = '5s')")))["q"]
    assert (rule.gap, rule.memory) == (5 * SECOND + 2 * MINUTE, 4 * MINUTE)


def live(times: list[int]) -> StoredTuples:
    n = len(times)
    at = np.array(times, np.int64)
    columns = {
        "k": Vector(np.ones(n, np.int64), None),
        "ts": Vector(at, None),
        "x": Vector.from_list([5.0] * n, Type.DOUBLE),
    }
    zeros, yes = np.zeros(n, np.int64), np.ones(n, np.bool_)
    return StoredTuples(at, zeros, zeros + 1, yes, columns, ~yes, zeros, zeros - 1)


def test_an_alarm_of_each_window_has_an_identity_of_its_own() -> None:
    (definition,) = plan(alert("q", HOP, "a.x + b.x > 3")).definitions
    both = {"a": live([70 * SECOND]), "b": live([75 * SECOND, 90 * SECOND])}
    rows = (np.array([0, 0]), np.array([0, 1]))
    found = [orjson.loads(value) for _, value in join_alarms(definition, 1, both, rows, ShedSpans())]
    assert [(a["tuples"]["b"]["ts"] // SECOND, a["window"]["start"] // SECOND) for a in found] == [
        (75, 20),
        (75, 40),
        (75, 60),
        (90, 40),
        (90, 60),
    ]
    assert all(a["window"]["end"] - a["window"]["start"] == MINUTE for a in found)
    assert all(a["row"]["window_start"] == a["window"]["start"] for a in found)
    assert all(a["row"]["until"] == a["window"]["end"] for a in found)
    assert all("window_start" not in a["tuples"]["b"] for a in found)
    assert len({a["id"] for a in found}) == len(found)
    again = [
        orjson.loads(value)
        for _, value in join_alarms(replace(definition, version=9), 9, both, rows, ShedSpans())
    ]
    assert [a["id"] for a in again] == [a["id"] for a in found]


def frontiers(made: Plan, reached: int) -> Frontiers:
    found = Frontiers()
    found.obey(made)
    for source in made.definitions[0].inputs:
        found.take(source.topic, ProgressRecord("progress", f"{source.stream}:e/f", 1, reached), {})
    found.advance({})
    return found


def test_a_tuple_is_kept_exactly_until_the_end_of_its_last_window() -> None:
    r = random.Random(4)
    for _ in range(30):
        slide = r.randint(1, 4)
        window = Window(slide, slide * r.randint(1, 4))
        made = plan(alert("q", HOP, "a.x + b.x > 3"))
        definition: Definition = replace(made.definitions[0], window=window)
        made = replace(made, definitions=(definition,))
        topic = definition.inputs[0].topic
        times = sorted(r.randint(-20, 20) for _ in range(6))
        reached = r.randint(-20, 20)
        bitmaps = FilterBitmaps(Dispatch([None]))
        kept, _, _ = needed(
            PassingTuples(bitmaps, bitmaps.evaluate(live(times))),
            retention_groups([CompiledJoin(definition, tuple((s.topic, 0) for s in definition.inputs))])[
                topic
            ],
            frontiers(made, reached),
        )
        for time, keep in zip(times, kept.tolist(), strict=True):
            windows = [s for s in range(-60, 60) if s % slide == 0 and s <= time < s + window.size]
            partners = {t for s in windows for t in range(s, s + window.size)}
            assert keep == any(t >= reached for t in partners), (window, time, reached)


def test_what_is_no_window_is_refused() -> None:
    for slide, size in ((0, 1), (2, 1), (2, 3), (-1, 1), (2**63, 2**63)):
        with pytest.raises(InputError, match="windows of size"):
            panes_in(slide, size)
    with pytest.raises(InputError, match="unknown sides"):
        WindowState(1, 2, "up")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="NaN"):
        retained_in_windows([0], [0], [float("nan")], 1, 2)
    with pytest.raises(InputError, match="differ in length"):
        WindowState(1, 2).offer([0], [0, 1], [0.0], [0], 0)
    ends = [-(2**63), 2**63 - 1]
    for delay in (None, 0, 5, 10**30):
        kept = retained_in_windows([0, 0], ends, [1.0, 2.0], 10, 60, max_delay=delay)
        assert kept.tolist() == [True, True]
    assert retained_in_windows([], [], [], 10, 60).tolist() == []


def test_columns_of_windows_are_timestamps() -> None:
    (definition,) = plan(alert("q", HOP, "a.x + b.x > 3")).definitions
    assert dict(definition.select)["until"] == Column("a", "window_end", Type.TIMESTAMP)
