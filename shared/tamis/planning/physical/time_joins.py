"""Nodes of joins by event time whose rows come in order: ASOF JOIN, and joins that are read in windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tamis.analysis.conjuncts import flatten_and, time_distances
from tamis.analysis.topology import bounds_of
from tamis.declarations.streams import StreamDef
from tamis.expressions.nodes import Call, Expr, aliases, columns
from tamis.plan import nodes
from tamis.query.model import Catalog, JoinByTime, LatestValueJoin, Query, same_window


def outputs(query: Query) -> nodes.Outputs:
    """The columns of SELECT."""
    return tuple((output.name, output.expr) for output in query.select)


def latest_values(query: LatestValueJoin, catalog: Catalog) -> nodes.LatestValues:
    """The node of a query with ASOF JOIN."""
    first, *others = query.sources
    before = tuple(c.expr for c in query.conjuncts if aliases(c.expr) == {first.alias})
    after = tuple(c.expr for c in query.conjuncts if aliases(c.expr) != {first.alias})
    joins = tuple(
        nodes.LatestJoin(
            _latest_scan(
                query, source.alias, catalog.streams[source.stream], tuple(c.expr for c in join.filters)
            ),
            join.keys,
            join.least,
            join.most,
            join.outer,
        )
        for join, source in zip(query.joins, others, strict=True)
    )
    scan = _latest_scan(query, first.alias, catalog.streams[first.stream], before)
    return nodes.LatestValues(scan, joins, after, outputs(query))


def _latest_scan(
    query: LatestValueJoin, alias: str, stream: StreamDef, filters: tuple[Expr, ...]
) -> nodes.Scan:
    exprs: list[Expr] = [conjunct.expr for conjunct in query.conjuncts]
    exprs += [output.expr for output in query.select]
    for join in query.joins:
        exprs += [column for pair in join.keys for column in pair]
        exprs += [conjunct.expr for conjunct in join.filters]
    return nodes.Scan(alias, stream.name, str(stream.time), filters, _read(stream, alias, exprs))


def _read(stream: StreamDef, alias: str, exprs: Sequence[Expr]) -> nodes.Columns:
    """The columns of a source that expressions read, in the order of the stream."""
    names = {column.name for expr in exprs for column in columns(expr) if column.alias == alias}
    return tuple((column.name, column.type) for column in stream.columns if column.name in names)


def time_join(query: JoinByTime, first: str, catalog: Catalog) -> nodes.TimeJoin:
    """The node of a join by time whose rows another query reads in windows."""
    windowed = frozenset(source.alias for source in query.windowed)
    # The ranges of times decide that all tuples share a window.
    left = tuple(one for one in query.conjuncts if same_window(one.expr, windowed) is None)
    query = replace(query, conjuncts=left)
    streams = {source.alias: catalog.streams[source.stream] for source in query.sources}
    times = {alias: stream.time for alias, stream in streams.items() if stream.time is not None}
    upper = time_distances(query, catalog).upper
    parts = [part for conjunct in query.conjuncts for part in flatten_and(conjunct.expr)]
    of_rows = [part for part in parts if len(aliases(part)) > 1 and bounds_of(part, times) is None]
    read = [*of_rows, *(output.expr for output in query.select)]
    scans = tuple(
        nodes.Scan(
            alias,
            stream.name,
            times[alias],
            tuple(part for part in parts if aliases(part) <= {alias}),
            _read(stream, alias, read),
        )
        for alias, stream in streams.items()
    )
    steps = tuple(
        replace(step, conditions=tuple(one for one in step.conditions if one in of_rows))
        for step in join_steps(query, (first,), _join_order(first, list(streams), upper))
    )
    distances = tuple(nodes.TimeDistance(later, earlier, most) for (later, earlier), most in upper.items())
    return nodes.TimeJoin(first, scans, distances, steps, outputs(query), query.window)


def _join_order(first: str, every: Sequence[str], upper: Mapping[tuple[str, str], int]) -> list[str]:
    """The other sources: the next one is always that with the narrowest range of times."""
    chosen, left = [first], [alias for alias in every if alias != first]
    while left:
        width = {i: min(upper[i, j] + upper[j, i] for j in chosen) for i in left}
        chosen.append(min(left, key=lambda alias: width[alias]))
        left.remove(chosen[-1])
    return chosen[1:]


def join_steps(query: Query, first: Sequence[str], others: Sequence[str]) -> list[nodes.JoinStep]:
    """The steps that join the sources `others` to the sources `first`, one after the other. Conditions over
    `first` alone are left out.
    """
    parts = [part for conjunct in query.conjuncts for part in flatten_and(conjunct.expr)]
    known = frozenset(first)
    steps = []
    for alias in others:
        together = known | {alias}
        pairs = [pair for part in parts if (pair := _equality(part, known, alias)) is not None]
        conditions = (part for part in parts if aliases(part) <= together and not aliases(part) <= known)
        steps.append(
            nodes.JoinStep(alias, tuple(a for a, _ in pairs), tuple(b for _, b in pairs), tuple(conditions))
        )
        known = together
    return steps


def _equality(part: Expr, known: frozenset[str], alias: str) -> tuple[Expr, Expr] | None:
    """The sides of an equality of a value of `known` and a value of `alias`; None for any other condition."""
    if not isinstance(part, Call) or part.op != "=":
        return None
    for left, right in (part.args, part.args[::-1]):
        if aliases(right) == {alias} and aliases(left) and aliases(left) <= known:
            return left, right
    return None
