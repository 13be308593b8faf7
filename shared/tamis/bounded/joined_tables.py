"""Numbers of values of columns in the tuples of a stream with windows, which may be joined with tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tamis.analysis.conjuncts import flatten_and
from tamis.bounded.application_time.static_relations import query_inputs
from tamis.bounded.timeless.translate import translate
from tamis.expressions.nodes import Call, Column, aliases, columns
from tamis.operators.synopses.bound import Factor, terms
from tamis.query.computed_columns import limited, meaning, with_computed
from tamis.query.model import Catalog, Output, SessionGroupBy, TimelessSelect, WindowGroupBy

Cases = Sequence[tuple[Factor, ...]]


@dataclass(frozen=True)
class ValueLimits:
    """Limits for the number of combinations of values of some columns.

    `cases`: for each alternative of the conditions, how many values the columns have. `each`: how many values
    the columns of tables among them have, which is a limit for the combinations of a single tuple.
    """

    cases: Cases
    each: tuple[Factor, ...] = ()


def limited_cases(query: TimelessSelect, catalog: Catalog) -> Cases | None:
    """For each alternative of a query's conditions, how many values its outputs have; None if there is no
    alternative. CHECKs with OR over DOUBLEs count only if they are needed, since they make more alternatives.
    """
    cases: Cases | None = None
    for checks in (False, True):
        found = translate(query, catalog, checks=checks)
        if found.contradiction is not None or not found.branches:
            return None
        cases = [terms(one.conjunction, one.closure)[0].factors for one in found.branches]
        if all(factor.count < math.inf for case in cases for factor in case):
            break
    return cases


class JoinedTables:
    """The tables with which the stream of a query is joined; there may be none."""

    def __init__(self, query: WindowGroupBy | SessionGroupBy, catalog: Catalog) -> None:
        """Raises InputError if the file of a table can't be read."""
        inputs = query_inputs(query, catalog)
        (source,) = query.windowed
        self._query, self._source = query, source
        self._catalog = with_computed(inputs.catalog, query)
        self._alias = source.alias
        self._rows = {
            one.alias: inputs.relations[one.stream] for one in query.sources if one.stream in inputs.relations
        }

    @property
    def contradiction(self) -> str | None:
        """The reason why the query never has a row; None if it may have rows."""
        for one in self._query.sources:
            if one.alias in self._rows and not len(self._rows[one.alias]):
                return f"table {one.stream} has no rows"
        return None if self._cases(()) is not None else "the conditions contradict each other"

    def of_stream(self, shown: Sequence[Column]) -> list[Column]:
        """The columns of the stream whose values must be limited so that those of `shown` are."""
        read = limited(shown, self._query, self._catalog)
        return [column for column in read if column.alias == self._alias]

    def limits(self, shown: Sequence[Column]) -> ValueLimits:
        """Limits for the combinations of values of columns."""
        read = [
            one
            for column in limited(shown, self._query, self._catalog)
            # The rows of a table have no computed columns.
            for one in ([column] if column.alias == self._alias else columns(meaning(column, self._query)))
        ]
        found = [self._in_table(column) for column in read]
        cases = self._cases([column for column in found if column.alias == self._alias]) or []
        tables = self._factors([column for column in found if column.alias != self._alias])
        each = self._factors([column for column in read if column.alias != self._alias])
        return ValueLimits([(*one, *tables) for one in cases], each)

    def _cases(self, shown: Sequence[Column]) -> Cases | None:
        """For each alternative of the stream's own conditions, how many values columns of it have; None if
        there is no alternative.
        """
        outputs = tuple(Output(f"{column.alias}.{column.name}", column) for column in dict.fromkeys(shown))
        conjuncts = tuple(one for one in self._query.conjuncts if aliases(one.expr) <= {self._alias})
        asked = TimelessSelect((self._source,), conjuncts, outputs, distinct=True)
        return limited_cases(asked, self._catalog)

    def _factors(self, read: Sequence[Column]) -> tuple[Factor, ...]:
        """For each table, how many combinations of values these columns have in its rows."""
        found = []
        for alias, rows in self._rows.items():
            names = list(dict.fromkeys(column.name for column in read if column.alias == alias))
            if names:
                values = zip(*(rows.columns[name].to_list() for name in names), strict=True)
                named = ", ".join(f"{alias}.{name}" for name in names)
                found.append(Factor(len(set(values)), f"values of {named}"))
        return tuple(found)

    def _in_table(self, column: Column) -> Column:
        """A column of a table that must be equal to a column of the stream; the column itself if there is
        none.
        """
        parts = (part for one in self._query.conjuncts for part in flatten_and(one.expr))
        for part in parts:
            if isinstance(part, Call) and part.op == "=" and column in part.args:
                for other in part.args:
                    if isinstance(other, Column) and other.alias in self._rows:
                        return other
        return column
