"""Nodes of aggregates of windows and of sessions."""

from __future__ import annotations

from tamis.analysis.conjuncts import flatten_and
from tamis.bounded.application_time.static_relations import query_inputs
from tamis.expressions.nodes import Column, Expr, aliases, columns
from tamis.plan import nodes
from tamis.planning.physical.tables import table
from tamis.planning.physical.time_joins import join_steps, outputs
from tamis.query.computed_columns import meaning
from tamis.query.model import Catalog, SessionGroupBy, Source, WindowGroupBy


def windows(query: WindowGroupBy, catalog: Catalog) -> nodes.Windows:
    """The node of aggregates of the windows of one stream, which may be joined with tables."""
    (source,) = query.windowed
    relations = query_inputs(query, catalog).relations
    tables = {one.alias: one.stream for one in query.sources if one.stream in relations}
    read = _columns_read(query)
    joins = tuple(
        nodes.TableJoin(
            table(catalog.tables[tables[step.alias]], relations[tables[step.alias]]),
            step,
            tuple(sorted(name for alias, name in read if alias == step.alias)),
        )
        for step in join_steps(query, (source.alias,), list(tables))
    )
    return nodes.Windows(_scan(query, source, catalog), query.window, grouping(query), joins)


def sessions(query: SessionGroupBy, catalog: Catalog) -> nodes.Sessions:
    """The node of aggregates of the sessions of one stream."""
    (source,) = query.sources
    return nodes.Sessions(_scan(query, source, catalog), query.session, grouping(query))


def _scan(query: WindowGroupBy | SessionGroupBy, source: Source, catalog: Catalog) -> nodes.Scan:
    parts = [part for conjunct in query.conjuncts for part in flatten_and(conjunct.expr)]
    filters = tuple(part for part in parts if aliases(part) <= {source.alias})
    return nodes.Scan(source.alias, source.stream, str(catalog.streams[source.stream].time), filters)


def grouping(query: WindowGroupBy | SessionGroupBy) -> nodes.Grouping:
    """GROUP BY and the aggregates of a query with event time."""
    own = query.grouping
    computed = tuple(
        nodes.Computed(alias, one.name, meaning(Column(alias, one.name, one.type), query))
        for alias, one in own.computed
    )
    return nodes.Grouping(own.by, own.aggregates, outputs(query), own.having, computed)


def _columns_read(query: WindowGroupBy) -> frozenset[tuple[str, str]]:
    """The columns of sources that the conditions, groups and aggregates of a query read."""
    own = query.grouping
    aggregated = [c for one in own.aggregates for c in (one.column, one.order) if c is not None]
    read: list[Expr] = [conjunct.expr for conjunct in query.conjuncts]
    read += [meaning(column, query) for column in (*own.by, *aggregated)]
    return frozenset((column.alias, column.name) for expr in read for column in columns(expr))
