"""Overload through the cores of edge and joiner, against the full join.

No alarm is missing without a span that says why, and alarms that share a tuple with a missing one are marked.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import orjson
import pytest
from tests.fixtures.dict_state import DictState
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.messaging.topics import PLANS
from tamis.plan.json_form import encode_plan
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of
from tamis_edge.core.commit import Commit
from tamis_edge.core.rows import Batch
from tamis_edge.core.shard_run import ShardRun
from tamis_edge.core.shedding import Shedder
from tamis_joiner.core.group import Group
from tamis_joiner.core.records.envelopes import Records, split_plans

LONG = also_long(20)
SECOND = 1_000_000
REACH, INTERVAL, LEVEL = 4 * SECOND, 8 * SECOND, 11
SQL = """
CREATE STREAM a (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE CHECK (x BETWEEN 0 AND 9), WATERMARK FOR ts AS ts);
CREATE STREAM b (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE CHECK (x BETWEEN 0 AND 9), WATERMARK FOR ts AS ts);
CREATE ALERT q WITH (allow_unbounded = true) AS SELECT a.k FROM a JOIN b
  ON a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL '4' SECOND AND a.ts + INTERVAL '4' SECOND
WHERE a.x + b.x > 11;
"""
TYPES = {"k": Type.VARCHAR, "ts": Type.TIMESTAMP, "x": Type.DOUBLE}
Tuple = tuple[str, int, float]  # key, time, value
PLAN = first_plan(catalog_of(SQL), shards={"a:e/http": "a", "b:e/http": "b"})


@dataclass(frozen=True)
class Raised:
    """An alarm, the batch that raised it, and whether it is marked."""

    a: Tuple
    b: Tuple
    batch: int
    incomplete: bool


@dataclass
class Fleet:
    """Two edges and a joiner, all cores. `told`: by stream, the batch in which a span came, and the span."""

    runs: dict[str, ShardRun]
    shedders: dict[str, Shedder]
    state: DictState
    told: dict[str, list[tuple[int, int, int]]]
    raised: list[Raised]
    batches: int = 0

    @staticmethod
    def begin(seed: int) -> Fleet:
        shedders = {name: Shedder(np.random.default_rng([seed, i])) for i, name in enumerate("ab")}
        runs = {
            name: ShardRun(f"{name}:e/http", name, Commit(), PLAN, shedder)
            for name, shedder in shedders.items()
        }
        fleet = Fleet(runs, shedders, DictState(), {"a": [], "b": []}, [])
        fleet._join([Records(PLANS, 0, [encode_plan(PLAN)], np.arange(1), np.zeros(1, np.int64))])
        return fleet

    def take(self, arrived: dict[str, list[Tuple]]) -> None:
        """What came since the last batch, by stream, in order of time."""
        found = []
        for name, rows in arrived.items():
            run = self.runs[name]
            if rows:
                columns = {
                    column: Vector.from_list(list(values), TYPES[column])
                    for column, values in zip(TYPES, zip(*rows, strict=True), strict=True)
                }
                offsets = np.arange(run.next_offset, run.next_offset + len(rows))
                run.take(Batch(columns, columns["ts"].data, offsets, offsets), 0)
            found.append(self._sent(name))
        self._join(found)

    def end(self) -> None:
        """Both sources end."""
        for run in self.runs.values():
            run.finish()
            run.settle(0)
        self._join([self._sent(name) for name in self.runs])

    def _sent(self, name: str) -> Records:
        run = self.runs[name]
        for record in run.out:
            run.safe(record.token)
        if run.commit() is not None:
            run.committed(0)
        values = [record.value for record in run.out]
        run.out.clear()
        for value in values:
            shed = orjson.loads(value)["_"].get("shed")
            if shed is not None:
                self.told[name].append((self.batches + 1, *shed))
        rows = np.arange(len(values))
        return Records(f"tamis.stream.{name}.1", 0, values, rows, rows)

    def _join(self, found: list[Records]) -> None:
        self.batches += 1
        group = Group.load(0, 1, self.state)
        out = group.process(*split_plans(found), self.state, now=0, token=str(self.batches))
        assert not out.dead_letters
        for _, value in out.alarms:
            alarm = orjson.loads(value)
            a, b = ((t["k"], t["ts"], t["x"]) for t in (alarm["tuples"]["a"], alarm["tuples"]["b"]))
            self.raised.append(Raised(a, b, self.batches, alarm.get("incomplete", False)))

    def suspect(self, stream: str, one: Tuple, by: int) -> bool:
        """True if what stands for the tuple may have been shed, as far as was told by that batch."""
        return any(
            batch <= by and first - INTERVAL <= one[1] <= last + INTERVAL
            for batch, first, last in self.told[stream]
        )


@pytest.mark.parametrize("times", LONG)
def test_no_alarm_is_missing_without_a_span_that_says_why(times: int) -> None:
    r = random.Random(f"shed {SEED}")
    missing = beside = 0
    for case in range(cases(0.002) * times):
        streams: dict[str, list[Tuple]] = {
            name: [
                (r.choice("xy"), t * SECOND, float(r.randint(0, 9))) for t in range(50) if r.random() < 0.8
            ]
            for name in "ab"
        }
        fleet = Fleet.begin(case)
        begin, end = r.randint(0, 25), r.randint(26, 50)
        for now in range(0, 50, 5):
            for shedder in fleet.shedders.values():
                shedder.share = r.choice([0.3, 1.0]) if begin <= now < end and r.random() < 0.7 else 0.0
            window = range(now * SECOND, (now + 5) * SECOND)
            fleet.take({name: [row for row in rows if row[1] in window] for name, rows in streams.items()})
        fleet.end()
        full = [
            (a, b)
            for a in streams["a"]
            for b in streams["b"]
            if a[0] == b[0] and abs(a[1] - b[1]) <= REACH and a[2] + b[2] > LEVEL
        ]
        raised = {(one.a, one.b) for one in fleet.raised}
        assert raised <= set(full), (SEED, case)
        for a, b in full:
            if not any(
                one.a[0] == a[0] and abs(one.a[1] - a[1]) <= INTERVAL and abs(one.b[1] - b[1]) <= INTERVAL
                for one in fleet.raised
            ):
                missing += 1
                why = fleet.suspect("a", a, fleet.batches) or fleet.suspect("b", b, fleet.batches)
                assert why, (SEED, case, a, b, fleet.told)
            for one in fleet.raised if (a, b) not in raised else ():
                # It has one of the two tuples; the other one may have been shed.
                if (one.a == a and fleet.suspect("b", b, one.batch)) or (
                    one.b == b and fleet.suspect("a", a, one.batch)
                ):
                    beside += 1
                    assert one.incomplete, (SEED, case, a, b, one, fleet.told)
        if not any(fleet.told.values()):
            assert not any(one.incomplete for one in fleet.raised)
    assert min(missing, beside) > case


def test_without_overload_nothing_is_marked() -> None:
    fleet = Fleet.begin(1)
    fleet.take({name: [("x", t * SECOND, 6.0 + t % 2) for t in range(20)] for name in "ab"})
    fleet.end()
    assert fleet.raised
    assert not any(one.incomplete for one in fleet.raised)
