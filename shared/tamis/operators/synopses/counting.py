"""Synopses without DISTINCT: buckets with their first tuple and a count (arasu-2004, section 7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tamis.difference_bounds import Closure
from tamis.operators.synopses.bucket_coordinates import cells
from tamis.operators.synopses.columns import Columns, Ints, bucket_rows, two_words
from tamis.operators.synopses.counting_kernels import (
    Buckets,
    Events,
    Found,
    Program,
    joined,
    restored,
)
from tamis.operators.synopses.join import Join
from tamis.operators.synopses.kernels import entered
from tamis.operators.synopses.row_numbering import RowNumbering, firsts, grown
from tamis.operators.synopses.synopsis import layout
from tamis.plan.conjunction import Conjunction, bucket_nodes

_FEWEST = 1024  # combinations for which a small batch has room at once


@dataclass(frozen=True)
class OccurrenceRows:
    """Tuples at one occurrence that satisfy all conditions on it: their ascending places among all tuples,
    and the columns of `CountingSynopses.nodes`, in which a value has the same number in every batch.
    """

    occurrence: int
    places: Ints
    columns: Columns


@dataclass(frozen=True)
class BatchJoin:
    """The result of joining a batch. An *event* is one tuple at one occurrence. Events are in the order of
    their places, and at one place in the order of occurrences.

    `rows` has the row number of each event in its part of the batch, and `buckets` the number of the bucket
    that counted it (-1 for none). `new` has, for each part, the rows that begin a new bucket, in the order of
    the buckets. `found` has the combinations of each event with the buckets as they were before this event.
    """

    places: Ints
    occurrences: Ints
    rows: Ints
    buckets: Ints
    new: Sequence[Ints]
    found: Found


class CountingSynopses:
    """Evaluates one conjunction over several streams, duplicates preserved. The conjunction must not
    contradict itself.

    `entries` stays bounded if `decide.violation` finds nothing; the rows are right in any case.
    """

    def __init__(self, query: Conjunction, closure: Closure) -> None:
        count = len(query.streams)
        self.query = query
        self._layouts = [layout(cell, False) for i in range(count) for cell in cells(query, closure, i)]
        self._needed = [bucket_nodes(query, closure, i) for i in range(count)]
        self._numbers = [
            RowNumbering(len(one.finite) + 2 * len(needed))
            for one, needed in zip(self._layouts, self._needed, strict=True)
        ]
        self._program, self._columns = _program(Join(query, closure))
        most = self._program.columns.shape[1]
        links = int(self._program.link.max()) + 1
        none = np.zeros(0, np.int64)
        self._buckets = Buckets(
            np.zeros((count, 0, len(self._columns)), np.int64),
            np.zeros((count, 0), np.int64),
            np.zeros((count, 0), np.int64),
            np.zeros((count, 0, links), np.int64),
            np.full(16, -1, np.int64),
            np.zeros((0, 1 + most), np.int64),
            none,
            none,
            np.zeros(1, np.int64),
        )

    @property
    def entries(self) -> int:
        """The number of buckets."""
        return sum(map(len, self._numbers))

    def nodes(self, occurrence: int) -> set[int]:
        """The nodes of an occurrence whose values are read."""
        in_coordinates = {node for one in self._layouts[occurrence].finite for node, _ in one.terms}
        compared = set(self._columns).intersection(self.query.own(occurrence))
        return in_coordinates | compared | set(self._needed[occurrence])

    def counts(self, occurrence: int) -> Ints:
        """The number of tuples in each bucket."""
        return self._buckets.counts[occurrence, : len(self._numbers[occurrence])]

    def take(self, parts: Sequence[OccurrenceRows]) -> BatchJoin:
        """Take tuples of several occurrences in the order of their places, at one place by occurrence. A
        tuple of a self-join is taken once at each of its occurrences.
        """
        buckets, new = [], []
        for part in parts:
            known = len(self._numbers[part.occurrence])
            numbers = self._numbered(part.occurrence, part.columns, len(part.places))
            buckets.append(numbers)
            new.append(firsts(numbers, known))
        place = np.concatenate([part.places for part in parts])
        occurrence = np.concatenate([np.full(len(part.places), part.occurrence) for part in parts])
        row = np.concatenate([np.arange(len(part.places)) for part in parts])
        values = np.concatenate([self._values(part.columns, len(part.places)) for part in parts])
        order = np.lexsort((occurrence, place))
        events = Events(occurrence[order], np.concatenate(buckets)[order], values[order])
        combinations = self._joined(events)
        counted = events.bucket >= 0
        self._buckets.last[events.occurrence[counted], events.bucket[counted]] = -1
        return BatchJoin(place[order], events.occurrence, row[order], events.bucket, new, combinations)

    def restore(self, occurrence: int, columns: Columns, counts: Ints) -> None:
        """Put back all buckets of an occurrence: the columns of their first tuples, and their counts."""
        self._numbered(occurrence, columns, len(counts))
        self._make_room()
        restored(self._program, self._buckets, occurrence, self._values(columns, len(counts)), counts)

    def _numbered(self, occurrence: int, columns: Columns, rows: int) -> Ints:
        placed = bucket_rows(self._layouts[occurrence], self._needed[occurrence], columns, rows)
        numbers = np.full(rows, -1, np.int64)
        numbers[placed.at] = self._numbers[occurrence].of(placed.keys)
        return numbers

    def _values(self, columns: Columns, rows: int) -> Ints:
        """The compared values of every tuple; the columns of other occurrences are 0."""
        values = np.zeros((rows, len(self._columns)), np.int64)
        for place, node in enumerate(self._columns):
            if node in columns:
                values[:, place] = columns[node].data
        return values

    def _joined(self, events: Events) -> Found:
        self._make_room()
        combinations = _room(2 * len(events.occurrence) + _FEWEST, len(self._numbers))
        event = used = 0
        while True:
            event, used = joined(self._program, self._buckets, events, combinations, event, used)
            if event == len(events.occurrence):
                return Found(*(one[:used] for one in combinations))
            combinations = Found(*(grown(one, len(one) + 1) for one in combinations))

    def _make_room(self) -> None:
        """Make room for all numbered buckets, and all chains that they can be in."""
        old = self._buckets
        size = max(map(len, self._numbers))
        chains = sum(len(self._numbers[occurrence]) for occurrence in self._program.of.tolist())
        table = old.table
        if 2 * chains > len(table):
            table = np.full(1 << (4 * chains).bit_length(), -1, np.int64)
            entered(table, old.keys, int(old.chains[0]))
        self._buckets = Buckets(
            grown(old.values, size, axis=1),
            grown(old.counts, size, axis=1),
            grown(old.last, size, axis=1, fill=-1),
            grown(old.following, size, axis=1),
            table,
            grown(old.keys, chains),
            grown(old.head, chains),
            grown(old.tail, chains),
            old.chains,
        )


def _room(size: int, count: int) -> Found:
    return Found(np.empty(size, np.int64), *(np.empty((size, count), np.int64) for _ in range(3)))


def _program(join: Join) -> tuple[Program, list[int]]:
    """The conditions of a join as arrays, and the nodes in their columns."""
    count = len(join.orders)
    lookups = sorted({(i, nodes) for i in range(count) for nodes in _lookups(join, i)})
    checked = [check for own in join.checks for here in own for check in here]
    read = {node for _, a, _, b, _ in checked for node in (a, b)} | {n for _, nodes in lookups for n in nodes}
    read |= {node for own in join.equal for here in own for _, node, _ in here.given}
    columns = sorted(read)
    place = {node: at for at, node in enumerate(columns)}
    most = max(len(nodes) for _, nodes in lookups)
    orders, index = np.zeros((count, count), np.int64), np.zeros((count, count), np.int64)
    given = np.zeros((count, count, most, 4), np.int64)
    check_at = np.zeros((count, count, 2), np.int64)
    checks: list[tuple[int, ...]] = []
    for i, order in enumerate(join.orders):
        orders[i] = order
        for at in range(1, count):
            equal = join.equal[i][at]
            index[i, at] = lookups.index((order[at], equal.nodes))
            for part, (other, node, distance) in enumerate(equal.given):
                given[i, at, part] = (other, place[node], *two_words(distance))
            before = len(checks)
            for left, a, right, b, bound in join.checks[i][at]:
                checks.append((left, place[a], right, place[b], *two_words(bound)))
            check_at[i, at] = before, len(checks)
    of = [i for i, _ in lookups]
    shown = np.zeros((len(lookups), most), np.int64)
    for number, (_, nodes) in enumerate(lookups):
        shown[number, : len(nodes)] = [place[node] for node in nodes]
    program = Program(
        orders,
        index,
        given,
        np.array(checks, np.int64).reshape(-1, 6),
        check_at,
        np.array(of, np.int64),
        np.array([of[:number].count(i) for number, i in enumerate(of)], np.int64),
        np.array([len(nodes) for _, nodes in lookups], np.int64),
        shown,
    )
    return program, columns


def _lookups(join: Join, occurrence: int) -> set[tuple[int, ...]]:
    """The groups of nodes by which buckets of an occurrence are looked up; an empty group where all buckets
    are tried.
    """
    return {
        equal.nodes
        for order, own in zip(join.orders, join.equal, strict=True)
        for here, equal in zip(order[1:], own[1:], strict=True)
        if here == occurrence
    }
