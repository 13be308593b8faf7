"""Memory of the aggregates of sessions, as a formula and, where enough is declared, as a number.

Tuples that the watermark hasn't passed are kept by time and group, since an earlier tuple may still come that
begins their session, or that makes one session of two. The watermark is at most `delay + max_stall` behind
the present, and no tuple is ahead of the present by more than `max_ahead`. So these tuples lie in a closed
span of

    P = delay + max_stall + max_ahead.

The others are merged: each key has at most one session that has begun and not ended at the watermark. It has
an entry for the session itself, one for each group, and for `median`, percentiles and `count(DISTINCT)` one
for each value of a group. Groups and values are limited by the number of combinations of values, and by the
number of tuples in the greatest length of a session. Without a greatest length a session may last forever:
then only combinations of values limit them, and if these don't, the memory is unbounded.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

from tamis.bounded.group_counts import (
    Combinations,
    Count,
    Entries,
    fewer,
    group_columns,
    repairs,
    tuples_in,
)
from tamis.bounded.joined_tables import JoinedTables
from tamis.bounded.memory import EMPTY, Memory, no_number, sentences, undeclared
from tamis.bounded.timeless.repairs import MOST_REPAIRS
from tamis.declarations.definitions import Session
from tamis.declarations.streams import StreamDef
from tamis.durations import seconds
from tamis.expressions.nodes import Column
from tamis.plan.model import Kept
from tamis.query.model import Catalog, SessionGroupBy

SESSIONS = "aggregates of sessions (tuples that the watermark hasn't passed, and open sessions)"
_LENGTH = "a greatest length: SESSION(…, gap, INTERVAL '1' DAY)"


def memory_verdict(query: SessionGroupBy, catalog: Catalog) -> Memory:
    """The verdict on a query with aggregates over sessions."""
    found = _bounded(query, catalog)
    if found.bound is not None:
        return found
    if found.verdict == "unbounded":
        return replace(found, repairs=(_LENGTH,))
    return replace(found, repairs=tuple(itertools.islice(repairs(query, catalog, _bounded), MOST_REPAIRS)))


def kept(query: SessionGroupBy, catalog: Catalog) -> Kept | None:
    """The bound as tuples that the watermark hasn't passed, and the entries of open sessions; None if the
    bound is no number.
    """
    found, counted = _bounded(query, catalog), _counted(query, catalog)
    if found.bound is None:
        return None
    stream = catalog.streams[query.sources[0].stream]
    if counted is None or stream.rate is None:
        return Kept(0, 0, 1, found.bound)
    keys = (stream.keys if stream.key else 1) or 0
    pending = keys * stream.rate.count * (1 + len(counted[1].values))
    of_span = pending * (_span(stream) // stream.rate.per + 1)
    return Kept(_span(stream), pending, stream.rate.per, found.bound - of_span)


def _span(stream: StreamDef) -> int:
    """P of the module's docstring, in microseconds."""
    return stream.delay + stream.max_stall + (stream.max_ahead or 0)


def _bounded(query: SessionGroupBy, catalog: Catalog) -> Memory:
    session = query.session
    stream = catalog.streams[query.sources[0].stream]
    counted = _counted(query, catalog)
    if counted is None:
        what = "warning: the conditions contradict each other, so the query never has a row"
        return Memory("bounded", 0, "0", EMPTY, what)
    sessions, entries = counted
    pending = tuples_in(stream, _span(stream) + 1, seconds(_span(stream)))
    kinds = 1 + len(entries.values)
    ahead = f" + max_ahead({stream.name})" if stream.max_ahead is None else ""
    times = f"{kinds} * " if kinds > 1 else ""
    formula = f"{times}{pending.text}{ahead} + {sessions.text} open sessions + {entries.text}"
    if session.greatest is None and entries.count == math.inf:
        single = catalog.copy()
        single.streams[stream.name] = replace(stream, keys=1)
        known = _counted(query, single)
        if known is not None and known[1].count == math.inf:
            named = " and ".join(f"{one.alias}.{one.name}" for one in known[1].unlimited(_others(query)))
            what = f"a session may last forever, and no declaration limits its values of {named}"
            return Memory("unbounded", None, formula, SESSIONS, what)
    if stream.max_ahead is None:
        return Memory("bounded", None, formula, SESSIONS, no_number(filter(None, [undeclared(stream)])))
    if math.inf in (pending.count, sessions.count, entries.count):
        reason = sentences(no_number(filter(None, [undeclared(stream)])), _why(session))
        return Memory("bounded", None, formula, SESSIONS, reason)
    total = kinds * int(pending.count) + int(sessions.count) + int(entries.count)
    return Memory("bounded", total, formula, SESSIONS, _why(session))


def _counted(query: SessionGroupBy, catalog: Catalog) -> tuple[Count, Entries] | None:
    """The number of open sessions, and the entries of all of them; None if the conditions contradict each
    other.
    """
    session, counted = query.session, Combinations.of(query, catalog)
    stream = catalog.streams[query.sources[0].stream]
    if counted is None:
        return None
    keys = JoinedTables(query, catalog).limits(_key(query))
    # The last tuple of an open session is at most a gap behind the watermark.
    sessions = fewer(tuples_in(stream, session.gap, "a gap"), keys)
    most = Count(math.inf, "unlimited")
    if session.greatest is not None:
        most = tuples_in(stream, session.greatest, "a session")
    entries = counted.entries(most)
    if not _others(query) and sessions.count < entries.groups.count:
        entries = replace(entries, groups=sessions)
    return sessions, entries


def _key(query: SessionGroupBy) -> tuple[Column, ...]:
    """The columns of GROUP BY by which sessions are told apart."""
    return tuple(column for column in group_columns(query.grouping) if column.name in query.session.by)


def _others(query: SessionGroupBy) -> list[Column]:
    """The other columns of GROUP BY."""
    key = _key(query)
    return [column for column in group_columns(query.grouping) if column not in key]


def _why(session: Session) -> str:
    longest = "" if session.greatest is None else f" or is {seconds(session.greatest)} long"
    return (
        "a tuple is kept until the watermark passes it, and then a group until its session has had no tuple"
        f" for {seconds(session.gap)}{longest}"
    )
