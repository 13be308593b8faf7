"""The bound on the link against shards that read at random: no minute has more records or rows than it says.

A shard's run draws and sends cuts by its policy. Its readings come within the stream's delay after their
times, at the declared rate, apart from late ones; the records of a cut are safe after a random time. All
minutes that begin with a cut are checked, since any other minute has no more records than one of these.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import orjson
import pytest
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.operators.windows import cut_policy
from tamis.plan.model import PaneGrid, Plan
from tamis.planning.build import first_plan
from tamis.planning.link import bound as link_bound
from tamis.planning.link.bound import LinkBound, PaneEntries, longest_wait
from tamis.query.model import Catalog
from tamis.query.parse import catalog_of
from tamis_edge.core.commit import Commit
from tamis_edge.core.rows import Batch
from tamis_edge.core.shard_run import ShardRun

SHARD = "air:e/http"
BORN = 1_760_000_000_000_000
SECOND = 1_000_000
MINUTE = 60 * SECOND
AGGREGATES = ("count(*)", "sum(v)", "max(v), min(v)", "median(v)", "stddev_pop(v), arg_max(v, ts)", "max(s)")
# Gaps between readings, and between a boundary and its cut, are at most a second.
SAFE_WITHIN = SECOND // 2


@dataclass(frozen=True)
class Case:
    """A stream of `keys` keys with a reading of each in `per` at most, and queries with windows."""

    delay: int
    keys: int
    per: int
    slides: tuple[int, ...]
    aggregates: str
    by_key: bool
    partitions: int
    late: float
    minutes: int

    @staticmethod
    def drawn(r: random.Random) -> Case:
        slides = tuple(r.choice((5, 7, 10, 20, 30, 40, 60, 90)) for _ in range(r.choice((1, 1, 2, 3))))
        # Many keys with few readings in turn, or a few with many.
        keys, per = (
            (40, 20 * SECOND) if r.random() < 0.2 else (r.choice((1, 2, 5, 12)), SECOND // r.choice((2, 4)))
        )
        return Case(
            r.choice((0, 1, 5, 20)) * SECOND,
            keys,
            per,
            slides,
            r.choice(AGGREGATES),
            r.random() < 0.7,
            r.choice((1, 3, 8)),
            r.choice((0.0, 0.0, 0.01, 0.2)),
            r.choice((4, 13, 22)),
        )

    def catalog(self) -> Catalog:
        by = ", k" if self.by_key else ""
        alerts = "".join(
            f"CREATE ALERT q{n} AS SELECT window_end{by}, {self.aggregates} "
            f"FROM TUMBLE(air, ts, INTERVAL '{slide}' SECOND) GROUP BY window_end{by};"
            for n, slide in enumerate(self.slides)
        )
        return catalog_of(
            "CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, v DOUBLE, s VARCHAR,"
            f" WATERMARK FOR ts AS ts - INTERVAL '{self.delay // SECOND}' SECOND)"
            f" WITH (keys = {self.keys},"
            f" rate = '{max(SECOND // self.per, 1)}/{max(self.per // SECOND, 1)}s');",
            alerts,
        )

    def readings(self, r: random.Random) -> list[tuple[int, int, str]]:
        """Arrival, event time and key, in order of arrival."""
        found = []
        for number in range(self.keys):
            time = BORN + number * self.per // self.keys
            slow = number > 0 and self.per < SECOND and r.random() < 0.4
            while time < BORN + self.minutes * MINUTE:
                # There is a reading in each second, so that the watermark goes on.
                time += r.randrange(self.per, 60 * SECOND if slow else max(self.per + 1, SECOND))
                found.append((time + r.randint(0, self.delay), time, f"k{number}"))
                if r.random() < self.late:
                    later = time + self.delay + 1 + r.randrange(2 * MINUTE)
                    found.append((later, time, f"k{number}"))
        return sorted(found)


@dataclass(frozen=True)
class Cut:
    """The records of a cut, their rows and their bytes, which were sent at a time by the clock."""

    at: int
    records: int
    rows: int
    bytes: int


@dataclass
class Shard:
    """A shard's run, with what it has sent and held."""

    plan: Plan
    r: random.Random
    cuts: list[Cut]
    safe_within: int = SAFE_WITHIN
    ends: bool = False
    open_rows: int = 0
    memory: int = 0
    waited: int = 0

    def read(self, readings: list[tuple[int, int, str]], until: int) -> None:
        run = ShardRun(SHARD, "air", Commit(), self.plan, now=BORN)
        waiting: list[tuple[int, int]] = []  # when records are safe, and their tokens
        taken = 0
        for now in range(BORN, until, cut_policy.COMMIT_EVERY):
            first = taken
            while taken < len(readings) and readings[taken][0] <= now:
                taken += 1
            if taken > first:
                run.take(_batch(first, readings[first:taken]), now)
            run.safe(*(token for at, token in waiting if at <= now))
            waiting = [(at, token) for at, token in waiting if at > now]
            self.open_rows = max(self.open_rows, run.partials.rows)
            self.memory = max(self.memory, run.partials.bytes)
            if run.commit() is not None:
                run.committed(now)
            if run.durable.done < taken:
                self.waited = max(self.waited, now - readings[run.durable.done][0])
            waiting += self._sent(run, now)
            if self.ends and taken == len(readings):
                run.finish()
                self.ends = False

    def _sent(self, run: ShardRun, now: int) -> Iterator[tuple[int, int]]:
        documents: list[dict[str, Any]] = []
        size = 0
        while run.out:
            record = run.out.popleft()
            document = orjson.loads(record.value)
            if document["_"].get("kind") == "cut":
                documents.append(document)
                size += len(record.value)
            yield now + self.r.randint(0, self.safe_within), record.token
        if documents:
            self.cuts.append(Cut(now, len(documents), sum(len(one["panes"]) for one in documents), size))


