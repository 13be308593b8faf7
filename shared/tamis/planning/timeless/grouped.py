"""A query with aggregates as queries without (arasu-2004, section 8.2).

Where an aggregate counts duplicates, all are kept together: by groups and by what a tuple asks of others,
with counts, sums and extremes of each bucket. Otherwise each MIN and MAX is a DISTINCT query of its own,
which asks for the extreme too, and one more gives the groups and the values of COUNT(DISTINCT): a query with
several aggregates is their join by group.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from tamis.bounded.closure import Closure
from tamis.bounded.extremes import asking
from tamis.bounded.normal_form import Conjunction
from tamis.expressions.nodes import Call, Column, Type
from tamis.planning.timeless.having import on_groups
from tamis.planning.timeless.minimal import Minimal, doubted, minimal
from tamis.planning.timeless.translate import Translation, translate
from tamis.query.model import Aggregate, Catalog, Grouping, Output, Query

_HOLISTIC = ("median",)


@dataclass(frozen=True)
class Part:
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
            query = replace(doubted(self.translation, branch.conjunction), grouped=True)
            one = Minimal(query, branch.closure, {}, branch)
            assert aggregate.column is not None
            node = self.translation.columns.index(aggregate.column) + 1
            yield one, *asking(query, branch.closure, node, kind)


def counts(aggregate: Aggregate) -> bool:
    """Do duplicates change it, or can only counts give it?"""
    if aggregate.function in ("min", "max"):
        return aggregate.column is not None and aggregate.column.type is Type.VARCHAR
    return not aggregate.distinct


def whole(aggregate: Aggregate) -> bool:
    """Does it need every value: COUNT(DISTINCT) and MEDIAN?"""
    return aggregate.distinct or aggregate.function in _HOLISTIC


def parts(query: Query, grouping: Grouping, catalog: Catalog) -> tuple[Part, ...]:
    """The queries that give the aggregates of `query`; the first one gives the groups."""
    query = replace(query, conjuncts=(*query.conjuncts, *on_groups(grouping)))
    values = [a.column for a in grouping.aggregates if whole(a) and a.column is not None]
    shown = tuple(dict.fromkeys((*grouping.by, *values)))
    if any(counts(one) for one in grouping.aggregates):
        return (Part(translate(_query(query, shown, False), catalog), True),)
    found = [Part(translate(_query(query, shown, True), catalog), False)]
    for number, aggregate in enumerate(grouping.aggregates):
        if aggregate.function not in ("min", "max") or aggregate.column is None:
            continue
        translation = translate(_query(query, grouping.by, True), catalog, (aggregate.column,))
        alias = aggregate.column.alias
        test = Call("is_null", (aggregate.column,), Type.BOOLEAN)
        present = {**translation.present}
        present[alias] = (*present[alias], Call("not", (test,), Type.BOOLEAN))
        found.append(Part(replace(translation, present=present), False, number))
    return tuple(found)


def _query(query: Query, shown: tuple[Column, ...], distinct: bool) -> Query:
    select = tuple(Output(f"{column.alias}.{column.name}", column) for column in shown)
    return Query(query.sources, query.conjuncts, select, distinct, True)
