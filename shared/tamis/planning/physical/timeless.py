"""Nodes of queries over streams without event time, and of their alternatives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tamis.analysis.conjuncts import flatten_and
from tamis.bounded.representatives.proof import Represented
from tamis.bounded.timeless.aggregates import Subquery, subqueries
from tamis.bounded.timeless.minimised_alternatives import Minimal, conditions, decided_translation, minimal
from tamis.bounded.timeless.translate import Translation
from tamis.declarations.aggregates import Aggregate
from tamis.expressions.nodes import Column, Expr, aliases, columns
from tamis.plan import nodes
from tamis.plan.conjunction import Extreme
from tamis.planning.physical.time_joins import join_steps, outputs
from tamis.query.computed_columns import computed_by_stream, meaning, with_computed
from tamis.query.model import Catalog, Query, TimelessGroupBy, TimelessSelect, TimelessUnion


def rows(query: TimelessSelect, catalog: Catalog, *, distinct: bool | None = None) -> nodes.Rows:
    """The node of a query without aggregates. `distinct`: it remembers its rows; None: as the query says."""
    translation = decided_translation(query, catalog)
    return nodes.Rows(
        _streams(query),
        kept_columns(query, catalog, needed(translation)),
        matching(translation, minimal(translation)),
        outputs(query),
        query.distinct if distinct is None else distinct,
    )


def union(query: TimelessUnion, catalog: Catalog) -> nodes.Union:
    """The node of a union. UNION remembers the rows that any of its members gives."""
    members = tuple(rows(one, catalog, distinct=one.distinct and not query.distinct) for one in query.members)
    return nodes.Union(members, query.distinct)


def representatives(query: TimelessSelect, found: Represented, catalog: Catalog) -> nodes.Representatives:
    """The node of a query with DISTINCT of which representatives are kept."""
    shown = [output.expr for output in query.select]
    return nodes.Representatives(_represented(found, shown, catalog), outputs(query))


def represented_groups(query: TimelessGroupBy, found: Represented, catalog: Catalog) -> nodes.Groups:
    """The node of a query with aggregates of which representatives are kept."""
    grouping = query.grouping
    aggregated = [one.column for one in grouping.aggregates if one.column is not None]
    shown = [meaning(column, query) for column in (*grouping.by, *aggregated)]
    computed = tuple(
        nodes.Computed(alias, one.name, meaning(Column(alias, one.name, one.type), query))
        for alias, one in grouping.computed
    )
    made = nodes.Grouping(grouping.by, grouping.aggregates, outputs(query), grouping.having, computed)
    return nodes.Groups(_streams(query), (), (), made, _represented(found, shown, catalog))


def _represented(
    found: Represented, shown: Iterable[Expr], catalog: Catalog
) -> tuple[nodes.RepresentedSource, ...]:
    """The sources of which representatives are kept. `shown`: what is computed of their combinations."""
    query = found.query
    order = [source.alias for source in found.sources]
    parts = [part for conjunct in query.conjuncts for part in flatten_and(conjunct.expr)]
    read = [column for part in parts if len(aliases(part)) > 1 for column in columns(part)]
    read += [column for expr in shown for column in columns(expr)]
    streams = {source.alias: catalog.streams[source.stream] for source in query.sources}
    sources = []
    for one in found.sources:
        covers = tuple(counted.cover for counted in one.covers)
        every = [expr for cover in covers for expr in (*cover.equal, *cover.unequal, cover.value) if expr]
        names = {c.name for expr in [*read, *every] for c in columns(expr) if c.alias == one.alias}
        own = streams[one.alias]
        kept = tuple((column.name, column.type) for column in own.columns if column.name in names)
        steps = join_steps(query, (one.alias,), [alias for alias in order if alias != one.alias])
        sources.append(
            nodes.RepresentedSource(
                one.alias, own.name, kept, covers, tuple(map(_of_rows, steps)), one.filter
            )
        )
    return tuple(sources)


def _of_rows(step: nodes.JoinStep) -> nodes.JoinStep:
    """A step without the conditions on single tuples, which kept tuples meet."""
    return replace(step, conditions=tuple(one for one in step.conditions if len(aliases(one)) > 1))


def groups(query: TimelessGroupBy, catalog: Catalog) -> nodes.Groups:
    """The node of a query with aggregates."""
    grouping = query.grouping
    catalog = with_computed(catalog, query)
    parts = subqueries(query, grouping, catalog)
    aggregated = [one.column for one in grouping.aggregates if one.column is not None]
    read = [*needed(*(one.translation for one in parts)), *grouping.by, *aggregated]
    computed = tuple(
        nodes.Computed(stream, one.name, one.computed)
        for stream, added in computed_by_stream(query).items()
        for one in added
        if one.computed is not None
    )
    return nodes.Groups(
        _streams(query),
        kept_columns(query, catalog, read),
        tuple(_part(one, grouping.aggregates) for one in parts),
        nodes.Grouping(grouping.by, grouping.aggregates, outputs(query), grouping.having, computed),
    )


def _streams(query: Query) -> tuple[str, ...]:
    return tuple(dict.fromkeys(source.stream for source in query.sources))


def _part(part: Subquery, aggregates: tuple[Aggregate, ...]) -> nodes.GroupsPart:
    alternatives = (one for one, _, _ in part.alternatives(aggregates))
    combinations = matching(part.translation, alternatives)
    if part.extreme is not None:
        aggregate = aggregates[part.extreme]
        assert aggregate.column is not None, "an extreme is one of a column"
        node = part.translation.columns.index(aggregate.column) + 1
        kind: Extreme = "max" if aggregate.function == "max" else "min"
        combinations = replace(
            combinations,
            alternatives=tuple(replace(one, extreme=(node, kind)) for one in combinations.alternatives),
        )
    return nodes.GroupsPart(combinations, part.counted, part.extreme)


def matching(translation: Translation, alternatives: Iterable[Minimal]) -> nodes.Matching:
    """The combinations of tuples of these alternatives."""
    found = tuple(_alternatives(translation, alternatives))
    return nodes.Matching(found, translation.joins, tuple(translation.codes))


def _alternatives(translation: Translation, every: Iterable[Minimal]) -> Iterator[nodes.Alternative]:
    for one in every:
        # Names and doubts are for messages.
        plain = tuple(replace(node, name="") for node in one.conjunction.nodes)
        conjunction = replace(one.conjunction, nodes=plain, caveats=(), in_expressions=())
        own = tuple(tuple(conditions(translation, one, alias)) for alias in conjunction.aliases)
        yield nodes.Alternative(conjunction, own, tuple(one.representatives.items()))


def needed(*translations: Translation) -> list[Column]:
    """The columns that the conditions and the nodes of conjunctions read."""
    read = [column for one in translations for column in one.columns]
    return read + [column for one in translations for expr in one.joins for column in columns(expr)]


def kept_columns(query: Query, catalog: Catalog, read: Iterable[Column]) -> tuple[nodes.StreamColumns, ...]:
    """The columns to keep of the tuples of each stream: those in `read` that one of its sources needs, and
    those of SELECT.
    """
    wanted = {(column.alias, column.name) for column in read}
    wanted |= {(c.alias, c.name) for output in query.select for c in columns(output.expr) if c.alias}
    stream_of = {source.alias: source.stream for source in query.sources}
    return tuple(
        nodes.StreamColumns(
            stream,
            tuple(
                (column.name, column.type)
                for column in catalog.streams[stream].columns
                if any((alias, column.name) in wanted for alias, name in stream_of.items() if name == stream)
            ),
        )
        for stream in _streams(query)
    )
