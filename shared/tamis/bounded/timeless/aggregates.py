"""Aggregate queries as queries without aggregates (arasu-2004, section 8.2).

Where an aggregate counts duplicates, one query serves all aggregates: its buckets are the groups and the
coordinates of tuples, with counts, sums and extremes for each bucket. Otherwise each MIN and MAX is a
DISTINCT query of its own, with the extreme as a comparison, and one more query gives the groups and the
values of COUNT(DISTINCT). A query with several aggregates is the join of these by group.

MAX(a) is the greatest z for which some row has `z <= a`. So a query with MAX(a) needs the same memory as a
DISTINCT query without it that also joins a stream of all numbers z by `z <= a`. For MIN(a) the condition is
`a <= z`. The verdict on this DISTINCT query replaces condition C3 of the theorem. That condition accepts some
unbounded queries and refuses some bounded ones: for example, it accepts `MAX(s.b)` with `s.b < t.d`, which is
unbounded.

A condition in HAVING on grouped columns alone removes whole groups, so it is a filter as in WHERE.

Any other condition in HAVING may hide all rows by which states differ: a query with `HAVING count(*) < 3`
needs at most three tuples of a group. Then a failing condition of the theorems does not prove the query
unbounded. It does prove it if the rows of an example can be made to pass HAVING. That is possible if HAVING
only demands that counts are large, or restricts aggregates of columns that no other condition names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tamis.analysis.conjuncts import flatten_and
from tamis.bounded.timeless.differences import one_to_one
from tamis.bounded.timeless.minimised_alternatives import (
    Minimal,
    minimal,
    with_self_join_caveat,
)
from tamis.bounded.timeless.translate import Translation, translate
from tamis.declarations.aggregates import Aggregate, needs_all_values, needs_counts
from tamis.difference_bounds import Closure
from tamis.expressions.nodes import (
    COMPARISONS,
    FLIPPED,
    Call,
    Column,
    Expr,
    Literal,
    Type,
    columns,
)
from tamis.expressions.sql_text import to_sql
from tamis.operators.synopses.decide import Violation, violations
from tamis.plan.conjunction import (
    EXTREME_STREAM,
    Conjunction,
    Extreme,
    with_extreme,
)
from tamis.query.computed_columns import limited, meaning
from tamis.query.model import Catalog, Conjunct, Grouping, Output, Query, TimelessSelect, grouping_of

_LARGE = (">", ">=", "!=")
# A variance may be the same for other values, and a percentile may be the least or the greatest value.
_TELLING = ("count", "sum", "avg", "min", "max", "median")
# In a group of its own, the first or the second tuple already makes a difference.
_SMALL = {"<": 2, "<=": 1, "=": 1}


@dataclass(frozen=True)
class Subquery:
    """A query without aggregates that serves one with aggregates. `counted`: with duplicates; it then serves
    all aggregates. `extreme`: the number of the MIN or MAX that it is for.
    """

    translation: Translation
    counted: bool
    extreme: int | None = None

    def alternatives(
        self, aggregates: tuple[Aggregate, ...]
    ) -> Iterator[tuple[Minimal, Conjunction, Closure]]:
        """Its alternatives, each with the query and closure by which tuples are kept."""
        if self.extreme is None:
            for one in minimal(self.translation):
                query = replace(one.conjunction, grouped=True)
                yield replace(one, conjunction=query), query, one.closure
            return
        aggregate = aggregates[self.extreme]
        kind: Extreme = "max" if aggregate.function == "max" else "min"
        for branch in self.translation.branches:
            query = replace(with_self_join_caveat(self.translation, branch.conjunction), grouped=True)
            one = Minimal(query, branch.closure, {}, branch)
            assert aggregate.column is not None
            node = self.translation.columns.index(aggregate.column) + 1
            yield one, *with_extreme(query, branch.closure, node, kind)


def subqueries(query: Query, grouping: Grouping, catalog: Catalog) -> tuple[Subquery, ...]:
    """The queries that give the aggregates of `query`; the first one gives the groups.

    As in `decided_translation`, CHECKs that are more than limits of columns count only if they are needed.
    """
    plain = _subqueries(query, grouping, catalog, False)
    if not _fails(plain, grouping):
        return plain
    checked = _subqueries(query, grouping, catalog, True)
    return plain if _fails(checked, grouping) else checked


def _fails(parts: tuple[Subquery, ...], grouping: Grouping) -> bool:
    return any(
        True
        for part in parts
        for _, query, closure in part.alternatives(grouping.aggregates)
        for _ in violations(query, closure)
    )


def _subqueries(query: Query, grouping: Grouping, catalog: Catalog, checks: bool) -> tuple[Subquery, ...]:
    query = replace(query, conjuncts=(*query.conjuncts, *on_groups(grouping)))
    values = [a.column for a in grouping.aggregates if needs_all_values(a) and a.column is not None]
    if any(needs_counts(one) for one in grouping.aggregates):
        return (
            Subquery(
                _translated(query, (*grouping.by, *values), catalog, distinct=False, checks=checks), True
            ),
        )
    found = [
        Subquery(_translated(query, (*grouping.by, *values), catalog, distinct=True, checks=checks), False)
    ]
    for number, aggregate in enumerate(grouping.aggregates):
        if aggregate.function not in ("min", "max") or aggregate.column is None:
            continue
        translation = _translated(
            query, grouping.by, catalog, (aggregate.column,), distinct=True, checks=checks
        )
        alias = aggregate.column.alias
        test = Call("is_null", (aggregate.column,), Type.BOOLEAN)
        not_null = {**translation.not_null}
        not_null[alias] = (*not_null[alias], Call("not", (test,), Type.BOOLEAN))
        found.append(Subquery(replace(translation, not_null=not_null), False, number))
    return tuple(found)


def _translated(
    query: Query,
    shown: tuple[Column, ...],
    catalog: Catalog,
    extra: tuple[Column, ...] = (),
    *,
    distinct: bool,
    checks: bool,
) -> Translation:
    """The query without aggregates that shows some columns. In place of a computed column it may show the
    columns of its expression; then a failing condition proves nothing.
    """
    few = limited(shown, query, catalog)
    select = tuple(Output(f"{column.alias}.{column.name}", column) for column in few)
    found = translate(
        TimelessSelect(query.sources, query.conjuncts, select, distinct=distinct),
        catalog,
        extra,
        checks=checks,
    )
    doubts = tuple(
        f"it isn't known how many values {column.name} has"
        for column in dict.fromkeys(shown)
        if column not in few and one_to_one(meaning(column, query)) is None
    )
    if not doubts:
        return found
    branches = (
        replace(one, conjunction=replace(one.conjunction, caveats=(*one.conjunction.caveats, *doubts)))
        for one in found.branches
    )
    return replace(found, branches=tuple(branches))


def on_groups(grouping: Grouping) -> tuple[Conjunct, ...]:
    """The parts of HAVING over grouped columns alone, as conditions of WHERE."""
    return tuple(Conjunct(part, to_sql(part)) for part in _parts(grouping) if _grouped(part, grouping))


def having_caveat(query: Query, catalog: Catalog, conjunction: Conjunction, failing: Violation) -> str | None:
    """The reason why a failing condition does not yet prove a query with aggregates unbounded; None if it
    does.
    """
    grouping = grouping_of(query)
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
        grouping = grouping_of(query)
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
