"""The effect of HAVING on the verdict on a query with aggregates.

A condition in HAVING on grouped columns alone removes whole groups, so it is a filter as in WHERE.

Any other condition in HAVING may hide all rows by which states differ: a query with `HAVING count(*) < 3`
needs at most three tuples of a group. Then a failing condition of the theorems does not prove the query
unbounded. It does prove it if the rows of an example can be made to pass HAVING. That is possible if HAVING
only demands that counts are large, or restricts aggregates of columns that no other condition names.
"""

from __future__ import annotations

from tamis.analysis.conjuncts import flatten_and
from tamis.bounded.conjunctive.decide import Violation
from tamis.bounded.conjunctive.normal_form import EXTREME_STREAM, Conjunction
from tamis.expressions.nodes import (
    COMPARISONS,
    FLIPPED,
    Call,
    Column,
    Expr,
    Literal,
    columns,
)
from tamis.expressions.sql_text import to_sql
from tamis.query.computed_columns import meaning
from tamis.query.model import Aggregate, Catalog, Conjunct, Grouping, Query

_LARGE = (">", ">=", "!=")
# A variance may be the same for other values, and a percentile may be the least or the greatest value.
_TELLING = ("count", "sum", "avg", "min", "max", "median")
# In a group of its own, the first or the second tuple already makes a difference.
_SMALL = {"<": 2, "<=": 1, "=": 1}


def on_groups(grouping: Grouping) -> tuple[Conjunct, ...]:
    """The parts of HAVING over grouped columns alone, as conditions of WHERE."""
    return tuple(Conjunct(part, to_sql(part)) for part in _parts(grouping) if _grouped(part, grouping))


def caveat(query: Query, catalog: Catalog, conjunction: Conjunction, failing: Violation) -> str | None:
    """The reason why a failing condition does not yet prove a query with aggregates unbounded; None if it
    does.
    """
    grouping = query.grouping
    if grouping is None:
        return None
    own = failing.node is not None and conjunction.name(failing.node) in {
        _name(column) for column in grouping.by
    }
    valued = not conjunction.distinct or EXTREME_STREAM in conjunction.streams or failing.node is not None
    if valued and not own and not any(_shows(output.expr, query) for output in query.select):
        return "SELECT shows the value of no aggregate directly"
    free = {_name(a.column) for a in grouping.aggregates if a.column and _free(a.column, query, catalog)}
    free -= {node.name for node in conjunction.nodes}
    left = [part for part in _parts(grouping) if not _grouped(part, grouping)]
    read = [_read(column, grouping) for part in left for column in columns(part)]
    if len(set(read)) < len(read) or not all(_kept(part, grouping, free, own) for part in left):
        return "HAVING may remove all rows in which a difference would show"
    return None


def _parts(grouping: Grouping) -> list[Expr]:
    return [] if grouping.having is None else flatten_and(grouping.having)


def _grouped(part: Expr, grouping: Grouping) -> bool:
    return all(column in grouping.by for column in columns(part))


def _name(column: Column) -> str:
    return f"{column.alias}.{column.name}"


def _read(column: Column, grouping: Grouping) -> str | None:
    """The column that an aggregate is of; None for counts. Two conditions on one column may contradict each
    other.
    """
    if column.alias:
        return _name(column)
    aggregate = grouping.aggregates[int(column.name)]
    return None if aggregate.function == "count" or aggregate.column is None else _name(aggregate.column)


def _free(column: Column, query: Query, catalog: Catalog) -> bool:
    """True if no declaration restricts the column."""
    name = next(source.stream for source in query.sources if source.alias == column.alias)
    stream = catalog.streams[name]
    checks = [one.check for one in stream.columns if one.check is not None]
    named = {one.name for check in checks for one in columns(check)}
    known = stream.column(column.name)
    plain = known is not None and known.computed is None
    return column.type.numeric and plain and column.name not in named


def _shows(expr: Expr, query: Query) -> bool:
    """True if a different value of the aggregate always gives a different value of the expression. The result
    of an aggregated expression may be the same for different values of its columns.
    """
    if isinstance(expr, Column):
        grouping = query.grouping
        if grouping is None or expr in grouping.by:
            return False
        aggregate = grouping.aggregates[int(expr.name)]
        plain = aggregate.column is None or meaning(aggregate.column, query) == aggregate.column
        return plain and aggregate.function in _TELLING
    if not isinstance(expr, Call) or expr.op not in ("+", "-", "*", "/", "neg"):
        return False
    rest = [one for one in expr.args if not isinstance(one, Literal)]
    return len(rest) == 1 and _shows(rest[0], query) and _nonzero(expr)


def _nonzero(expr: Call) -> bool:
    return expr.op in ("+", "-") or all(one.value != 0 for one in expr.args if isinstance(one, Literal))


def _kept(part: Expr, grouping: Grouping, free: set[str], own: bool) -> bool:
    """True if the rows of an example can satisfy the condition. `own`: the groups themselves differ."""
    if not isinstance(part, Call) or part.op not in COMPARISONS:
        return False
    op, (left, right) = part.op, part.args
    if isinstance(left, Literal):
        op, left, right = FLIPPED.get(op, op), right, left
    value = _number(right)
    if not isinstance(left, Column) or left.alias or value is None:
        return False
    aggregate: Aggregate = grouping.aggregates[int(left.name)]
    if aggregate.function not in _TELLING or _computed(aggregate, grouping):
        return False  # the tuples of an example needn't meet a FILTER
    if aggregate.function != "count":
        return aggregate.column is not None and _name(aggregate.column) in free
    if aggregate.distinct and (aggregate.column is None or _name(aggregate.column) not in free):
        return False
    return op in _LARGE or (own and value >= _SMALL[op])


def _computed(aggregate: Aggregate, grouping: Grouping) -> bool:
    column = aggregate.column
    return column is not None and any(
        (alias, one.name) == (column.alias, column.name) for alias, one in grouping.computed
    )


def _number(expr: Expr) -> float | None:
    """The value of a constant; None for another expression."""
    if isinstance(expr, Call) and expr.op == "neg":
        inner = _number(expr.args[0])
        return None if inner is None else -inner
    if isinstance(expr, Literal) and isinstance(expr.value, int | float):
        return float(expr.value)
    return None