def value_of(time: int, key: str) -> float:
    """The value of a reading."""
    return float((time // 1_000 + len(key)) % 997)


def _batch(first: int, rows: list[tuple[int, int, str]]) -> Batch:
    arrivals, times, keys = (list(column) for column in zip(*rows, strict=True))
    values = [value_of(time, key) for time, key in zip(times, keys, strict=True)]
    columns = {
        "k": Vector.from_list(keys, Type.VARCHAR),
        "ts": Vector.from_list(times, Type.TIMESTAMP),
        "v": Vector.from_list(values, Type.DOUBLE),
        "s": Vector.from_list([f"text {value}" for value in values], Type.VARCHAR),
    }
    return Batch(columns, columns["ts"].data, np.arange(first, first + len(rows)), np.array(arrivals))


def bound_of(case: Case, catalog: Catalog, plan: Plan) -> LinkBound:
    """The bound of the topic that all queries share."""
    (stream,) = plan.streams
    (topic,) = stream.topics
    assert topic.partials is not None
    assert len(topic.partials.grids) == len(case.slides)
    groups = case.keys if case.by_key else 1
    a_pane = min(case.slides) * SECOND
    readings = case.keys * -(-a_pane // case.per)
    entries = PaneEntries(groups, readings if case.aggregates == "median(v)" else 0)
    return link_bound.link_bound(
        topic.partials, catalog.streams["air"], entries, case.partitions if case.by_key else 1
    )


def bound_grids(plan: Plan) -> tuple[PaneGrid, ...]:
    """The grids of the topic."""
    ((topic,),) = [stream.topics for stream in plan.streams]
    assert topic.partials is not None
    return topic.partials.grids


def exceeded(case: Case, r: random.Random) -> tuple[list[str], list[float]]:
    """What exceeded the bound, and the greatest parts of the bound on records and rows that were reached."""
    catalog = case.catalog()
    plan = first_plan(catalog, partitions=case.partitions, shards={SHARD: "air"})
    bound, readings = bound_of(case, catalog, plan), case.readings(r)
    late = np.array([arrival for arrival, time, _ in readings if arrival > time + case.delay], np.int64)
    shard = Shard(plan, r, [])
    shard.read(readings, BORN + case.minutes * MINUTE)
    found, reached = [], [0.0, 0.0]
    waiting = len(late)  # so many late readings can wait beside the open rows, at most
    if shard.open_rows > bound.open_rows + waiting:
        found.append("open rows")
    if not waiting and shard.memory > bound.memory:
        found.append("memory")
    # Commits are half a second apart.
    if shard.waited > longest_wait(bound_grids(plan), case.delay):
        found.append(f"a wait of {shard.waited}")
    for begin in shard.cuts:
        minute = [one for one in shard.cuts if begin.at <= one.at < begin.at + MINUTE]
        span = np.searchsorted(late, [begin.at - link_bound.LAG, begin.at + MINUTE])
        more = int(span[1] - span[0])
        for number, (name, count, most) in enumerate(
            (
                ("records", sum(one.records for one in minute), bound.most.records),
                ("rows", sum(one.rows for one in minute), bound.most.rows),
            )
        ):
            if count > most + more:
                found.append(f"{name}: {count} of {most} + {more}")
            reached[number] = max(reached[number], count / (most + more))
    return found, reached


# 24 cases, and 960 in a search for unsoundness.
@pytest.mark.parametrize("times", also_long(40))
def test_no_minute_has_more_records_or_rows_than_the_bound(times: int) -> None:
    best = [0.0, 0.0]
    for number in range(cases(0.001) * times):
        r = random.Random(SEED * 7_919 + number)
        case = Case.drawn(r)
        found, reached = exceeded(case, r)
        assert not found, (case, found)
        best = [max(pair) for pair in zip(best, reached, strict=True)]
    # The bound isn't idle.
    assert best[0] > 0.6, best
    assert best[1] > 0.6, best


def test_small_records_and_full_panes_are_in_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cut_policy, "PART_BYTES", 30_000)
    for module in (cut_policy, link_bound):
        monkeypatch.setattr(module, "MOST_ROWS", 8)
    for number in range(cases(0.0004)):
        r = random.Random(SEED * 104_729 + number)
        case = Case.drawn(r)
        found, _ = exceeded(case, r)
        assert not found, (case, found)


def test_full_cuts_for_separate_values_are_in_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (cut_policy, link_bound):
        monkeypatch.setattr(module, "MOST_SEPARATE_BYTES", 110_000)
    monkeypatch.setattr(link_bound, "_BATCH", 100)
    for number in range(cases(0.00017)):
        r = random.Random(SEED * 15_487_469 + number)
        drawn = Case.drawn(r)
        slides = (r.choice((40, 90)),)
        case = replace(
            drawn, aggregates="median(v)", by_key=True, keys=40, per=SECOND // 4, slides=slides, minutes=4
        )
        found, _ = exceeded(case, r)
        assert not found, (case, found)
