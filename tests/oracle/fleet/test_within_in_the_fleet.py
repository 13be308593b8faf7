"""Alerts with `within` through the cores of edge and joiner, against the alarms of all readings.

The alarms of all readings are computed reading by reading, in plain Python. Each closed span of the length of
`within` that has such an alarm must have one of Tamis, also for late readings, readings without a key, and
after crashes of edge and joiner.
"""

from __future__ import annotations

import random
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import NamedTuple

import orjson
import pytest
from tests.oracle.fleet.test_windows_in_the_fleet import Fleet
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.expressions import python_functions
from tamis.plan.model import Plan
from tamis.planning.build import first_plan
from tamis.query.model import Catalog
from tamis.query.parse import catalog_of
from tamis.recordings.typed import Recording, read_recording

Alarm = tuple[str | None, int]
"""Key and time."""


class Row(NamedTuple):
    """One reading."""

    machine: str | None
    ts: int
    x: float | None
    y: float
    site: str


STREAM = """
CREATE STREAM load (machine VARCHAR KEY, ts TIMESTAMP, x DOUBLE CHECK (x BETWEEN -50 AND 50),
  y DOUBLE, site VARCHAR, WATERMARK FOR ts AS ts - INTERVAL '0.000003' SECOND);
CREATE STREAM busy AS SELECT machine, ts, x * 2 AS double, y FROM load WHERE y > 1;
CREATE FUNCTION wear(load DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS 'wear' MONOTONE INCREASING;
CREATE FUNCTION bowl(load DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS 'bowl' QUASICONVEX;
CREATE FUNCTION steps(load DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS 'bowl';
"""


def _wear(x: float) -> float:
    return x // 2 * 2 + x / 10


def _bowl(x: float) -> float:
    return abs(x - 5) // 1


# Conditions over the stream, or over the derived stream, with their meaning for x, y and site. A NULL is NaN,
# with which every comparison is false, too.
CONDITIONS: list[tuple[str, str, Callable[[float, float, str], bool]]] = [
    ("load", "wear(x) > 4", lambda x, y, site: _wear(x) > 4),
    ("load", "wear(x) <= -3 AND y > 1", lambda x, y, site: _wear(x) <= -3 and y > 1),
    ("load", "bowl(x) >= 6", lambda x, y, site: _bowl(x) >= 6),
    ("load", "wear(x) > 4 AND bowl(x) >= 7", lambda x, y, site: _wear(x) > 4 and _bowl(x) >= 7),
    ("load", "wear(x) > 6 OR site = 'north'", lambda x, y, site: _wear(x) > 6 or site == "north"),
    ("load", "steps(x) >= 6", lambda x, y, site: _bowl(x) >= 6),
    ("load", "x > 3", lambda x, y, site: x > 3),
    ("busy", "wear(double) > 4", lambda x, y, site: y > 1 and _wear(2 * x) > 4),
]
LONG = also_long(60)
FIRST = SEED * 10_000_000 + 9_000_000


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(python_functions.SETTING, "tests.fixtures.installed")
    python_functions.clear_caches()
    yield
    python_functions.clear_caches()


