"""Translation of a query in application time to conjunctions of differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tamis.analysis.conjuncts import flatten_and
from tamis.analysis.topology import bounds_of
from tamis.bounded.application_time.static_relations import QueryInputs
from tamis.bounded.timeless.minimised_alternatives import Minimal, conditions, minimal
from tamis.bounded.timeless.translate import Translation, translate
from tamis.expressions.nodes import Call, Column, Expr, Literal, Type
from tamis.operators.application_time.arrivals import TimedQuery, rate_of
from tamis.operators.application_time.usable_rows import UsableRows, with_tables
from tamis.query.model import Conjunct, Query

MIXED = "an event time is compared with a value that is no event time"


@dataclass(frozen=True)
class Alternative:
    """An alternative of a query, with the rows of its static relations by occurrence."""

    minimal: Minimal
    timed: TimedQuery
    rows: Mapping[int, UsableRows]


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
    streams = {name: inputs.catalog.streams[name] for name in one.conjunction.streams}
    found = with_tables(
        one.conjunction,
        one.closure,
        [conditions(translation, one, alias) for alias in one.conjunction.aliases],
        codes=translation.codes,
        arrivals={name: (stream.time, rate_of(stream)) for name, stream in streams.items()},
        relations=inputs.relations,
    )
    if found is None:
        return None
    timed, rows = found
    if any(
        one.left and one.right and (one.left in timed.times) != (one.right in timed.times)
        for one in timed.query.differences
    ):
        timed = replace(timed, query=replace(timed.query, caveats=(*timed.query.caveats, MIXED)))
    return Alternative(one, timed, rows)


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
