"""Nodes of queries in application time."""

from __future__ import annotations

from tamis.bounded.application_time.decide import decided_translation
from tamis.bounded.application_time.static_relations import QueryInputs, query_inputs
from tamis.bounded.application_time.translate import alternatives
from tamis.plan import nodes
from tamis.planning.physical.tables import table
from tamis.planning.physical.time_joins import outputs
from tamis.planning.physical.timeless import kept_columns, matching, needed
from tamis.query.model import (
    Catalog,
    InApplicationTime,
    JoinByTime,
    SelectQuery,
    is_distinct,
    selects_of,
)


def application_time(query: InApplicationTime | JoinByTime, catalog: Catalog) -> nodes.ApplicationTime:
    """The node of a query in application time, or of a union of such queries."""
    members = selects_of(query)
    inputs = [query_inputs(member, catalog) for member in members]
    streams = {
        source.stream: catalog.streams[source.stream].time or ""
        for source in query.sources
        if source.stream in catalog.streams
    }
    relations = {name: rows for one in inputs for name, rows in one.relations.items()}
    return nodes.ApplicationTime(
        tuple(streams.items()),
        tuple(_member(member, own) for member, own in zip(members, inputs, strict=True)),
        tuple(table(catalog.tables[name], rows) for name, rows in relations.items()),
        is_distinct(query),
    )


def _member(query: SelectQuery, inputs: QueryInputs) -> nodes.TimedMatching:
    translation = decided_translation(query, inputs)
    possible = () if translation.contradiction is not None else alternatives(translation, inputs)
    return nodes.TimedMatching(
        tuple((source.alias, source.stream) for source in query.sources),
        kept_columns(query, inputs.catalog, needed(translation)),
        matching(translation, (one.minimal for one in possible)),
        outputs(query),
        is_distinct(query),
    )
