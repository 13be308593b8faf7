"""Entries of a topic through the edge's core: the promise to each query holds from its own activation on.

Queries come and go at random moments while the edge holds tuples.

A query rests on the tuples that pass its filter and that the shard took while the query was in its plan. In
every window of its omission interval (or of its own: tumbling, hopping), of one omission key, that holds
such tuples, one of those published at the query's plan version or above has their greatest value, and one
their least (cai-2021, theorem 3.1). The entries are the planner's; nothing here knows how queries share them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

import numpy as np
import orjson
import pytest
from tests.oracle.omission.brute_force import Recording, fewest, signs
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.declarations.definitions import Window
from tamis.expressions.nodes import Call, Column, Expr, Literal, Type
from tamis.expressions.vectors import Vector
from tamis.omission import OmissionState
from tamis.omission.columns import Sides
from tamis.omission.window_stream import WindowState
from tamis.plan.model import Entry, Input, Plan, StreamColumn, StreamPlan, TopicPlan
from tamis.plan.omission import Omission
from tamis.sharing.entries import ReaderInput, entries
from tamis_edge.core.commit import Commit
from tamis_edge.core.rows import Batch
from tamis_edge.core.shard_run import ShardRun

LONG = also_long(20)
SHARD, TOPIC = "air:edge/http", "tamis.stream.air.1"
TYPES = {
    "id": Type.BIGINT,
    "ts": Type.TIMESTAMP,
    "k": Type.VARCHAR,
    "site": Type.VARCHAR,
    "x": Type.DOUBLE,
    "y": Type.BIGINT,
}
X, Y = Column("", "x", Type.DOUBLE), Column("", "y", Type.BIGINT)


@dataclass(frozen=True)
class Reading:
    """One tuple; `late`: behind the watermark that it met."""

    id: int
    ts: int
    k: str
    site: str
    x: float | None
    y: int
    late: bool


def above(column: Column, limit: int) -> Expr:
    return Call(">", (column, Literal(limit, column.type)), Type.BOOLEAN)


# What a query may ask for, as the planner has it and as it is meant.
FILTERS: list[tuple[Expr | None, Callable[[Reading], bool]]] = [
    (None, lambda _: True),
    (above(X, 1), lambda r: r.x is not None and r.x > 1),
    (above(Y, 1), lambda r: r.y > 1),
    (
        Call("and", (above(X, 1), above(Y, 1)), Type.BOOLEAN),
        lambda r: r.x is not None and r.x > 1 and r.y > 1,
    ),
]
VALUES: list[tuple[Expr, Callable[[Reading], float | None]]] = [
    (X, lambda r: r.x),
    (Y, lambda r: float(r.y)),
    (Call("-", (Y, X), Type.DOUBLE), lambda r: None if r.x is None else r.y - r.x),
]


@dataclass(eq=False)
class Query:
    """One reader of the stream, and what it rests on: the tuples taken while it was there."""

    filter: int
    value: int
    by_site: bool
    interval: int
    sides: Sides
    max_delay: int | None
    version: int
    window: Window | None = None  # of which `interval` is the size
    over: list[Reading] = field(default_factory=list)
    after: list[Reading] = field(default_factory=list)

    @property
    def reader(self) -> ReaderInput:
        """As the planner takes it."""
        key = ("k", "site") if self.by_site else ("k",)
        wanted, _ = FILTERS[self.filter]
        value, _ = VALUES[self.value]
        omission = replace(
            Omission.none("a", key, wanted, ""),
            interval=self.interval,
            value=value,
            sides=self.sides,
            window=self.window,
        )
        return ReaderInput(
            Input("a", "air", TOPIC, "ts", ("k",), wanted, self.interval),
            omission,
            self.version,
            self.max_delay,
        )

    def wants(self, reading: Reading) -> bool:
        """True if the reading passes its filter and has a value."""
        return FILTERS[self.filter][1](reading) and (
            self.interval == 0 or VALUES[self.value][1](reading) is not None
        )

    def groups(self, rows: list[Reading]) -> Iterator[list[Reading]]:
        """Those of the rows that it wants by omission key, in order of time."""

        def key(r: Reading) -> tuple[str, str]:
            return r.k, r.site if self.by_site else ""

        for _, group in groupby(sorted(filter(self.wants, rows), key=key), key):
            yield sorted(group, key=lambda r: r.ts)

    def missing(self, published: dict[int, int]) -> int:
        """Windows that lack one of their extremes; `published`: id to the greatest version.

        What came after the query had gone it does not rest on, but may stand for what it does.
        """
        mine = {r.id for r in self.over}
        lost = 0
        for rows in self.groups(self.over + self.after):
            over = np.array([r.id in mine for r in rows])
            keep = np.array([published.get(r.id, 0) >= self.version for r in rows])
            if self.interval == 0:
                lost += int((over & ~keep).sum())
                continue
            times, values = self.recording(rows).arrays
            first = np.arange(times.min() - self.interval, times.max() + 1)[:, None]
            # Closed windows that begin on a tick or between two: they hold one tick more, or just as many.
            lengths: tuple[int, ...] = (self.interval, self.interval + 1)
            if self.window is not None:
                starts = (first - self.window.offset) % self.window.slide == 0
                first, lengths = first[starts][:, None], (self.interval,)
            for ticks in lengths:
                holds = (first <= times) & (times < first + ticks)
                for sign in signs(self.sides):
                    wanted = np.where(holds & over, sign * values, -np.inf).max(axis=1)
                    lost += int((np.where(holds & keep, sign * values, -np.inf).max(axis=1) < wanted).sum())
        return lost

    def recording(self, rows: list[Reading]) -> Recording:
        """As the oracles of omission take it."""
        values = [VALUES[self.value][1](r) for r in rows]
        return Recording(
            [r.ts for r in rows], [v for v in values if v is not None], self.interval, self.sides
        )


@dataclass(frozen=True)
class Kind:
    """What queries of one case have in common."""

    filters: list[int]
    values: list[int]
    keep_all: float
    windows: float = 0.0


def kind(r: random.Random) -> Kind:
    """One or two filters and values, so that queries often meet in an entry; sometimes one keeps all."""
    some = (
        r.sample(range(len(FILTERS)), r.choice([1, 1, 2])),
        r.sample(range(len(VALUES)), r.choice([1, 1, 2])),
    )
    return Kind(*some, r.choice([0, 0, 0.2]), r.choice([0, 0, 0.5]))


def query(r: random.Random, version: int, of: Kind) -> Query:
    interval = 0 if r.random() < of.keep_all else r.choice([4, 7, 15, 30])
    window = None
    if interval and r.random() < of.windows:
        slide = r.choice([3, 5, 8])
        interval = slide * r.choice([1, 1, 2, 3])
        window = Window(slide, interval, r.choice([0, 0, 1, 2]))
    return Query(
        filter=r.choice(of.filters),
        value=r.choice(of.values),
        by_site=r.random() < 0.2,
        interval=interval,
        window=window,
        sides=r.choice(["both", "above", "below"]),
        max_delay=r.choice([None] * 8 + [0, 9]),
        version=version,
    )


def plan_of(queries: list[Query], version: int, delay: int) -> Plan:
    columns = tuple(StreamColumn(name, type_, False, None) for name, type_ in TYPES.items())
    found = entries([q.reader for q in queries])
    topics = (TopicPlan(TOPIC, ("k",), ("id", "site", "x", "y"), found),) if found else ()
    stream = StreamPlan("air", columns, "ts", delay, None, None, 3_600_000_000, topics)
    return Plan(version, 2, (stream,), since={SHARD: 1}, shard_streams={SHARD: "air"})


def readings(r: random.Random, count: int, delay: int) -> list[Reading]:
    """Few values, so that many are equal; some out of order, a few of them late."""
    out: list[Reading] = []
    at, watermark = 0, -(10**9)
    for number in range(count):
        at += r.choice([0, 1, 1, 2])
        ts = at - r.choice([0, 0, 0, r.randint(0, delay + 1)])
        x = None if r.random() < 0.04 else float(r.randint(0, 4))
        late = ts < watermark
        out.append(Reading(number, ts, r.choice("ab"), r.choice("st"), x, r.randint(0, 3), late))
        watermark = max(watermark, ts - delay)
    return out


def batch(rows: list[Reading], now: int) -> Batch:
    columns = {
        name: Vector.from_list([getattr(row, name) for row in rows], type_) for name, type_ in TYPES.items()
    }
    ids = np.array([row.id for row in rows])
    return Batch(columns, columns["ts"].data, ids, np.full(len(rows), now))


def take_out(run: ShardRun, published: dict[int, int]) -> None:
    """What the run sends, each tuple with the greatest version under which it was sent."""
    while run.out:
        record = run.out.popleft()
        run.safe(record.token)
        value = orjson.loads(record.value)
        if "id" in value and not value["_"].get("late"):
            published[value["id"]] = max(published.get(value["id"], 0), value["_"]["plan"])


@dataclass
class Played:
    """What came of one shard's life: all its queries, and what it published."""

    every: list[Query]
    published: dict[int, int]
    changes: int = 0
    held: int = 0  # changes of plan while something was held


