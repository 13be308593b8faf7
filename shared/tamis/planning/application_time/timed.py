"""A query in application time as conjunctions of differences, for `tamis.bounded.application_time`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tamis.bounded.application_time.arrivals import Arrival, Timed
from tamis.bounded.closure import Closure
from tamis.expressions.nodes import Call, Column, Expr, Literal, Type
from tamis.planning.analysis import flatten_and
from tamis.planning.application_time.ground import Ground
from tamis.planning.timeless.minimal import Minimal, minimal
from tamis.planning.timeless.numbers import Numbers, conditions, numbers, passing
from tamis.planning.timeless.translate import Translation, translate
from tamis.planning.times import bounds_of
from tamis.query.model import Conjunct, Query, StreamDef

# As many combinations of rows of static relations are tried.
MOST_TRIED = 200
MIXED = "an event time is compared with what isn't one"


@dataclass(frozen=True)
class Rows:
    """The rows of a static relation that an alternative can use: their places, and its nodes' values."""

    places: list[int]
    values: Mapping[int, Numbers]


@dataclass(frozen=True)
class Alternative:
    """An alternative of a query, with the rows of its static relations by occurrence."""

    minimal: Minimal
    timed: Timed
    rows: Mapping[int, Rows]


def translated(query: Query, ground: Ground) -> Translation:
    """A query taken apart, with the event time of every source among its columns."""
    times = {
        source.alias: stream.time
        for source in query.sources
        if (stream := ground.catalog.streams[source.stream]).time is not None
    }
    conjuncts = tuple(Conjunct(_plainer(c.expr, times), c.text, c.position) for c in query.conjuncts)
    extra = [Column(alias, name, Type.TIMESTAMP) for alias, name in times.items()]
    return translate(replace(query, conjuncts=conjuncts), ground.catalog, extra)


def alternatives(translation: Translation, ground: Ground) -> Iterator[Alternative]:
    """Every alternative that doesn't contradict itself or its static relations."""
    for one in minimal(translation):
        found = _alternative(translation, one, ground)
        if found is not None:
            yield found


def _alternative(translation: Translation, one: Minimal, ground: Ground) -> Alternative | None:
    query, closure = one.conjunction, one.closure.copy()
    rows: dict[int, Rows] = {}
    values: dict[int, tuple[int, ...]] = {}
    arrivals = []
    for occurrence, name in enumerate(query.streams):
        stream, alias = ground.catalog.streams[name], query.aliases[occurrence]
        relation = ground.relations.get(name)
        if relation is None:
            time = next((n for n in query.own(occurrence) if query.nodes[n - 1].column == stream.time), 0)
            arrivals.append(Arrival(time, None, rate_of(stream)))
            continue
        keep = passing(conditions(translation, one, alias), alias, relation.columns, len(relation))
        places = [int(place) for place in keep.nonzero()[0]]
        if not places:
            return None
        arrivals.append(Arrival(0, len(places)))
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
    timed = Timed(query, closure, tuple(arrivals), values)
    if any(
        one.left and one.right and (one.left in timed.times) != (one.right in timed.times)
        for one in query.differences
    ):
        timed = replace(timed, query=replace(query, caveats=(*query.caveats, MIXED)))
    return Alternative(one, timed, rows)


def _compatible(closure: Closure, rows: Mapping[int, Rows]) -> bool:
    """Have static relations rows that a result can have together? True where that is too much to try."""
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
    """How many tuples, of all keys together, a stream has in any span of time."""
    keys = stream.keys if stream.key else 1
    return None if keys is None or stream.rate is None else (keys * stream.rate.count, stream.rate.per)


def _plainer(expr: Expr, times: Mapping[str, str]) -> Expr:
    """A condition whose bounds on event times are comparisons of one with another and an offset."""
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
