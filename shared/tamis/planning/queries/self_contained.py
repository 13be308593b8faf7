"""The SQL of a standing query with everything that it needs, from which the joiner makes the query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tamis.declarations.definitions import PatternDef, TableDef
from tamis.declarations.streams import StreamDef
from tamis.query.catalog import watched_patterns
from tamis.query.model import AlertDef, Catalog, DerivedDef


def self_contained(alert: AlertDef, catalog: Catalog) -> str:
    """The alert's statement, preceded by all statements that it needs."""
    names = {name for source in alert.query.sources for name in (source.stream, *source.via)}
    names |= {stream.shown_name for stream in alert.query.watched}
    defined: list[StreamDef | TableDef] = [*catalog.raw_streams.values(), *catalog.tables.values()]
    derived = [one for one in catalog.derived.values() if one.name in names]
    needed: list[StreamDef | TableDef | PatternDef | DerivedDef | AlertDef] = [
        *(one for one in defined if one.name in names),
        *_with_patterns([*derived, alert], catalog),
    ]
    called: set[str] = set()
    more = {name for one in needed for name in one.functions}
    while more:
        called |= more
        more = {name for each in more for name in catalog.functions[each].functions} - called
    functions = [one.sql for name, one in catalog.functions.items() if name in called]
    texts = [*functions, *(one.sql for one in needed)]
    return "\n".join(text if text.rstrip().endswith(";") else f"{text};" for text in texts)


def _with_patterns(
    queries: Sequence[DerivedDef | AlertDef], catalog: Catalog
) -> Iterator[PatternDef | DerivedDef | AlertDef]:
    """The queries with the patterns that any of them reads, in an order in which ANY stands for the same
    patterns as when each query was made: those that are older than the query.
    """
    read = [watched_patterns(one) for one in queries]
    everything = set[str]().union(*read)
    left = [one for one in catalog.patterns.values() if everything.intersection(m.name for m in one.members)]
    for query, names in zip(queries, read, strict=True):
        last = max(
            (i for i, one in enumerate(left) if names.intersection(m.name for m in one.members)), default=-1
        )
        yield from left[: last + 1]
        left = left[last + 1 :]
        yield query