def play(r: random.Random) -> Played:
    """A shard from its first tuple to its last, under plans that change now and then."""
    delay = r.choice([0, 0, 3])
    rows = readings(r, r.randint(20, 60), delay)
    version = 1
    now = 0
    of = kind(r)
    live = [query(r, 1, of) for _ in range(r.randint(1, 3))]
    played = Played(list(live), {})
    run = ShardRun(SHARD, "air", Commit(), plan_of(live, version, delay))
    while rows:
        if r.random() < 0.15:
            version += 1
            live = [q for q in live if r.random() < 0.7]
            while len(live) < 6 and r.random() < 0.5:
                live.append(query(r, version, of))
                played.every.append(live[-1])
            played.held += run.held > 0
            played.changes += 1
            run.obey(plan_of(live, version, delay))
        some, rows = rows[: (size := r.choice([1, 2, 5]))], rows[size:]
        now += r.randint(0, 4)
        run.take(batch(some, now), now)
        for one in played.every:
            (one.over if one in live else one.after).extend(row for row in some if not row.late)
        take_out(run, played.published)
    run.finish()
    run.settle(now)
    take_out(run, played.published)
    assert run.held == 0
    return played


@pytest.mark.parametrize("times", LONG)
def test_every_query_has_its_promise_while_others_come_and_go(times: int) -> None:
    r = random.Random(f"entries {SEED}")
    held = changed = 0
    for case in range(cases(0.02) * times):
        played = play(r)
        held, changed = held + played.held, changed + played.changes
        for one in played.every:
            assert one.missing(played.published) == 0, (SEED, case, one)
    assert changed > case and held > changed / 4


