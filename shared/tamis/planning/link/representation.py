"""Representatives at edges: the tuples of each stream that are enough for a query without event time.

An edge keeps representatives of its own shards, and publishes a tuple if it changes them. The published
tuples stand for all tuples, and so the joiner has the same rows, each after the same tuple (docs/bounded.md,
"Representatives at edges").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tamis.bounded.representatives.proof import Represented, represented
from tamis.expressions.nodes import Column, Expr
from tamis.expressions.python_functions import calls
from tamis.plan.model import GREATEST, Representation
from tamis.plan.nodes import Cover
from tamis.plan.omission import bare
from tamis.planning.link.placement import why_readings
from tamis.query.model import AlertDef, Catalog, TimelessSelect

# By stream, covers over bare columns, each with the most tuples that it keeps.
_Covers = dict[str, list[tuple[Cover, int]]]


def representations(
    alert: AlertDef, catalog: Catalog, bound: int | None, keys: Mapping[str, Sequence[str]]
) -> dict[str, Representation]:
    """The representations of the streams of an alert, by stream; empty if edges publish every tuple.

    `bound`: the proven number of the joiner's entries. `keys`: the partition key of each stream.
    """
    query = alert.query
    if not isinstance(query, TimelessSelect) or not query.distinct or bound is None or why_readings(alert):
        return {}
    tables = any(source.stream not in catalog.streams for source in query.sources)
    read = (*(one.expr for one in query.conjuncts), *(one.expr for one in query.select))
    if tables or any(calls(*read)):
        return {}
    found = {}
    for stream, own in _covers(query, catalog, bound).items():
        most = sum(count for _, count in own)
        # Tuples of other output partitions may arrive later.
        if most > GREATEST or not all(_names(cover.equal) >= set(keys[stream]) for cover, _ in own):
            return {}
        found[stream] = Representation(tuple(cover for cover, _ in own), most)
    return found


def _covers(query: TimelessSelect, catalog: Catalog, bound: int) -> _Covers:
    if len(query.sources) == 1:
        # Each row needs its first tuple.
        equal = tuple(dict.fromkeys(bare(one.expr) for one in query.select))
        return {query.sources[0].stream: [(Cover(equal), bound)]}
    proof = represented(query, catalog)
    if not isinstance(proof, Represented):
        return {}
    stream_of = {source.alias: source.stream for source in query.sources}
    found: _Covers = {}
    for source in proof.sources:
        for counted in source.covers:
            cover = _bare(counted.cover, source.filter)
            found.setdefault(stream_of[source.alias], []).append((cover, int(counted.count)))
    return found


def _bare(cover: Cover, filter_: Iterable[Expr]) -> Cover:
    """The cover over bare columns, with the conditions on its source alone."""
    conditions = dict.fromkeys((*filter_, *cover.conditions))
    return Cover(
        tuple(map(bare, cover.equal)),
        bare(cover.value),
        cover.least,
        tuple(map(bare, cover.unequal)),
        tuple(map(bare, conditions)),
    )


def _names(exprs: Iterable[Expr]) -> set[str]:
    return {expr.name for expr in exprs if isinstance(expr, Column)}
