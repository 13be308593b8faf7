"""Rows of random DISTINCT queries against a join of all tuples so far in plain Python.

After every batch the evaluator has given each row of the join once, at the tuple that completed it, and has
no more entries than the bound. Batches are of one stream or of several, and a fresh evaluator may go on from
the saved state.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from functools import partial

import duckdb
import numpy as np
import pytest
from tests.operators import compile_query
from tests.oracle.bounded.representatives.random_queries import KINDS, Event, Maker, Query
from tests.oracle.operators.standing.piecewise_runs import Columns, batch, rows
from tests.oracle.random_cases import SEED, also_long, cases
from tests.rows_for_duckdb import insert

from tamis.bounded.timeless.verdict import memory_verdict
from tamis.expressions.nodes import Type
from tamis.operators.contract import Batch, InterleavedInput, Rows, StandingEvaluator
from tamis.query.model import Catalog, TimelessSelect
from tamis.query.parse import catalog_of

# The least shares of queries that are bounded by at most MOST_ENTRIES, for each kind and property of queries.
# 0: few of them are decided so far, or they are unbounded. Raise a share when more are decided, and leave
# room for other seeds: a run has 12 queries of each kind. `pytest -s` prints the shares of a run.
LEAST_SHARES = {
    "difference": 0.5,
    "sum": 0.3,
    "product": 0.3,
    "step": 0.3,
    "both": 0.4,
    "few": 0.1,
    "or": 0.3,
    "chain": 0.1,
    "small": 0.1,
    "unequal": 0.4,
    "band": 0,
    "limited": 0.3,
    "front": 0,
    "windows": 0,
    "unlimited": 0,
    "mixed": 0,
    "self-joins": 0.4,
    "three sources": 0.3,
    "NULL": 0.4,
    "keys": 0.4,
    "INT values": 0.5,
    "BIGINT values": 0.2,
    "DOUBLE values": 0.3,
}
MOST_ENTRIES = 1000  # a larger number follows from a CHECK that admits many values

_IN_DUCKDB = {Type.INT: Type.BIGINT}


@pytest.mark.parametrize("times", also_long(80))
def test_each_row_of_the_join_is_given_once_within_the_bound(times: int) -> None:
    r = random.Random(SEED)
    tried: Counter[str] = Counter()
    decided: Counter[str] = Counter()
    played = productive = 0
    for number in range(cases(0.008) * times):
        query = Maker(r, tuple(KINDS)[number % len(KINDS)]).query()
        catalog, asked = _parsed(query)
        memory = memory_verdict(asked, catalog)
        tried.update(query.tags)
        if memory.verdict != "bounded":
            continue
        assert memory.bound is not None
        if memory.bound <= MOST_ENTRIES:
            decided.update(query.tags)
        if times == 1 and number % 3:
            continue  # most of the time goes into the rows
        played += 1
        events = query.events(r, r.choice((10, 24, 40)))
        productive += _play(r, query, partial(_evaluator, asked, catalog), events, memory.bound)
    assert productive > played // 3
    shares = {tag: decided[tag] / count for tag, count in tried.items() if count >= 10}
    low = {tag: share for tag, share in shares.items() if share < LEAST_SHARES[tag]}
    assert not low, (SEED, low, shares)
    print({tag: round(share, 2) for tag, share in sorted(shares.items())})


def _parsed(query: Query) -> tuple[Catalog, TimelessSelect]:
    catalog = catalog_of(f"{query.declarations()} CREATE ALERT q AS {query.sql()};")
    asked = catalog.alerts["q"].query
    assert isinstance(asked, TimelessSelect)
    return catalog, asked


def _evaluator(asked: TimelessSelect, catalog: Catalog) -> StandingEvaluator:
    found = compile_query(asked, catalog)
    assert found is not None
    return found


def _play(
    r: random.Random, query: Query, make: Callable[[], StandingEvaluator], events: list[Event], bound: int
) -> bool:
    """Give the tuples in random batches; True if any row arose."""
    new_rows = query.new_rows(events)
    evaluator, start = make(), 0
    while start < len(events):
        mixed = isinstance(evaluator, InterleavedInput) and r.random() < 0.6
        most, end = start + r.choice((1, 2, 5, 50)), start + 1
        while end < min(most, len(events)) and (mixed or events[end][0] == events[start][0]):
            end += 1
        given = list(rows(_taken(query, evaluator, events[start:end], mixed=mixed)))
        wanted = Counter((place, *row) for place, some in enumerate(new_rows[start:end]) for row in some)
        failure = (SEED, query.declarations(), query.sql(), events, start, end, given, wanted)
        assert Counter(given) == wanted, failure
        assert [place for place, *_ in given] == sorted(place for place, *_ in given), failure
        assert evaluator.entries() <= bound, (*failure, evaluator.entries(), bound)
        if r.random() < 0.3:
            state, kept, evaluator = evaluator.dump(), evaluator.entries(), make()
            evaluator.load(state)
            assert evaluator.entries() == kept and evaluator.dump() == state, failure
        start = end
    return any(new_rows)


def _taken(query: Query, evaluator: StandingEvaluator, events: list[Event], *, mixed: bool) -> Rows:
    names = sorted({stream for stream, _ in events})
    typed = {name: tuple((one.name, one.type) for one in query.streams[name]) for name in names}
    batches = {
        name: batch(typed, name, [tuple(one.values()) for stream, one in events if stream == name])
        for name in names
    }
    if mixed:
        assert isinstance(evaluator, InterleavedInput)
        return evaluator.take_interleaved(
            batches, np.array([names.index(one) for one, _ in events], np.int64)
        )
    (name,) = names
    return evaluator.take(name, batches[name], len(events))


class _Forgetful:
    """An evaluator that joins each third tuple and doesn't keep it."""

    def __init__(self, make: Callable[[], StandingEvaluator]) -> None:
        self.make, self.kept, self.count = make, make(), 0
        self.streams = self.kept.streams
        self.entries, self.dump, self.load = self.kept.entries, self.kept.dump, self.kept.load

    def take(self, stream: str, batch: Batch, rows: int) -> Rows:
        parts = []
        for place in range(rows):
            self.count += 1
            taking = self.kept
            if self.count % 3 == 0:
                taking = self.make()
                taking.load(self.kept.dump())
            one = {name: vector.take(np.array([place])) for name, vector in batch.items()}
            found = taking.take(stream, one, 1)
            parts.append(Rows(found.columns, found.completed + place))
        return Rows.concat(parts)

    def advance(self, stream: str, watermark: int) -> Rows:
        return self.kept.advance(stream, watermark)


