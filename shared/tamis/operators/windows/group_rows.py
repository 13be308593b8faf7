"""Groups of rows with their partial aggregates, for windows of any kind, and the rows computed from them.

The rows that are counted may be tuples, or combinations of tuples of several sources. Their columns are named
by source and column. Tables of partial aggregates have as their first key a number that places a tuple in
time: a pane, a window or a time. The second key is the group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.declarations.aggregates import Aggregate
from tamis.declarations.definitions import WINDOW_COLUMNS, WINDOW_START
from tamis.expressions.evaluate import evaluate, holds
from tamis.expressions.nodes import Column, Type
from tamis.expressions.vectors import Columns, Vector
from tamis.operators.contract import Rows
from tamis.operators.time_join.key_codes import DictionaryEncoder
from tamis.operators.windows.pane_rows import PaneRows
from tamis.operators.windows.partials import (
    SortedBatch,
    partial_of,
    partials,
    value,
)
from tamis.operators.windows.table import PartialTable, Places
from tamis.plan.nodes import Grouping

Tables = list[PartialTable]


@dataclass(frozen=True)
class Counted:
    """Rows to be counted: their columns, and the number of the group of each."""

    columns: Columns
    groups: Places

    def take(self, at: Places) -> Counted:
        """Some of the rows."""
        return Counted({key: vector.take(at) for key, vector in self.columns.items()}, self.groups[at])


class GroupRows:
    """The groups and aggregates of a query: from columns to tables, and from tables to rows. It keeps the
    values of groups and texts, which tables have as numbers.
    """

    def __init__(self, grouping: Grouping, *, several: bool = False) -> None:
        """`several`: the columns of groups and aggregates are those of several sources."""
        self._grouping, self._several = grouping, several
        self.by = tuple(column for column in grouping.by if column.name not in WINDOW_COLUMNS)
        self.partials = partials(grouping.aggregates)
        self.groups = DictionaryEncoder()
        self._texts = [DictionaryEncoder() for _ in self.partials]
        self.nothing = self._none()

    def empty(self) -> Tables:
        """Tables without entries."""
        return [partial.empty() for partial in self.partials]

    def counted(self, taken: Columns, rows: int) -> Counted:
        """Rows to be counted, with their groups. `taken` has all columns that the query reads."""
        by = [taken[column.alias, column.name] for column in self.by]
        return Counted(taken, group_codes(self.groups, by, rows))

    def added(self, tables: Tables, first: Places, counted: Counted) -> Tables:
        """The tables with some tuples, with the first key of each."""
        batch = SortedBatch.of(first, counted.groups)
        found = []
        for partial, texts, table in zip(self.partials, self._texts, tables, strict=True):
            new = partial.of(batch, counted.columns, texts)
            found.append(partial.added(table, new) if len(new) else table)
        return found

    def merged(self, tables: Tables, first: Places, rows: PaneRows) -> Tables:
        """The tables with rows of partial aggregates, with the first key of each row. They have the query's
        own groups and partial aggregates.
        """
        groups = group_codes(self.groups, rows.groups, len(rows))
        result = []
        for partial, texts, table, sent in zip(self.partials, self._texts, tables, rows.tables, strict=True):
            at = _codes(sent, 0)
            keys: list[NDArray[Any]] = [first[at], groups[at]]
            if len(sent.keys) > len(keys) and sent.keys[2].dtype.kind == "O":
                keys.append(texts.encode(sent.keys[2].tolist()))
            new = partial.merged([sent.with_keys(*keys)])
            result.append(partial.added(table, new) if len(new) else table)
        return result

    def rows(self, tables: Tables, starts: Places, ends: Places) -> Rows:
        """The rows of windows, in order of their ends and groups. The first key of the tables is the window;
        the first table lists all windows and groups that have a row. `starts` and `ends`: for each of these,
        the times at which the window begins and ends.
        """
        window, group = (np.asarray(key, np.int64) for key in tables[0].keys[:2])
        count = len(window)
        columns = self._shown(group, starts, ends)
        place = places(window, group)
        for number, aggregate in enumerate(self._grouping.aggregates):
            i = self._table_of(aggregate)
            own = tables[i]
            at = place(np.asarray(own.keys[0], np.int64), np.asarray(own.keys[1], np.int64))
            columns["", str(number)] = value(aggregate, self.partials[i], own, count, at)
        order = self._ordered(ends, columns)
        if self._grouping.having is not None:
            order = order[holds(self._grouping.having, columns, count)[order]]
        found = {key: vector.take(order) for key, vector in columns.items()}
        return self._selected(found, ends[order])

    def _shown(self, group: Places, starts: Places, ends: Places) -> dict[tuple[str, str], Vector]:
        """The columns of GROUP BY."""
        vectors = group_values(self.groups, self.by, group)
        columns = {
            (column.alias, column.name): vector for column, vector in zip(self.by, vectors, strict=True)
        }
        for column in self._grouping.by:
            if column.name in WINDOW_COLUMNS:
                edges = starts if column.name == WINDOW_START else ends
                columns[column.alias, column.name] = Vector(edges)
        return columns

    def _table_of(self, aggregate: Aggregate) -> int:
        """The number of the table from which an aggregate is computed."""
        wanted = partial_of(aggregate)
        return next(i for i, one in enumerate(self.partials) if replace(one, measures=()) == wanted)

    def _ordered(self, ends: Places, columns: dict[tuple[str, str], Vector]) -> Places:
        """The order by the ends of windows, then by the values of the group, NULL last. It doesn't depend on
        the order of arrival.
        """
        keys: list[NDArray[Any]] = []
        for column in self.by:
            vector = columns[column.alias, column.name]
            null = np.zeros(len(vector), np.bool_) if vector.null is None else vector.null
            data = np.where(null, "", vector.data) if column.type is Type.VARCHAR else vector.data
            keys += [null, np.unique(np.where(null, data[:1], data), return_inverse=True)[1]]
        return np.lexsort((*reversed(keys), ends))

    def _selected(self, columns: dict[tuple[str, str], Vector], ends: Places) -> Rows:
        """The rows of windows. A window's time is its last moment, as in Flink."""
        count = len(ends)
        selected = {name: evaluate(expr, columns, count) for name, expr in self._grouping.select}
        return Rows(selected, np.full(count, -1, np.int64), ends - 1)

    def _none(self) -> Rows:
        read = [*self._grouping.by]
        read += [Column("", str(number), one.type) for number, one in enumerate(self._grouping.aggregates)]
        columns = {(c.alias, c.name): Vector.from_list([], c.type) for c in read}
        return self._selected(columns, np.empty(0, np.int64))

    def forget(self, *kept: Tables) -> list[Tables]:
        """Forget groups and texts that no entry of these tables uses any more; returns the tables with the
        numbers that they then have.
        """
        remaining = [list(tables) for tables in kept]
        if self.groups.sparse(sum(len(tables[0]) for tables in remaining)):
            renamed = self.groups.keep(np.concatenate([_codes(tables[0], 1) for tables in remaining]))
            remaining = [
                [one.with_keys(one.keys[0], renamed[_codes(one, 1)]) for one in tables]
                for tables in remaining
            ]
        for i, texts in enumerate(self._texts):
            if texts.sparse(sum(len(tables[i]) for tables in remaining)):
                renamed = texts.keep(np.concatenate([_codes(tables[i], 2) for tables in remaining]))
                for tables in remaining:
                    own = tables[i]
                    tables[i] = PartialTable((*own.keys[:2], renamed[_codes(own, 2)]), own.measures)
        return remaining

    def entries(self, tables: Tables) -> int:
        """The number of groups, and of the values that `median` or `count(DISTINCT)` needs."""
        pairs = zip(self.partials, tables, strict=True)
        return sum(len(table) for partial, table in pairs if partial.column is None or partial.each)

    def dump(self, tables: Tables) -> list[Any]:
        """Tables as JSON."""
        return [partial.dump(table) for partial, table in zip(self.partials, tables, strict=True)]

    def restored(self, dumped: list[Any]) -> Tables:
        """The tables that `dump` has written."""
        return [partial.restored(one) for partial, one in zip(self.partials, dumped, strict=True)]

    def dump_values(self) -> tuple[list[Any], list[list[Any]]]:
        """The values of groups and texts as JSON."""
        return self.groups.values(), [one.values() for one in self._texts]

    def restore_values(self, groups: list[Any], texts: list[list[Any]]) -> None:
        """Take over the values that `dump_values` has written."""
        self.groups = DictionaryEncoder([tuple(one) if isinstance(one, list) else one for one in groups])
        self._texts = [DictionaryEncoder(one) for one in texts]

    def form(self) -> list[list[object]]:
        """The form of tables as JSON: the columns of groups, and the partial aggregates. Names of sources are
        part of it only if there are several.
        """

        def named(column: Column) -> list[str]:
            return [*([column.alias] if self._several else []), column.name, str(column.type)]

        kept: list[object] = [
            [
                p.column and named(p.column),
                p.measures,
                p.each,
                *([*named(p.order), p.greatest] if p.order is not None else []),
            ]
            for p in self.partials
        ]
        return [[named(one) for one in self.by], kept]