@pytest.mark.parametrize("state", [OmissionState, WindowState])
def test_an_entry_that_forgets_what_it_holds_is_found_out(
    state: type[OmissionState | WindowState], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the same oracle, whether others of its rule are left or not."""
    for name in ("flush", "end"):
        honest = getattr(state, name)

        def forgetful(self: Any, *codes: int, honest: Any = honest) -> Any:
            return honest(self, *codes)[:0]

        monkeypatch.setattr(state, name, forgetful)
    r = random.Random(f"forgetful {SEED}")
    lost = 0
    for _ in range(80):
        played = play(r)
        lost += any(one.missing(played.published) for one in played.every)
    assert lost > 0


def test_no_more_is_kept_than_all_queries_would_have_kept_by_themselves() -> None:
    r = random.Random(f"union {SEED}")
    total = alone = 0
    for case in range(cases(0.01)):
        of = replace(kind(r), windows=0.0)
        queries = [query(r, 1, of) for _ in range(r.randint(1, 4))]
        for one in queries:
            one.max_delay = None
        rows = readings(r, 12, 0)
        rows = [row for row in rows if not row.late and row.x is not None]
        published: dict[int, int] = {}
        run = ShardRun(SHARD, "air", Commit(), plan_of(queries, 1, 0))
        run.take(batch(rows, 0), 0)
        run.finish()
        run.settle(0)
        take_out(run, published)
        needed = 0
        for one in queries:
            needed += sum(
                len(group) if one.interval == 0 else fewest(one.recording(group))
                for group in one.groups(rows)
            )
        assert len(published) <= needed, (SEED, case, queries, rows)
        total, alone = total + len(published), alone + needed
    assert total < alone


@pytest.mark.parametrize("times", LONG)
def test_each_query_finds_an_entry_that_serves_it(times: int) -> None:
    r = random.Random(f"served {SEED}")
    for case in range(cases(0.02) * times):
        of = Kind(list(range(len(FILTERS))), [0, 1], 0.2, 0.3)
        queries = [query(r, r.randint(1, 9), of) for _ in range(r.randint(1, 8))]
        found = entries([q.reader for q in queries])
        assert len({(e.filter, e.omission_key, e.value, e.window) for e in found}) == len(found)
        for one in queries:
            assert any(serves(entry, one) for entry in found), (SEED, case, one, found)
        for entry in found:
            assert any(serves(entry, one) for one in queries), (SEED, case, entry, queries)


def serves(entry: Entry, one: Query) -> bool:
    """True if the entry keeps what the query needs, and is as new as the query."""
    asked = one.reader.omission
    if entry.serves < one.version:
        return False
    if entry.interval == 0:
        return entry.filter is None or entry.filter == asked.entry_filter or one.filter == len(FILTERS) - 1
    delay = entry.max_delay
    return (
        (entry.filter, entry.omission_key, entry.value, entry.window)
        == (asked.entry_filter, asked.key, asked.value, one.window)
        and 0 < entry.interval <= one.interval
        and entry.sides in {"both", one.sides}
        and (one.max_delay is None or (delay is not None and delay <= one.max_delay))
    )
