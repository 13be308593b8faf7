"""Partial aggregates of panes, as edges send them by cuts: the rows of queries are those over tuples.

Several queries with windows of their own share what one or two edges send. A cut has any of the readings that
an edge holds: all, or those of the panes before some time. The rows are compared with those of the operator
that takes the same readings as tuples, and with DuckDB's.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import duckdb
import numpy as np
import orjson
import pytest
from tests.oracle.operators.windowed_queries import (
    Lower,
    Parts,
    Row,
    Tuple,
    WindowQuery,
    Windows,
    batch_of,
    comparable,
    expected_rows,
    late_tuples,
    random_case,
    random_tuples,
    rows_of,
)
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.expressions.evaluate import holds
from tamis.expressions.nodes import Column, substitute
from tamis.operators.windows.boundaries import pane_starts
from tamis.operators.windows.groups import WindowedGroups
from tamis.operators.windows.open_panes import OpenPanes
from tamis.operators.windows.pane_documents import from_document, to_document
from tamis.operators.windows.pane_rows import PaneRows
from tamis.plan.model import PaneGrid
from tamis.plan.nodes import Grouping
from tamis.plan.nodes import Windows as Node
from tamis.planning.physical.lowering import lowered
from tamis.query.parse import catalog_of
from tamis.sharing.partial_groupings import mergeable, united

_EMPTY = -(2**60)


# 72 cases, and 100,800 in a search for unsoundness.
@pytest.mark.parametrize("times", also_long(1400))
def test_the_rows_by_cuts_are_those_of_tuples_and_of_duckdb(times: int) -> None:
    reference = duckdb.connect(":memory:")
    productive = late = shared = 0
    tried = cases(0.003) * times
    for case in range(tried):
        r = random.Random(SEED * 1_000_003 + case)
        fleet = _Fleet.drawn(r)
        tuples = random_tuples(r, fleet.lower.rate)
        fleet.play(r, tuples)
        for query in fleet.queries:
            note = case, query.asked.sql, tuples, query.taken
            assert query.rows == query.rows_of_tuples, note
            expected = expected_rows(reference, query.parts, query.windows, query.taken, query.marks)
            assert sorted(map(comparable, query.rows)) == sorted(map(comparable, expected)), note
            assert query.operator.late == query.of_tuples.late, note
            assert query.operator.late == late_tuples(reference, query.parts.condition, query.windows), note
            productive += bool(query.rows)
            late += query.operator.late > 0
        shared += len(fleet.queries) > 1
    assert productive > tried // 2
    assert late > tried // 50
    assert shared > tried // 4


@dataclass
class _Query:
    """A query by cuts, and the same query by tuples: `taken` are the tuples in the order of cuts, and `marks`
    the watermark when each of them came.
    """

    asked: WindowQuery
    parts: Parts
    windows: Windows
    operator: WindowedGroups
    of_tuples: WindowedGroups
    rows: list[Row] = field(default_factory=list)
    rows_of_tuples: list[Row] = field(default_factory=list)
    taken: list[Tuple] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)

    @staticmethod
    def drawn(r: random.Random, lower: Lower) -> _Query:
        sql, parts, windows = random_case(r, lower)
        asked = WindowQuery(sql, catalog_of(sql), lower.delay)
        return _Query(asked, parts, windows, asked.fresh(), asked.fresh())

    @property
    def node(self) -> Node:
        node = lowered(self.asked.query, self.asked.catalog)
        assert isinstance(node, Node)
        return node

    def take(self, parts: Sequence[PaneRows], sent: Grouping, tuples: list[Tuple], mark: int) -> None:
        for rows in parts:
            self.operator.take_panes(rows, sent)
        self.of_tuples.take("s", batch_of(self.asked.catalog.streams["s"], tuples), len(tuples))
        self.taken += tuples
        self.marks += [mark] * len(tuples)

    def advance(self, r: random.Random, mark: int) -> None:
        self.rows += rows_of(self.operator.advance("s", mark))
        self.rows_of_tuples += rows_of(self.of_tuples.advance("s", mark))
        assert self.operator.entries() == self.of_tuples.entries()
        if self.asked.bound is not None:
            assert self.operator.entries() <= self.asked.bound, (self.asked.sql, self.taken)
        if r.random() < 0.2:
            state, self.operator = self.operator.dump(), self.asked.fresh()
            self.operator.load(state)


@dataclass
class _Edge:
    """The readings that an edge holds: their partial aggregates, and the tuples with their panes."""

    panes: OpenPanes
    held: list[tuple[int, Tuple]] = field(default_factory=list)

    def cut(self, before: int | None) -> tuple[PaneRows, list[Tuple]]:
        """The rows of the panes that begin before a time, and their tuples."""
        sent = [one for pane, one in self.held if before is None or pane < before]
        self.held = [(pane, one) for pane, one in self.held if not (before is None or pane < before)]
        return self.panes.take(before), sent


@dataclass
class _Fleet:
    """Queries with the same lower half, and the edges whose readings they aggregate."""

    lower: Lower
    queries: list[_Query]
    sent: Grouping
    grids: list[PaneGrid]
    edges: list[_Edge]

    @staticmethod
    def drawn(r: random.Random) -> _Fleet:
        lower = Lower.drawn(r)
        queries = [_Query.drawn(r, lower) for _ in range(r.choice((1, 1, 2, 3)))]
        groupings = [mergeable(query.node) for query in queries]
        sent = united([one for one in groupings if one is not None])
        assert None not in groupings
        assert united(list(reversed([one for one in groupings if one is not None]))) == sent
        grids = [
            PaneGrid(f"q{i}@1", 1, query.windows.slide, query.windows.offset)
            for i, query in enumerate(queries)
        ]
        edges = [_Edge(OpenPanes(sent)) for _ in range(r.choice((1, 1, 2)))]
        return _Fleet(lower, queries, sent, grids, edges)

    def play(self, r: random.Random, tuples: list[Tuple]) -> None:
        """Give tuples to the edges, cut at random, and advance the watermark of the queries."""
        at, mark, latest = 0, _EMPTY, _EMPTY
        most = r.choice((1, 4, 20, 100))
        while at < len(tuples):
            batch = tuples[at : at + r.randint(1, most)]
            at += len(batch)
            self._read(r.choice(self.edges), batch)
            for edge in self.edges:
                if r.random() < 0.5:
                    latest = max(latest, self._cut(r, edge, mark))
            if r.random() < 0.7 and latest > _EMPTY:
                mark = max(mark, latest - self.lower.delay)
                self._advance(r, mark)
        for edge in self.edges:
            self._send(r, edge, None, mark)
        self._advance(r, 2**62)

    def _read(self, edge: _Edge, batch: list[Tuple]) -> None:
        asked = self.queries[0].asked
        columns = {("", name): v for name, v in batch_of(asked.catalog.streams["s"], batch).items()}
        keep = np.ones(len(batch), np.bool_)
        for part in self.queries[0].node.scan.filter:
            own = substitute(part, lambda one: Column("", one.name, one.type))
            keep &= holds(own, columns, len(batch))
        panes = pane_starts(np.asarray(columns["", "ts"].data, np.int64), self.grids)
        kept = {name: vector.take(keep) for name, vector in columns.items()}
        edge.panes.add(panes[keep], kept, int(keep.sum()))
        edge.held += list(zip(panes.tolist(), batch, strict=True))

    def _cut(self, r: random.Random, edge: _Edge, mark: int) -> int:
        panes = [pane for pane, _ in edge.held]
        before = None if not panes or r.random() < 0.3 else r.choice(panes) + r.choice((0, 1))
        return self._send(r, edge, before, mark)

    def _send(self, r: random.Random, edge: _Edge, before: int | None, mark: int) -> int:
        """Send a cut in several parts; returns the latest time of its readings."""
        rows, tuples = edge.cut(before)
        numbers = list(range(len(rows)))
        r.shuffle(numbers)
        received = [self._travelled(rows.take(np.array(numbers[part::3], np.int64))) for part in range(3)]
        for query in self.queries:
            query.take(received, self.sent, tuples, mark)
        return max((one[0] for one in tuples), default=_EMPTY)

    def _travelled(self, rows: PaneRows) -> PaneRows:
        """The rows as a joiner reads them."""
        return from_document(orjson.loads(orjson.dumps(to_document(rows, self.sent))), self.sent)

    def _advance(self, r: random.Random, mark: int) -> None:
        for query in self.queries:
            query.advance(r, mark)
