"""The clauses of queries with resolved names: conjuncts, columns of SELECT, aggregates, and special joins.

Every `Column` in the query of an alert or a derived stream has the alias of a source of this query and the
name of a column of that source's *base* stream, because derived streams and functions are inlined.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tamis.declarations.aggregates import Aggregate
from tamis.declarations.definitions import WINDOW_COLUMNS, ColumnDef
from tamis.errors import Position
from tamis.expressions.nodes import Call, Column, Expr


@dataclass(frozen=True)
class Conjunct:
    """One conjunct of WHERE or ON, or of the WHERE of an inlined derived stream."""

    expr: Expr
    text: str
    position: Position = field(default=Position(1, 1), compare=False)


@dataclass(frozen=True)
class Output:
    """One column of SELECT."""

    name: str
    expr: Expr


@dataclass(frozen=True)
class Grouping:
    """GROUP BY, HAVING and the aggregates of a query. SELECT and HAVING are over the columns `by` and, for
    the k-th aggregate, `Grouping.value(k)`.

    Expressions in GROUP BY, and expressions that are aggregated, are `computed` columns of a source: its
    alias, and the column (`tamis.query.computed_columns`). An expression over several sources is a column of
    a stream with windows.
    """

    by: tuple[Column, ...]
    aggregates: tuple[Aggregate, ...]
    having: Expr | None = None
    computed: tuple[tuple[str, ColumnDef], ...] = ()

    def value(self, number: int) -> Column:
        """The column that stands for the value of an aggregate."""
        return Column("", str(number), self.aggregates[number].type)


@dataclass(frozen=True)
class AsOfJoin:
    """ASOF JOIN: a tuple of the first source joins the last tuple of `alias` before it.

    Candidates are the tuples of `alias` that pass `filters` and agree in all `keys`: pairs of a column of an
    earlier source and a column of `alias`. They lie at least `least` microseconds (0 or more) before the
    tuple. The candidate with the greatest event time is chosen. If it lies more than `most` microseconds
    before the tuple, or if there is none, the columns of `alias` are NULL (`outer`), or there is no row.

    Several candidates of the greatest event time are compared column by column, in the order of the stream,
    over the columns that the query reads; NULL comes first. The greatest is chosen.
    """

    alias: str
    keys: tuple[tuple[Column, Column], ...]
    least: int
    most: int | None = None
    outer: bool = False
    filters: tuple[Conjunct, ...] = ()


@dataclass(frozen=True)
class Absence:
    """NOT EXISTS: the sources of its subquery, and the conjuncts of its WHERE.

    A combination of the other sources is a row only if no tuples of these sources meet the conjuncts with it.
    """

    aliases: tuple[str, ...]
    conjuncts: tuple[Conjunct, ...]
    position: Position = field(default=Position(1, 1), compare=False)


def same_window(expr: Expr, windowed: frozenset[str]) -> frozenset[str] | None:
    """The two sources whose windows `expr` equates, None for another expression; `windowed` are the aliases
    with windows.
    """
    if isinstance(expr, Call) and expr.op == "=":
        left, right = expr.args
        if isinstance(left, Column) and isinstance(right, Column) and left.name == right.name:
            pair = frozenset((left.alias, right.alias))
            if left.name in WINDOW_COLUMNS and len(pair) == 2 and pair <= windowed:
                return pair
    return None
