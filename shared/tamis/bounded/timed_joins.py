"""Memory of joins by time that are read in windows, as a formula and, where enough is declared, as a number.

Let u(p,q) be the greatest t_p - t_q that the bounds on times imply, and A the source whose event time the
rows have. A combination is decided when the watermark of each source p has passed t_A + u(p,A). The watermark
of p is at most `delay(p) + max_stall(p)` behind the present. So what is decided is behind the present by at
most

    D = max over sources p of ( delay(p) + max_stall(p) + u(p,A) ).

A tuple of source S is kept while it may join a tuple of A that isn't decided, which is at most u(A,S) later.
A tuple of S is at most `max_ahead(S)` ahead of the present. So the kept tuples of S have event times in a
span of

    X(S) = D + u(A,S) + max_ahead(S).

The rows of the join are the tuples of the query that reads them, and have limits, too:

- A row is taken when it is decided, and what is decided is the watermark of that query. So for that query no
  row waits, and none is late or ahead: delay, max_stall and max_ahead are 0.
- Rows of one key: each tuple of A joins at most as many tuples of S as there are in a span of
  u(S,A) + u(A,S), of one key of S if conditions equate all KEY columns of S with columns of tuples that are
  already chosen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tamis.analysis.conjuncts import Analysis, analyse
from tamis.analysis.equality_classes import classes
from tamis.bounded.memory import EMPTY, Memory, no_number, sentences, undeclared
from tamis.declarations.definitions import Rate
from tamis.declarations.streams import StreamDef
from tamis.difference_bounds import Bound
from tamis.durations import seconds
from tamis.expressions.nodes import Column
from tamis.operators.application_time.arrivals import Arrival, rate_of
from tamis.plan.model import Kept
from tamis.query.model import Catalog, JoinByTime, NestedQuery

TIMED_JOIN = "join by time in windows (tuples that wait)"


def memory_verdict(query: JoinByTime, catalog: Catalog) -> Memory:
    """The verdict on a join by time whose rows another query reads in windows."""
    found = analyse(query, catalog)
    if found.contradiction is not None:
        return Memory("bounded", 0, "0", EMPTY, f"{found.contradiction}, so the query never has a row")
    summands = [_kept(query, alias, found) for alias in found.aliases]
    formula = " + ".join(text for _, text in summands)
    reason = _longest(query, found)
    total = sum(count for count, _ in summands)
    if total == math.inf:
        missing = [lack for one in dict.fromkeys(found.streams.values()) if (lack := undeclared(one))]
        return Memory("bounded", None, formula, TIMED_JOIN, sentences(no_number(missing), reason))
    return Memory("bounded", int(total), formula, TIMED_JOIN, reason)


def _kept(query: JoinByTime, alias: str, found: Analysis) -> tuple[Bound, str]:
    """The greatest number of tuples of a source that are kept, and its formula."""
    stream, span = found.streams[alias], _span(query, alias, found)
    if stream.max_ahead is None:
        return math.inf, f"n (tuples of {alias} within {seconds(span)} + max_ahead({alias}))"
    span += stream.max_ahead
    count = Arrival(1, rate=rate_of(stream)).most_tuples(span)
    return count, f"{'n' if count == math.inf else count} (tuples of {alias} within {seconds(span)})"


def kept(nested: NestedQuery, catalog: Catalog, memory: Memory) -> dict[str, Kept]:
    """The bound of windows over a join, as the tuples of each stream and the time for which they are kept;
    the entries of the windows don't depend on this time. Empty if the bound is no number, and if the query
    reads other rows than those of one join.

    Tuples are kept longer if the frontier of a topic waits for tuples that edges hold back for other readers
    of the topic.
    """
    join = nested.streams[0].query
    if not isinstance(join, JoinByTime) or len(nested.streams) > 1 or not memory.bound:
        return {}
    analysis = analyse(join, catalog)
    found: dict[str, Kept] = {}
    for alias in analysis.aliases:
        stream = analysis.streams[alias]
        rate = rate_of(stream)
        assert rate is not None
        assert stream.max_ahead is not None
        span = _span(join, alias, analysis) + stream.max_ahead
        same = found.get(stream.name, Kept(0, 0, rate[1]))
        found[stream.name] = Kept(max(span, same.span), same.tuples + rate[0], rate[1])
    first, *_ = found
    waiting = memory_verdict(join, catalog).bound or 0
    return found | {first: replace(found[first], besides=memory.bound - waiting)}


def _span(query: JoinByTime, alias: str, found: Analysis) -> int:
    """The span of the event times of the tuples of a source that are kept, without its max_ahead."""
    lag = max(_lag(query, one, found) for one in found.aliases)
    return lag + found.closure.upper[str(query.timed_by), alias]


def _lag(query: JoinByTime, alias: str, found: Analysis) -> int:
    """The time by which what is decided may be behind the present because of one source."""
    stream = found.streams[alias]
    return stream.delay + stream.max_stall + found.closure.upper[alias, str(query.timed_by)]


def _longest(query: JoinByTime, found: Analysis) -> str:
    """The source that tuples wait for longest, and what this time consists of."""
    slow = max(found.aliases, key=lambda alias: _lag(query, alias, found))
    stream, bound = found.streams[slow], found.closure.upper[slow, str(query.timed_by)]
    parts = (
        (stream.max_stall, f"max_stall of {stream.shown_name}"),
        (bound, "bound on the times"),
        (stream.delay, f"delay of the WATERMARK of {stream.shown_name}"),
    )
    said = " + ".join(f"{seconds(length)} {what}" for length, what in parts if length)
    total = seconds(max(0, _lag(query, slow, found)))
    return f"a tuple of {query.timed_by} is joined after at most {total}" + (f": {said}" if said else "")


@dataclass(frozen=True)
class _Shown:
    """The KEY columns that the rows of a join show: their classes of equal columns, and the number of values
    that they have together; None if nothing declared limits it.
    """

    known: set[Column]
    keys: int | None


def limited(stream: StreamDef, query: JoinByTime, catalog: Catalog) -> StreamDef:
    """The stream of the rows of a join, with the limits that follow from the join."""
    found = analyse(query, catalog)
    lags = replace(stream, delay=0, max_stall=0, max_ahead=0)
    shown = _shown(stream, query, found)
    rate = _rate(query, found, shown.known)
    if rate is None or shown.keys is None:
        return lags
    return replace(lags, keys=shown.keys, rate=rate)


def _equal(found: Analysis) -> list[set[Column]]:
    return [set(one) for one in classes(found.equalities)]


def _with_equal(some: set[Column], equal: Sequence[set[Column]]) -> set[Column]:
    """These columns and all that are equal to one of them."""
    return some.union(*(one for one in equal if one & some))


def _shown(stream: StreamDef, query: JoinByTime, found: Analysis) -> _Shown:
    equal = _equal(found)
    exprs = {output.name: output.expr for output in query.select}
    columns = {e for name in stream.key if isinstance(e := exprs[name], Column)}
    known = _with_equal(columns, equal)
    left, keys = set(columns), 1
    # The source of the rows' times first: its keys may be the only ones.
    for alias in sorted(found.aliases, key=lambda one: one != query.timed_by):
        own = {column for column in known if column.alias == alias}
        own = {column for column in own if column.name in found.streams[alias].key}
        taken = {column for column in left if _with_equal({column}, equal) & own}
        if taken:
            declared = found.streams[alias].keys
            if declared is None:
                return _Shown(known, None)
            left, keys = left - taken, keys * declared
    return _Shown(known, keys)


def _rate(query: JoinByTime, found: Analysis, known: set[Column]) -> Rate | None:
    """The rate of the rows with given values of their KEY columns; `known` are these and those equal to them.
    None if nothing declared limits it.
    """
    equal, upper, first = _equal(found), found.closure.upper, str(query.timed_by)
    chosen = found.streams[first]
    if chosen.rate is None:
        return None
    count = chosen.rate.count
    for alias in sorted(found.aliases, key=lambda one: one != first):
        stream = found.streams[alias]
        own = {Column(alias, column.name, column.type) for column in stream.columns}
        if not {column for column in own if column.name in stream.key} <= known:
            if stream.keys is None:
                return None
            count *= stream.keys
        if alias != first:
            if stream.rate is None:
                return None
            span = upper[alias, first] + upper[first, alias]
            count *= stream.rate.count * (span // stream.rate.per + 1)
        known = _with_equal(known | own, equal)
    return Rate(count, chosen.rate.per)
