"""Evaluator of GROUP BY: after each tuple a row for every group whose row changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.declarations.aggregates import needs_all_values
from tamis.expressions.evaluate import evaluate, holds
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.operators.aggregates.accumulators import (
    Accumulators,
    PartialAggregates,
    Sums,
    bigint,
    measures_of,
    whole,
)
from tamis.operators.aggregates.kernels import touched_groups
from tamis.operators.aggregates.values import Percentile, Values
from tamis.operators.contract import WITHDRAWN, Batch, Rows
from tamis.operators.kept_columns import kept_columns
from tamis.operators.row_store import Store, TextCodes, as_numbers
from tamis.operators.state import (
    number_from_text,
    number_to_text,
    pack_state,
    unpack_state,
)
from tamis.operators.synopses.columns import Ints, Mask, parts_of
from tamis.operators.synopses.row_numbering import RowNumbering, firsts, grown
from tamis.operators.timeless.alternatives import alternatives
from tamis.operators.timeless.matches import Alternative, Matches, Wanted
from tamis.operators.timeless.represented import RepresentedMatches
from tamis.plan import nodes


class GroupRows:
    """The last row of each group, and the mask of the groups that have a row now."""

    def __init__(self, types: Sequence[Type]) -> None:
        self._rows = Store(types)
        self._has: Mask = np.zeros(0, np.bool_)

    def grow(self, groups: int) -> None:
        """Make room."""
        self._rows.grow(groups)
        self._has = grown(self._has, groups)

    def changes(self, group: Ints, rows: Sequence[Vector], holding: Mask) -> Mask:
        """The mask of the rows that change their group, if rows are taken one after the other. A row changes
        its group if it differs from the group's last row. It also does if it isn't `holding` and the group
        has a row, which is then removed.
        """
        count = len(group)
        order = np.argsort(group, kind="stable")
        follows = group[order[1:]] == group[order[:-1]]
        # Index of the group's last row: among these rows, or after them the stored one.
        last = count + np.arange(count)
        last[order[1:][follows]] = order[:-1][follows]
        had = np.concatenate([holding, self._has[group]])[last]
        same = np.ones(count, np.bool_)
        for column, vector in enumerate(rows):
            same &= _equal(vector, Vector.concat([vector, self._rows.take(column, group)]).take(last))
        ends = np.ones(count, np.bool_)
        ends[last[last < count]] = False
        self._rows.put(group[ends], [vector.take(ends) for vector in rows])
        self._has[group[ends]] = holding[ends]
        return np.where(holding, ~(had & same), had)

    def dumped(self, groups: int) -> list[Any]:
        """As JSON."""
        return [self._has[:groups].tolist(), self._rows.dumped()]

    def restore(self, dumped: Sequence[Any]) -> None:
        """Restore the dumped rows of all groups."""
        has, rows = dumped
        self._has = np.array(has, np.bool_)
        self._rows.restore(rows, len(has))


def _equal(one: Vector, other: Vector) -> Mask:
    """The rows in which values are equal; NULL equals itself."""
    null = [np.zeros(len(v), np.bool_) if v.null is None else v.null for v in (one, other)]
    return np.where(null[0] | null[1], null[0] & null[1], one.data == other.data)


class Groups:
    """A query with aggregates. Rows under SELECT are counted in their groups, one by one in their order. A
    tuple *touches* the groups of the rows that it completes; after the tuple, each of these groups may have a
    new row.
    """

    def __init__(self, node: nodes.Groups) -> None:
        self.streams = frozenset(node.streams)
        self._grouping = grouping = node.grouping
        read = [(one.column, one) for one in grouping.aggregates if one.column is not None]
        each = tuple(dict.fromkeys(column for column, one in read if needs_all_values(one)))
        made = tuple(dict.fromkeys(column for column, one in read if not needs_all_values(one)))
        measures = {column: measures_of(column, grouping.aggregates) for column in made}
        self._wanted = Wanted(tuple(dict.fromkeys((*grouping.by, *each))), measures)
        self._kept = kept_columns(node.kept)
        self._runs: list[tuple[Wanted, Alternative]] = []
        for part in node.parts:
            wanted = self._wanted_of(part)
            self._runs += [(wanted, run) for run in alternatives(part.matching, self._kept, wanted)]
        # In place of the other runs.
        self._represented = RepresentedMatches(node, self._wanted) if node.represented else None
        self._texts: TextCodes = {}
        self._numbers = RowNumbering(2 * len(grouping.by))
        self._keys = Store([one.type for one in grouping.by])
        self._seen: Ints = np.zeros(0, np.int64)
        self._rows = Sums()
        self._accumulators = {column: Accumulators(column, own) for column, own in measures.items()}
        asked_of = {
            column: [
                percentile for other, one in read if other == column and (percentile := Percentile.of(one))
            ]
            for column in each
        }
        self._values = {column: Values(column, dict.fromkeys(own)) for column, own in asked_of.items()}
        self._group_rows = GroupRows([expr.type for _, expr in grouping.select])

    def take(self, stream: str, batch: Batch, rows: int) -> Rows:
        """Count the rows that the tuples complete; returns the new rows of the groups that each tuple
        changed.
        """
        return self.take_interleaved({stream: batch}, np.zeros(rows, np.int64))

    def take_interleaved(self, batches: Mapping[str, Batch], of: NDArray[np.int64]) -> Rows:
        """Count the rows that interleaved tuples complete; returns the new rows of the groups that each tuple
        changed.
        """
        changes = [self._changes(one) for one in self._matches(batches, of)]
        return Rows.concat(changes or [self._changes(Matches.none(self._wanted))])

    def _matches(self, batches: Mapping[str, Batch], of: NDArray[np.int64]) -> Iterator[Matches]:
        """The rows under SELECT that the tuples complete, for one part of the tuples after the other."""
        if self._represented is not None:
            yield from self._represented.take(batches, of)
        elif self._runs:
            if self._grouping.computed:
                batches = self._with_values(batches, of)
            found = [self._filled(wanted, run.take(batches, of)) for wanted, run in self._runs]
            yield Matches.merged(found)

    def _with_values(self, batches: Mapping[str, Batch], of: NDArray[np.int64]) -> Mapping[str, Batch]:
        """The batches with the values of computed columns."""
        rows = dict(zip(batches, np.bincount(of, minlength=len(batches)).tolist(), strict=True))
        wider = {name: dict(batch) for name, batch in batches.items()}
        for one in self._grouping.computed:
            if one.source in batches:
                own = {("", name): vector for name, vector in batches[one.source].items()}
                wider[one.source][one.name] = evaluate(one.expr, own, rows[one.source])
        return wider

    def advance(self, stream: str, watermark: int) -> Rows:
        """No rows: the watermark isn't read."""
        return self._changes(Matches.none(self._wanted))

    def entries(self) -> int:
        """The number of entries of all alternatives, and for each group the number of values that its
        aggregates need, at least one.
        """
        groups = len(self._keys)
        own = np.zeros(groups, np.int64)
        for values in self._values.values():
            own += values.counts(groups)
        return sum(run.entries for run in self._kept_by()) + int(np.maximum(own, 1).sum())

    def _kept_by(self) -> Sequence[Alternative | RepresentedMatches]:
        return [run for _, run in self._runs] if self._represented is None else [self._represented]

    def dump(self) -> bytes:
        """The entries of all alternatives and the groups, as JSON."""
        groups = len(self._keys)
        kept = [
            [number_to_text(one) for one in self._rows.values[:groups].tolist()],
            self._keys.dumped(),
            [one.dumped(groups) for one in self._accumulators.values()],
            [one.dumped() for one in self._values.values()],
            self._group_rows.dumped(groups),
        ]
        return pack_state(self._form(), [[run.dumped() for run in self._kept_by()], kept])

    def load(self, state: bytes) -> None:
        """Restore a dumped state. Raises RefusedError for the state of another query or version."""
        runs, (rows, keys, accumulators, values, shown) = unpack_state(state, self._form())
        for run, kept in zip(self._kept_by(), runs, strict=True):
            run.restore(kept)
        self._keys.restore(keys, len(rows))
        self._numbered(self._keys.all(), len(rows))
        self._grow()
        self._rows.values = whole([int(number_from_text(text)) for text in rows])
        for accumulator, kept in zip(self._accumulators.values(), accumulators, strict=True):
            accumulator.restore(kept)
        for each, kept in zip(self._values.values(), values, strict=True):
            each.restore(kept)
        self._group_rows.restore(shown)

    def _form(self) -> list[Any]:
        calls = [
            [
                one.function,
                one.distinct,
                one.column and [one.column.alias, one.column.name],
                *([str(one.fraction)] if one.fraction is not None else []),
            ]
            for one in self._grouping.aggregates
        ]
        kept = [] if self._represented is None else [self._represented.form()]
        return ["groups", calls, len(self._runs), dict(sorted(self._kept.names.items())), *kept]

    def _wanted_of(self, part: nodes.GroupsPart) -> Wanted:
        """The columns and partial aggregates that one part of the query provides."""
        if part.counted:
            return self._wanted
        if part.extreme is None:
            return Wanted(self._wanted.columns)
        column = self._grouping.aggregates[part.extreme].column
        assert column is not None, "an extreme is one of a column"
        return Wanted(self._grouping.by, {column: self._wanted.aggregated[column]})

    def _filled(self, wanted: Wanted, found: Matches) -> Matches:
        """The matches of a part, with NULL for the aggregates that other parts provide."""
        rows = len(found.places)
        columns = {
            (one.alias, one.name): Vector.nulls(one.type, rows)
            for one in self._wanted.columns
            if one not in wanted.columns
        }
        aggregated = {
            (one.alias, one.name): PartialAggregates.of(Vector.nulls(one.type, rows), measures)
            for one, measures in self._wanted.aggregated.items()
            if one not in wanted.aggregated
        }
        return replace(
            found, columns={**found.columns, **columns}, aggregated={**found.aggregated, **aggregated}
        )

    def _changes(self, found: Matches) -> Rows:
        """Count rows in their groups; returns the changes of the result."""
        by = [found.columns[one.alias, one.name] for one in self._grouping.by]
        before, count = len(self._keys), len(found.places)
        group = self._numbered(by, count)
        new = firsts(group, before)
        self._keys.append([one.take(new) for one in by], len(new))
        self._grow()
        first, last = np.empty(count, np.int64), np.empty(count, np.int64)
        number = touched_groups(found.places, group, self._seen, first, last)
        first, last = first[:number], last[:number]
        columns = {
            (one.alias, one.name): vector.take(first)
            for one, vector in zip(self._grouping.by, by, strict=True)
        }
        columns |= self._aggregates(group, found, last)
        selected = {name: evaluate(expr, columns, number) for name, expr in self._grouping.select}
        having = self._grouping.having
        holding = np.ones(number, np.bool_) if having is None else holds(having, columns, number)
        news = np.flatnonzero(self._group_rows.changes(group[first], list(selected.values()), holding))
        rows = Rows(selected, found.places[first]).take(news)
        if having is None:
            return rows
        return Rows({**rows.columns, WITHDRAWN: Vector(~holding[news])}, rows.completed)

    def _aggregates(self, group: Ints, found: Matches, last: Ints) -> dict[tuple[str, str], Vector]:
        """The values of the aggregates after the rows `last`."""
        rows = self._rows.add(group, found.weights)[last]
        aggregated = {
            column: one.add(group, found.aggregated[column.alias, column.name]).take(last)
            for column, one in self._accumulators.items()
        }
        value_counts = {
            column: one.add(group, found.columns[column.alias, column.name], found.weights).take(last)
            for column, one in self._values.items()
        }
        columns = {}
        for number, aggregate in enumerate(self._grouping.aggregates):
            column = aggregate.column
            if column is None:
                vector = bigint(rows)
            elif aggregate.distinct:
                vector = bigint(value_counts[column].count)
            elif (percentile := Percentile.of(aggregate)) is not None:
                vector = self._values[column].percentile(percentile, value_counts[column])
            else:
                vector = aggregated[column].value(aggregate)
            columns["", str(number)] = vector
        return columns

    def _numbered(self, by: list[Vector], rows: int) -> Ints:
        """The numbers of the groups with these values."""
        found = [part for one in by for part in parts_of(as_numbers(one, self._texts))]
        return self._numbers.of(np.stack(found, axis=1) if found else np.empty((rows, 0), np.int64))

    def _grow(self) -> None:
        groups = len(self._keys)
        self._seen = grown(self._seen, groups, fill=-1)
        self._rows.grow(groups)
        self._group_rows.grow(groups)
        for accumulators in self._accumulators.values():
            accumulators.grow(groups)
        for values in self._values.values():
            values.grow(groups)
