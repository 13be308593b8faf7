"""The WATERMARK that a refused join lacks: streams whose times are compared, and that have no event time.

A stream without WATERMARK is read as one without time, and every tuple of it may be needed forever. The query
is then refused for a reason that doesn't help the user: with the WATERMARK it is a join by time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice, product

from tamis.analysis.conjuncts import flatten_and
from tamis.analysis.topology import bounds_of
from tamis.bounded.memory import Memory, sentences
from tamis.declarations.streams import StreamDef
from tamis.expressions.nodes import Type, columns
from tamis.expressions.sql_text import identifier, interval
from tamis.plan.time_distances import closure
from tamis.query.model import (
    ApplicationTimeSelect,
    Catalog,
    InApplicationTime,
    Query,
    TimelessQuery,
    TimelessSelect,
)

# Where no other stream of the query has a delay: the user puts their own.
_DELAY = 5_000_000
# A stream may have several TIMESTAMPs; of a few streams all choices are tried.
_MOST_TRIED = 100


def lacking(query: TimelessQuery | InApplicationTime, catalog: Catalog, found: Memory) -> Memory:
    """The verdict `found` on a query that isn't bounded, or a verdict that names the missing WATERMARKs.

    The second is returned if WATERMARKs alone would make the query bounded.
    """
    if found.verdict == "bounded" or not isinstance(query, TimelessSelect | ApplicationTimeSelect):
        return found
    if query.distinct:
        return found
    streams = {source.alias: catalog.streams.get(source.stream) for source in query.sources}
    named = {alias: stream for alias, stream in streams.items() if stream is not None}
    if len(named) < len(streams):
        return found  # a table is compared with, too
    chosen = _event_times(query, named)
    if chosen is None:
        return found
    known = max((stream.delay for stream in named.values() if stream.time is not None), default=0)
    delay = interval(known or _DELAY)
    said, repairs = [], []
    for stream, time in chosen.items():
        column = identifier(time)
        where = f" ({stream.position})" if stream.sql else ""
        said.append(
            f"stream {stream.name}{where} has no event time: {time}, which bounds the join, has no WATERMARK"
        )
        repairs.append(f"WATERMARK FOR {column} AS {column} - {delay} in CREATE STREAM {stream.name}")
    return replace(found, reason=sentences(*said), repairs=(" and ".join(repairs),))


def _event_times(query: Query, streams: Mapping[str, StreamDef]) -> dict[StreamDef, str] | None:
    """For each stream without event time, a TIMESTAMP column, chosen so that all times bound each other.

    None if there is no such choice of columns.
    """
    parts = [part for conjunct in query.conjuncts for part in flatten_and(conjunct.expr)]
    read = {(c.alias, c.name) for part in parts for c in columns(part) if c.type is Type.TIMESTAMP}
    untimed = list(dict.fromkeys(stream for stream in streams.values() if stream.time is None))
    possible = [
        [c.name for c in stream.columns if any((a, c.name) in read for a in streams if streams[a] == stream)]
        for stream in untimed
    ]
    for names in islice(product(*possible), _MOST_TRIED):
        chosen = dict(zip(untimed, names, strict=True))
        times = {alias: stream.time or chosen[stream] for alias, stream in streams.items()}
        bounds = [bound for part in parts for bound in bounds_of(part, times) or ()]
        if len(streams) > 1 and not closure(streams, bounds).unconnected():
            return chosen
    return None
