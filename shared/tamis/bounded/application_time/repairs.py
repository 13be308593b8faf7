"""Repairs: the smallest changes that would bound a query in application time, each decided again."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tamis.bounded.application_time.decide import failures
from tamis.bounded.timeless.repairs import Change, changes, smallest
from tamis.expressions.nodes import Column
from tamis.expressions.sql_text import identifier, interval
from tamis.operators.application_time.arrivals import TimedQuery

# So many combinations of changes are decided again: some milliseconds each.
MOST_DECIDED = 300
# The time span in a repair; the user puts in their own.
_SPAN = 60_000_000


@dataclass(frozen=True)
class Order:
    """A comparison of the event times of two occurrences, by their aliases: each bound is `left - right <=
    bound`.
    """

    sql: str
    bounds: tuple[tuple[str, str, int], ...]


def repairs(timed: Sequence[TimedQuery], columns: Sequence[Column]) -> tuple[str, ...]:
    """Changes that bound all alternatives, the smallest number of changes first. Empty if a few changes are
    not enough.
    """
    first = timed[0]
    known = [column for column in columns if f"{column.alias}.{column.name}" not in _times(first)]
    known = [column for column in known if column.alias in first.query.aliases]
    possible: list[Change | Order] = [*_orders(first), *changes(first.query, known)]
    return smallest(possible, MOST_DECIDED, lambda chosen: all(_bounds(one, chosen) for one in timed))


def _times(timed: TimedQuery) -> set[str]:
    return {timed.query.name(time) for time in timed.times}


def _orders(timed: TimedQuery) -> Iterator[Order]:
    """Comparisons that aren't there yet: one stream after the other, and both within a time span."""
    query = timed.query
    times = {query.aliases[i]: i for i in timed.streams if timed.arrivals[i].time}
    for (a, i), (b, j) in itertools.permutations(times.items(), 2):
        if timed.lead(j, i) == math.inf:
            yield Order(f"AND {_time(timed, a)} > {_time(timed, b)}", ((b, a, -1),))
    for (a, i), (b, j) in itertools.combinations(times.items(), 2):
        if math.inf in (timed.lead(j, i), timed.lead(i, j)):
            one, other, span = _time(timed, a), _time(timed, b), interval(_SPAN)
            sql = f"AND {other} BETWEEN {one} - {span} AND {one} + {span}"
            yield Order(sql, ((a, b, _SPAN), (b, a, _SPAN)))


def _time(timed: TimedQuery, alias: str) -> str:
    node = timed.arrivals[timed.query.aliases.index(alias)].time
    return f"{identifier(alias)}.{identifier(timed.query.nodes[node - 1].column)}"


def _bounds(timed: TimedQuery, chosen: Sequence[Change | Order]) -> bool:
    query, closure = timed.query, timed.closure.copy()
    for one in chosen:
        if isinstance(one, Change):
            changed = one.of(query, closure)
            if changed is None:
                return False
            query = changed
            continue
        for left, right, bound in one.bounds:
            a, b = (timed.arrivals[query.aliases.index(alias)].time for alias in (left, right))
            if not closure.add(a, b, bound):
                return False
    return not failures(replace(timed, query=query, closure=closure))