def test_a_tuple_that_is_not_kept_is_noticed() -> None:
    r = random.Random(SEED)
    played = noticed = 0
    while played < 20:
        query = Maker(r, "difference").query()
        catalog, asked = _parsed(query)
        if len(query.sources) == 1 or memory_verdict(asked, catalog).verdict != "bounded":
            continue
        make = partial(_evaluator, asked, catalog)
        events = query.events(r, 24)
        if any(query.new_rows(events)):
            played += 1
            try:
                _play(r, query, partial(_Forgetful, make), events, 10**9)
            except AssertionError:
                noticed += 1
    assert noticed > played // 4, noticed


def test_texts_of_two_streams_that_differ() -> None:
    """Which text is greater must not depend on the order in which they come."""
    catalog = catalog_of(
        "CREATE STREAM s (k INT KEY, n VARCHAR) WITH (keys = 1);"
        "CREATE STREAM t (k INT KEY, n VARCHAR) WITH (keys = 1);"
        "CREATE ALERT q AS SELECT DISTINCT a.k FROM s a, t b WHERE a.k = b.k AND a.n != b.n;"
    )
    asked = catalog.alerts["q"].query
    assert isinstance(asked, TimelessSelect)
    evaluator = _evaluator(asked, catalog)
    typed: Columns = dict.fromkeys("st", (("k", Type.INT), ("n", Type.VARCHAR)))
    evaluator.take("s", batch(typed, "s", [(1, "q"), (1, "p")]), 2)
    assert len(evaluator.take("t", batch(typed, "t", [(1, "q")]), 1)) == 1


def test_trees_mean_what_their_sql_means() -> None:
    r = random.Random(SEED)
    reference = duckdb.connect()
    for number in range(cases(0.004)):
        query = Maker(r, tuple(KINDS)[number % len(KINDS)]).query()
        events = query.events(r, 16)
        for name, columns in query.streams.items():
            declared = ", ".join(f"{one.name} {_IN_DUCKDB.get(one.type, one.type)}" for one in columns)
            reference.execute(f"CREATE OR REPLACE TABLE {name} ({declared})")
            insert(reference, name, [tuple(one.values()) for stream, one in events if stream == name])
        wanted = Counter(reference.execute(query.sql()).fetchall())
        assert Counter(row for some in query.new_rows(events) for row in some) == wanted, (SEED, query.sql())
