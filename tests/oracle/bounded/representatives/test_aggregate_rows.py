"""Rows of random aggregates over joins against groups that are computed anew from all tuples so far.

After every batch the evaluator has given the row of each group that a tuple changed, at this tuple, and has
no more entries than the bound. Queries without a bound are evaluated, too, as `allow_unbounded` permits.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import duckdb
import numpy as np
import pytest
from numpy.typing import NDArray
from tests.operators import compile_query
from tests.oracle.bounded.representatives.random_aggregates import COUNTS, Grouped, grouped
from tests.oracle.bounded.representatives.random_queries import KINDS, Event
from tests.oracle.operators.standing.piecewise_runs import Columns, Tuples, cut
from tests.oracle.random_cases import SEED, also_long, cases
from tests.rows_for_duckdb import insert

from tamis.bounded.timeless.verdict import chosen_representatives, memory_verdict
from tamis.expressions.nodes import Type
from tamis.operators.contract import Batch, InterleavedInput, Rows, StandingEvaluator
from tamis.query.model import Catalog, TimelessGroupBy
from tamis.query.parse import catalog_of

# The least shares of queries with each property that representatives prove bounded. `pytest -s` prints those
# of a run. Raise a share when more are decided.
LEAST_SHARES = {
    "max": 0.15,
    "min": 0.1,
    "one aggregate": 0.1,
    "several aggregates": 0.05,
    "a count in HAVING": 0.15,
    "counts": 0.05,
    "over several sources": 0.1,
    "self-joins": 0.1,
    "three sources": 0.05,
    "NULL": 0.1,
    "DOUBLE values": 0.02,
}
_IN_DUCKDB = {Type.INT: Type.BIGINT}


@pytest.mark.parametrize("times", also_long(40))
def test_each_change_of_a_group_is_given_once_within_the_bound(times: int) -> None:
    r = random.Random(SEED)
    tried: Counter[str] = Counter()
    decided: Counter[str] = Counter()
    productive = 0
    for number in range(cases(0.008) * times):
        asked = grouped(r, tuple(KINDS)[number % len(KINDS)])
        catalog, query = parsed(asked)
        memory = memory_verdict(query, catalog)
        tags = _tags(asked)
        tried.update(tags)
        if memory.verdict == "bounded" and chosen_representatives(query, catalog) is not None:
            decided.update(tags)
        elif memory.verdict == "bounded" and "counts" in tags:
            decided.update(("counts",))
        elif r.random() < 0.7:
            continue
        if times == 1 and number % 4:
            continue  # most of the time goes into the rows
        events = asked.query.events(r, r.choice((10, 24, 40)))
        productive += _play(r, asked, partial(_evaluator, query, catalog), events, memory.bound)
    known = {tag: count for tag, count in tried.items() if count >= 20 and tag in LEAST_SHARES}
    shares = {tag: decided[tag] / count for tag, count in known.items()}
    print({tag: round(share, 2) for tag, share in sorted(shares.items())}, productive)
    low = {tag: share for tag, share in shares.items() if share < LEAST_SHARES[tag]}
    assert not low, (SEED, low, shares)
    assert productive > cases(0.008) * times // 24


def parsed(asked: Grouped) -> tuple[Catalog, TimelessGroupBy]:
    """The query with its streams."""
    catalog = catalog_of(f"{asked.query.declarations()} CREATE ALERT q AS {asked.sql()};")
    query = catalog.alerts["q"].query
    assert isinstance(query, TimelessGroupBy)
    return catalog, query


def _tags(asked: Grouped) -> set[str]:
    having = [] if asked.having is None else [asked.having[0]]
    calls = [*asked.shown, *having]
    found = {one.function for one in calls} | set(asked.query.tags)
    if not asked.shown:
        found |= {"a count in HAVING"}
    elif found & set(COUNTS):
        found = {"counts"}
    else:
        found |= {"one aggregate" if len(calls) == 1 else "several aggregates"}
    if any(len({alias for alias, _ in one.argument.columns()}) > 1 for one in calls):
        found |= {"over several sources"}
    return found


def _evaluator(query: TimelessGroupBy, catalog: Catalog) -> StandingEvaluator:
    found = compile_query(query, catalog)
    assert found is not None
    return found


class _Bounded:
    """An evaluator whose entries are compared with the bound after each batch."""

    def __init__(self, evaluator: StandingEvaluator, bound: int | None) -> None:
        assert isinstance(evaluator, InterleavedInput)
        self._evaluator, self._interleaved, self._bound = evaluator, evaluator, bound
        self.streams, self.entries = evaluator.streams, evaluator.entries
        self.dump, self.load, self.advance = evaluator.dump, evaluator.load, evaluator.advance

    def take(self, stream: str, batch: Batch, rows: int) -> Rows:
        return self._checked(self._evaluator.take(stream, batch, rows))

    def take_interleaved(self, batches: Mapping[str, Batch], batch_of: NDArray[np.int64]) -> Rows:
        return self._checked(self._interleaved.take_interleaved(batches, batch_of))

    def _checked(self, found: Rows) -> Rows:
        entries = self.entries()
        assert self._bound is None or entries <= self._bound, (entries, self._bound)
        return found


def _play(
    r: random.Random,
    asked: Grouped,
    make: Callable[[], StandingEvaluator],
    events: list[Event],
    bound: int | None,
) -> bool:
    """Give the tuples in random batches; True if any row arose."""
    typed: Columns = {
        name: tuple((one.name, one.type) for one in columns) for name, columns in asked.query.streams.items()
    }
    tuples: Tuples = [(stream, tuple(one.values())) for stream, one in events]
    sizes = r.choice(((1,), (1, 2, 5, 50)))
    failure = (SEED, asked.query.declarations(), asked.sql(), events)
    given, _ = cut(r, lambda: _Bounded(make(), bound), typed, tuples, sizes)
    withdrawing = asked.having is not None
    found = Counter(row if withdrawing else (*row, False) for row in given)
    wanted = Counter(
        (place, *change) for place, changes in enumerate(asked.changes(events)) for change in changes
    )
    assert found == wanted, (*failure, found - wanted, wanted - found)
    assert [place for place, *_ in given] == sorted(place for place, *_ in given), failure
    return bool(given)


def test_a_group_without_values_has_a_row() -> None:
    sql = "SELECT s.k, max(s.x + t.x) AS m FROM s, t WHERE s.k = t.k GROUP BY s.k"
    tuples: Tuples = [("s", (1, None)), ("t", (1, 5)), ("t", (1, 3)), ("s", (1, 2)), ("s", (1, 1))]
    assert _known_rows(sql, 10, tuples) == [(1, 1, None), (3, 1, 7)]


@pytest.mark.parametrize("condition", ["> 2", ">= 3"])
def test_a_count_reaches_its_limit(condition: str) -> None:
    sql = f"SELECT s.k FROM s, t WHERE s.k = t.k AND s.x + t.x > 0 GROUP BY s.k HAVING count(*) {condition}"
    tuples: Tuples = [("t", (1, 9)), *(("s", (1, x)) for x in (5, 4, 3, 2))]
    assert _known_rows(sql, 14, tuples) == [(3, 1, False)]


def _known_rows(sql: str, bound: int, tuples: Tuples) -> list[Any]:
    streams = "".join(f"CREATE STREAM {one} (k INT KEY, x INT) WITH (keys = 2);" for one in "st")
    catalog = catalog_of(f"{streams} CREATE ALERT q AS {sql};")
    query = catalog.alerts["q"].query
    assert isinstance(query, TimelessGroupBy) and memory_verdict(query, catalog).bound == bound
    typed: Columns = dict.fromkeys("st", (("k", Type.INT), ("x", Type.INT)))
    found, _ = cut(random.Random(SEED), lambda: _evaluator(query, catalog), typed, tuples, (1,))
    return found


def test_the_last_rows_are_those_of_duckdb() -> None:
    """The brute force means what the SQL means."""
    r = random.Random(SEED)
    reference = duckdb.connect()
    for number in range(cases(0.004)):
        asked = grouped(r, tuple(KINDS)[number % len(KINDS)])
        events = asked.query.events(r, 16)
        for name, columns in asked.query.streams.items():
            declared = ", ".join(f"{one.name} {_IN_DUCKDB.get(one.type, one.type)}" for one in columns)
            reference.execute(f"CREATE OR REPLACE TABLE {name} ({declared})")
            insert(reference, name, [tuple(one.values()) for stream, one in events if stream == name])
        last: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        for changes in asked.changes(events):
            last |= {change[: len(asked.query.shown)]: change for change in changes}
        wanted = Counter(map(_rounded, reference.execute(asked.sql()).fetchall()))
        found = Counter(_rounded(change[:-1]) for change in last.values() if not change[-1])
        assert found == wanted, (SEED, asked.sql())


def _rounded(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """The sums of DuckDB are rounded at each step."""
    return tuple(float(f"{one:.9g}") if isinstance(one, float) else one for one in row)