class _Case:
    """Random readings, and alerts over them with random spans."""

    def __init__(self, seed: int) -> None:
        r = self.random = random.Random(seed)
        self.chosen = r.sample(range(len(CONDITIONS)), r.choice((1, 1, 2)))
        self.within = {f"q{i}": r.choice((1, 2, 5, 10, 20)) for i in self.chosen}
        delay = r.choice(("", "", ", max_delay = '3 us'"))
        self.sql = STREAM + "".join(
            f"CREATE ALERT q{i} WITH (within = '{self.within[f'q{i}']} us'{delay}) AS"
            f" SELECT machine, ts FROM {CONDITIONS[i][0]} WHERE {CONDITIONS[i][1]};\n"
            for i in self.chosen
        )
        at, x, step = 1_000, 0.0, r.choice((0.3, 2.0, 10.0))
        self.rows: list[Row] = []
        for _ in range(r.choice((20, 60, 150))):
            at += r.choice((0, 1, 1, 2, 3))
            x = r.choice((x, max(-49.0, min(49.0, x + r.gauss(0, step)))))
            late = r.choice((0, 0, 0, 2, 4, 15))
            machine, site = r.choice(("a", "a", "b", None)), r.choice(("north", "south", "south"))
            value = r.choice((x, x, x, float(round(x)), None))
            self.rows.append(Row(machine, at - late, value, r.uniform(0, 3), site))

    def loaded(self, folder: Path) -> tuple[Plan, dict[str, Recording]]:
        parsed = catalog_of(self.sql)
        path = folder / "load.ndjson"
        path.write_bytes(b"\n".join(orjson.dumps(row._asdict()) for row in self.rows))
        recordings = {"load": read_recording(parsed.streams["load"], [str(path)], as_arrived=True)}
        catalog = Catalog(parsed.streams, {}, parsed.functions, parsed.alerts)
        return first_plan(catalog, shards={"load:e/file": "load"}), recordings

    def without_omission(self, alert: str) -> set[Alarm]:
        """The alarms of all readings."""
        condition = CONDITIONS[int(alert[1:])][2]
        return {
            (row.machine, row.ts)
            for row in self.rows
            if condition(nan if row.x is None else row.x, row.y, row.site)
        }


def _alarms(case: _Case, plan: Plan, recordings: dict[str, Recording]) -> dict[str, set[Alarm]]:
    fleet = Fleet(plan, recordings, case.random)
    fleet.play()
    found: dict[str, set[Alarm]] = defaultdict(set)
    for alarm in fleet.alarms.values():
        (one,) = alarm["tuples"].values()
        found[alarm["alert"]].add((one["machine"], one["ts"]))
    return found


def _spans_without(expected: set[Alarm], raised: set[Alarm], within: int) -> list[Alarm]:
    """The expected alarms around which there is a closed span of this length without an alarm."""
    times: dict[str | None, list[int]] = defaultdict(list)
    for key, time in sorted(raised, key=lambda one: one[1]):
        times[key].append(time)
    lost = []
    for key, time in expected:
        mine = times[key]
        after = bisect_left(mine, time)
        before = bisect_right(mine, time) - 1
        if before < 0 or after == len(mine) or mine[after] - mine[before] > within:
            lost.append((key, time))
    return lost


@pytest.mark.parametrize("times", LONG)
def test_every_span_with_an_alarm_has_one_of_tamis(times: int, tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for seed in range(FIRST, FIRST + cases(0.0008) * times):
        case = _Case(seed)
        plan, recordings = case.loaded(tmp_path)
        raised = _alarms(case, plan, recordings)
        for alert, within in case.within.items():
            expected, mine = case.without_omission(alert), raised[alert]
            assert mine <= expected, f"seed {seed}: {alert}\n{case.sql}"
            assert not _spans_without(expected, mine, within), f"seed {seed}: {alert}\n{case.sql}"
            seen["alarms"] += len(expected) > 0
            seen["fewer"] += len(mine) < len(expected)
        seen["files"] += 1
    assert min(seen["alarms"], seen["fewer"]) >= seen["files"] // 4, seen


def test_longer_spans_are_found_out(tmp_path: Path) -> None:
    lost = 0
    for seed in range(FIRST, FIRST + 10):
        case = _Case(seed)
        plan, recordings = case.loaded(tmp_path)
        (stream,) = plan.streams
        topics = tuple(
            replace(topic, entries=tuple(replace(e, interval=2 * e.interval + 1) for e in topic.entries))
            for topic in stream.topics
        )
        raised = _alarms(case, replace(plan, streams=(replace(stream, topics=topics),)), recordings)
        for alert, within in case.within.items():
            lost += len(_spans_without(case.without_omission(alert), raised[alert], within))
    assert lost > 0
