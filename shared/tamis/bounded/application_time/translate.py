"""Translation of a query in application time to conjunctions of differences."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tamis.analysis.conjuncts import flatten_and
from tamis.analysis.topology import bounds_of
from tamis.bounded.application_time.static_relations import QueryInputs
from tamis.bounded.timeless.minimised_alternatives import (
    Minimal,
    Numbers,
    conditions,
    minimal,
    numbers,
    passing,
)
from tamis.bounded.timeless.translate import Translation, translate
from tamis.declarations.streams import StreamDef
from tamis.difference_bounds import Closure
from tamis.expressions.nodes import Call, Column, Expr, Literal, Type
from tamis.operators.application_time.arrivals import Arrival, TimedQuery
from tamis.query.model import Conjunct, Query

# So many combinations of rows of static relations are tried.
MOST_TRIED = 200
MIXED = "an event time is compared with a value that is no event time"


@dataclass(frozen=True)
class Rows:
    """The rows of a static relation that an alternative can use: their places, and the values of
    its nodes.
    """

    places: list[int]
    values: Mapping[int, Numbers]


@dataclass(frozen=True)
class Alternative:
    """An alternative of a query, with the rows of its static relations by occurrence."""

    minimal: Minimal
    timed: TimedQuery
    rows: Mapping[int, Rows]


def translated(query: Query, inputs: QueryInputs, *, checks: bool = False) -> Translation:
    """The translation of a query, with the event time of every source among its columns. `checks`: the
    alternatives of CHECKs are alternatives of the query.
    """
    times = {
        source.alias: stream.time
        for source in query.sources
        if (stream := inputs.catalog.streams[source.stream]).time is not None
    }
    conjuncts = tuple(Conjunct(_plainer(c.expr, times), c.text, c.position) for c in query.conjuncts)
    extra = [Column(alias, name, Type.TIMESTAMP) for alias, name in times.items()]
    return translate(replace(query, conjuncts=conjuncts), inputs.catalog, extra, checks=checks)


def alternatives(translation: Translation, inputs: QueryInputs) -> Iterator[Alternative]:
    """Every alternative that contradicts neither itself nor its static relations."""
    for one in minimal(translation):
        found = _alternative(translation, one, inputs)
        if found is not None:
            yield found


def _alternative(translation: Translation, one: Minimal, inputs: QueryInputs) -> Alternative | None:
    query, closure = one.conjunction, one.closure.copy()
    rows: dict[int, Rows] = {}
    values: dict[int, tuple[int, ...]] = {}
    arrivals = []
    for occurrence, name in enumerate(query.streams):
        stream, alias = inputs.catalog.streams[name], query.aliases[occurrence]
        relation = inputs.relations.get(name)
        if relation is None:
            time = next((n for n in query.own(occurrence) if query.nodes[n - 1].column == stream.time), 0)
            arrivals.append(Arrival(time, rate=rate_of(stream)))
            continue
        keep = passing(conditions(translation, one, alias), alias, relation.columns, len(relation))
        places = [int(place) for place in keep.nonzero()[0]]
        if not places:
            return None
        arrivals.append(Arrival(rows=len(places)))
        own = {}
        for node in query.own(occurrence):
            whole = numbers(relation.columns[query.nodes[node - 1].column], translation.codes)
            own[node] = [whole[place] for place in places]
            known = tuple(sorted({int(v) for v in own[node] if v is not None}))
            if query.nodes[node - 1].nullable:
                continue
            values[node] = known
            if query.nodes[node - 1].kind in ("whole", "time") and not (
                closure.add(node, 0, known[-1]) and closure.add(0, node, -known[0])
            ):
                return None
        rows[occurrence] = Rows(places, own)
    if not _compatible(closure, rows):
        return None
    timed = TimedQuery(query, closure, tuple(arrivals), values)
    if any(
        one.left and one.right and (one.left in timed.times) != (one.right in timed.times)
        for one in query.differences
    ):
        timed = replace(timed, query=replace(query, caveats=(*query.caveats, MIXED)))
    return Alternative(one, timed, rows)


def _compatible(closure: Closure, rows: Mapping[int, Rows]) -> bool:
    """True if rows of the static relations can be in one result together. Also True if there are too many
    rows to try.
    """
    if math.prod(len(one.places) for one in rows.values()) > MOST_TRIED:
        return True
    for chosen in itertools.product(*(range(len(one.places)) for one in rows.values())):
        whole = closure.copy()
        picked = [
            (node, own[at])
            for one, at in zip(rows.values(), chosen, strict=True)
            for node, own in one.values.items()
        ]
        if all(value is None or whole.fix(node, int(value)) for node, value in picked):
            return True
    return False


def rate_of(stream: StreamDef) -> tuple[int, int] | None:
    """The greatest number of tuples, of all keys together, in any span of time: (tuples, microseconds)."""
    keys = stream.keys if stream.key else 1
    return None if keys is None or stream.rate is None else (keys * stream.rate.count, stream.rate.per)


def _plainer(expr: Expr, times: Mapping[str, str]) -> Expr:
    """The condition with each bound on event times as a comparison of one time with another and an offset."""
    parts: list[Expr] = []
    for part in flatten_and(expr):
        bounds = bounds_of(part, times)
        if bounds is None:
            parts.append(part)
            continue
        for one in bounds:
            left, right = (Column(a, times[a], Type.TIMESTAMP) for a in (one.left, one.right))
            if one.hi is not None:
                parts.append(_at_most(left, right, one.hi))
            if one.lo is not None:
                parts.append(_at_most(right, left, -one.lo))
    return parts[0] if len(parts) == 1 else Call("and", tuple(parts), Type.BOOLEAN)


def _at_most(left: Column, right: Column, offset: int) -> Expr:
    """`left - right <= offset`"""
    if offset == 0:
        return Call("<=", (left, right), Type.BOOLEAN)
    later = Call("+", (right if offset > 0 else left, Literal(abs(offset), Type.INTERVAL)), Type.TIMESTAMP)
    return Call("<=", (left, later) if offset > 0 else (later, right), Type.BOOLEAN)