def _codes(table: PartialTable, key: int) -> Places:
    return np.asarray(table.keys[key], np.int64)


def group_codes(groups: DictionaryEncoder, by: Sequence[Vector], rows: int) -> Places:
    """The codes of the groups of rows, of which `by` has the values."""
    if not by:
        return np.full(rows, groups.encode([()])[0], np.int64)
    lists = [_plain(vector) for vector in by]
    return groups.encode(lists[0] if len(lists) == 1 else list(zip(*lists, strict=True)))


def group_values(groups: DictionaryEncoder, by: Sequence[Column], codes: Places) -> list[Vector]:
    """The values of the columns `by` of the groups with these codes."""
    values = groups.values()
    used, which = np.unique(codes, return_inverse=True)
    keys = [values[code] for code in used.tolist()]
    parts = [keys] if len(by) == 1 else [[key[i] for key in keys] for i in range(len(by))]
    return [Vector.from_list(part, c.type).take(which) for part, c in zip(parts, by, strict=True)]


def _plain(vector: Vector) -> list[Any]:
    """Values as Python objects; -0.0 becomes 0.0."""
    return (
        vector.to_list()
        if vector.data.dtype.kind != "f"
        else Vector(vector.data + 0.0, vector.null).to_list()
    )


def places(window: Places, group: Places) -> Callable[[Places, Places], Places]:
    """A function that finds the positions of windows and groups among the given ones, which are in order."""
    distinct = np.unique(window)
    many = int(group.max(initial=0)) + 1
    known = np.searchsorted(distinct, window) * many + group
    return lambda w, g: np.searchsorted(known, np.searchsorted(distinct, w) * many + g)


def with_computed_values(grouping: Grouping, given: Columns, size: int) -> Columns:
    """Columns of combinations with those that the query computes from them."""
    if not grouping.computed:
        return given
    computed = {(one.source, one.name): evaluate(one.expr, given, size) for one in grouping.computed}
    return {**given, **computed}
