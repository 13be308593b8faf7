"""Representatives at edges against a join of all tuples in plain Python.

Random queries, and edges with one to three shards, which restart with empty synopses. After every tuple the
rows over the published tuples are those over all tuples, and no edge publishes more than it may.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.oracle.bounded.representatives.random_queries import KINDS, Event, Join, Maker, Query, Tuple
from tests.oracle.operators.standing.piecewise_runs import batch
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.errors import TamisError
from tamis.expressions.evaluate import holds
from tamis.expressions.nodes import Type
from tamis.operators.representatives.sent_tuples import Representatives
from tamis.plan.model import Entry, Representation
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of


@pytest.mark.parametrize("times", also_long(60))
def test_rows_over_published_tuples_are_rows_over_all_tuples(times: int) -> None:
    r = random.Random(SEED)
    seen: Counter[str] = Counter()
    for number in range(cases(0.006) * times):
        query = Maker(r, tuple(KINDS)[number % len(KINDS)]).query()
        if entries := _entries(query):
            events = query.events(r, r.choice((10, 24, 40)))
            seen += _play(r, query, entries, events)
    assert seen["rows"] > seen["queries"] and seen["published"] < seen["tuples"] * 0.8, seen


def _entries(query: Query) -> dict[str, Entry]:
    """The entry of each stream; none if edges publish every tuple."""
    try:
        plan = first_plan(catalog_of(f"{query.declarations()} CREATE ALERT q AS {query.sql()};"))
    except TamisError:
        return {}
    found = {
        stream.name: entry for stream in plan.streams for topic in stream.topics for entry in topic.entries
    }
    return found if all(entry.representation for entry in found.values()) else {}


def _play(r: random.Random, query: Query, entries: dict[str, Entry], events: list[Event]) -> Counter[str]:
    everything, published = Join(query), Join(query)
    shards, seen = r.randint(1, 3), Counter(queries=1, tuples=len(events))
    running: dict[tuple[str, int], _Edge] = {}
    for place, (stream, one) in enumerate(events):
        shard = stream, r.randrange(shards)
        if shard not in running or r.random() < 0.05:
            running[shard] = _Edge(query, entries[stream], stream)
        found = running[shard].take(one)
        seen["published"] += found
        everything.add(stream, one)
        # Other entries of the topic publish tuples, too, and some come again.
        if found or r.random() < 0.1:
            for _ in range(r.choice((1, 1, 2))):
                published.add(stream, one)
        failure = SEED, query.declarations(), query.sql(), events, place
        assert published.given == everything.given, failure
    seen["rows"] = len(everything.given)
    return seen


class _Edge:
    """A shard from a start on, and what it has published since."""

    def __init__(self, query: Query, entry: Entry, stream: str) -> None:
        assert entry.representation is not None
        self._representation, self._filter = entry.representation, entry.filter
        self._kept = Representatives(entry.representation)
        self._stream, self._typed = stream, tuple((one.name, one.type) for one in query.streams[stream])
        aliases = [alias for alias, name in query.sources if name == stream]
        self._read = {one.name for alias in aliases for one in query.reads(alias)}
        self._sent: list[tuple[Any, ...]] = []

    def take(self, one: Tuple) -> bool:
        """True if the edge publishes the tuple."""
        columns = batch({self._stream: self._typed}, self._stream, [tuple(one.values())])
        passing = (
            np.arange(1)
            if self._filter is None
            else np.flatnonzero(holds(self._filter, {("", name): one for name, one in columns.items()}, 1))
        )
        if not len(self._kept.publish(columns, passing)):
            return False
        self._sent.append(tuple(one[name] for name in sorted(self._read)))
        if not any(cover.value is not None or cover.unequal for cover in self._representation.covers):
            assert len(self._sent) <= self._representation.most  # one for each group
        assert len(set(self._sent)) == len(self._sent)  # a better value each time
        return True


def test_tuples_in_random_order_are_published_as_often_as_records_occur() -> None:
    """The greatest of i values in random order is the i-th with probability 1/i."""
    keys, count, runs = 4, 1000, 40
    entry = next(
        entry
        for stream in first_plan(catalog_of(_SUM)).streams
        for topic in stream.topics
        for entry in topic.entries
    )
    assert entry.representation is not None
    r = np.random.default_rng(SEED)
    published = 0
    for _ in range(runs):
        kept = Representatives(entry.representation)
        values = [(place % keys, value) for place, value in enumerate(r.permutation(count).tolist())]
        columns = batch({"s": (("k", Type.INT), ("x", Type.INT))}, "s", values)
        numbers = np.arange(count)
        published += len(kept.publish(columns, numbers))
    expected = keys * (math.log(count / keys) + 0.58)
    assert 0.85 * expected < published / runs < 1.15 * expected


_SUM = """
CREATE STREAM s (k INT KEY, x INT NOT NULL) WITH (keys = 4);
CREATE ALERT q AS SELECT DISTINCT a.k FROM s a, s b WHERE a.k = b.k AND a.x + b.x > 150;
"""


def test_a_row_that_is_lost_is_noticed() -> None:
    """An edge that keeps the other end of the values loses rows."""
    r = random.Random(SEED)
    noticed = played = 0
    while played < 30:
        query = Maker(r, "sum").query()
        if not (entries := _entries(query)):
            continue
        played += 1
        wrong = {name: replace(entry, representation=_turned(entry)) for name, entry in entries.items()}
        try:
            _play(r, query, wrong, query.events(r, 24))
        except AssertionError:
            noticed += 1
    assert noticed > played // 4, noticed


def _turned(entry: Entry) -> Representation:
    assert entry.representation is not None
    covers = tuple(replace(cover, least=not cover.least) for cover in entry.representation.covers)
    return replace(entry.representation, covers=covers)
