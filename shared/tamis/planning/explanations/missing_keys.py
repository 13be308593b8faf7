"""Joins without an equality of keys: a probable mistake, and the equality that is probably meant.

Such a query is valid: each tuple joins the tuples of all keys, and the query runs in a single partition. Most
often the equality was forgotten. A query that says anything else about these keys, such as `a.room = 'k1'` or
`a.room < b.room`, is taken to mean what it says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from tamis.analysis.conjuncts import flatten_and, key_equality
from tamis.expressions.nodes import Type, columns
from tamis.expressions.sql_text import identifier
from tamis.query.model import Catalog, Query, StreamDef


def missing_keys(query: Query, catalog: Catalog) -> tuple[str, ...]:
    """A warning for each stream with KEY columns that no equality connects to the others."""
    found: list[str] = []
    for one in query.members or (query,):
        found += _warnings(one, catalog)
    return tuple(dict.fromkeys(found))


def _warnings(query: Query, catalog: Catalog) -> Iterator[str]:
    streams = {
        source.alias: catalog.streams[source.stream]
        for source in query.sources
        if source.stream in catalog.streams
    }
    times = {alias: stream.time for alias, stream in streams.items() if stream.time is not None}
    mentioned: set[tuple[str, str]] = set()
    group = {alias: alias for alias in (source.alias for source in query.sources)}
    for join in query.asof:
        for left, right in join.keys:
            _connect(group, left.alias, right.alias)
    for conjunct in query.all_conjuncts:
        for part in flatten_and(conjunct.expr):
            pair = key_equality(part, times)
            if pair is not None:
                _connect(group, pair[0].alias, pair[1].alias)
            else:
                mentioned |= {(column.alias, column.name) for column in columns(part)}
    for first, second in combinations(streams, 2):
        if group[first] == group[second]:
            continue
        likely = _likely(streams[first], streams[second])
        said = {(first, one) for one, _ in likely} | {(second, other) for _, other in likely}
        if not likely or said & mentioned:
            continue
        _connect(group, first, second)
        one, other = (
            [identifier(f) + "." + identifier(key[i]) for key in likely] for i, f in ((0, first), (1, second))
        )
        equal = " AND ".join(f"{a} = {b}" for a, b in zip(one, other, strict=True))
        every = likely[0][1]
        which = (
            f"the latest tuple of {second}, of any {every}"
            if second in {join.alias for join in query.asof}
            else f"the tuples of {second} of every {every}"
        )
        yield (
            f"no condition equates keys of {first} and {second}: each tuple of {first} joins {which}. If only"
            f" those of the same {every} are meant, add AND {equal}"
        )


def _connect(group: dict[str, str], first: str, second: str) -> None:
    old, new = group[second], group[first]
    for alias, name in group.items():
        if name == old:
            group[alias] = new


def _likely(first: StreamDef, second: StreamDef) -> list[tuple[str, str]]:
    """The pairs of KEY columns that are probably meant to be equal: those of one name, or the only ones."""
    types: list[Mapping[str, Type]] = [
        {column.name: column.type for column in stream.columns if column.key} for stream in (first, second)
    ]
    named = [(name, name) for name in types[0] if types[1].get(name) is types[0][name]]
    if named or any(len(one) != 1 for one in types):
        return named
    ((left, left_type),), ((right, right_type),) = (one.items() for one in types)
    return [(left, right)] if left_type is right_type else []
