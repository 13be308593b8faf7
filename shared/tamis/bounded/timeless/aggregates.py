"""Aggregate queries as queries without aggregates (arasu-2004, section 8.2).

Where an aggregate counts duplicates, one query serves all aggregates: its buckets are the groups and the
coordinates of tuples, with counts, sums and extremes for each bucket. Otherwise each MIN and MAX is a
DISTINCT query of its own, with the extreme as a comparison, and one more query gives the groups and the
values of COUNT(DISTINCT). A query with several aggregates is the join of these by group.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from tamis.bounded.conjunctive.decide import violations
from tamis.bounded.conjunctive.difference_bounds import Closure
from tamis.bounded.conjunctive.extremes import with_extreme
from tamis.bounded.conjunctive.normal_form import Conjunction
from tamis.bounded.timeless.differences import one_to_one
from tamis.bounded.timeless.having import on_groups
from tamis.bounded.timeless.minimised_alternatives import (
    Minimal,
    minimal,
    with_self_join_caveat,
)
from tamis.bounded.timeless.translate import Translation, translate
from tamis.expressions.nodes import Call, Column, Type
from tamis.query.computed_columns import limited, meaning
from tamis.query.model import Aggregate, Catalog, Grouping, Output, Query

_HOLISTIC = ("median", "percentile_cont", "percentile_disc")


@dataclass(frozen=True)
class Subquery:
    """One of these queries. `counted`: with duplicates; it then serves all aggregates. `extreme`: the number
    of the MIN or MAX that it is for.
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
        kind: Literal["max", "min"] = "max" if aggregate.function == "max" else "min"
        for branch in self.translation.branches:
            query = replace(with_self_join_caveat(self.translation, branch.conjunction), grouped=True)
            one = Minimal(query, branch.closure, {}, branch)
            assert aggregate.column is not None
            node = self.translation.columns.index(aggregate.column) + 1
            yield one, *with_extreme(query, branch.closure, node, kind)


def needs_counts(aggregate: Aggregate) -> bool:
    """True if duplicates change the aggregate, or if it can only be computed from counts."""
    if aggregate.function in ("min", "max"):
        return aggregate.column is not None and aggregate.column.type is Type.VARCHAR
    return not aggregate.distinct


def needs_all_values(aggregate: Aggregate) -> bool:
    """True if the aggregate needs every value, as COUNT(DISTINCT), MEDIAN and percentiles do."""
    return aggregate.distinct or aggregate.function in _HOLISTIC


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
        Query(query.sources, query.conjuncts, select, distinct, True), catalog, extra, checks=checks
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
