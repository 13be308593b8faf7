"""Plans that call Python functions which aren't installed beside the edge.

The edge uses such a plan without these functions. An entry whose value can't be computed retains every tuple.
If a filter can't be evaluated, the edge leaves out the part with the missing function and the joiner
evaluates it. The entry then retains every tuple, too: a tuple that doesn't pass the whole filter must not
stand for one that does. This causes more traffic, but no alarm is missed.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import chain

from tamis.declarations.watches import window_functions
from tamis.expressions.nodes import Call, Expr, conjunction
from tamis.expressions.python_functions import calls, missing
from tamis.identity_cache import IdentityCache
from tamis.plan.model import Entry, Plan, TopicPlan
from tamis.plan.wire import MOST_CACHED


def lacking(plan: Plan) -> tuple[str, ...]:
    """The functions that entries call and that aren't installed here."""
    entries = (entry for stream in plan.streams for topic in stream.topics for entry in topic.entries)
    return missing(*chain.from_iterable(_CALLS.one(entry, partial(_calls, entry)) for entry in entries))


# Each change of one query makes a new plan, in which the other entries are the same objects as before.
_CALLS = IdentityCache[tuple[Call, ...]](MOST_CACHED)


def _calls(entry: Entry) -> tuple[Call, ...]:
    return tuple(calls(entry.filter, entry.value))


def needed(plan: Plan) -> tuple[str, ...]:
    """The missing functions without which the edge can't use a plan: those that compute columns of derived
    streams, or values of patterns and window functions.
    """
    topics = [topic for stream in plan.streams for topic in stream.topics]
    watches = [watch for stream in plan.streams for watch in stream.all_watches]
    values = [watch.value for watch in watches]
    values += [one.default for one in window_functions(watches) if one.default is not None]
    return missing(*(expr for topic in topics for _, expr in topic.select), *values)


def able(plan: Plan) -> Plan:
    """The plan without any call of a missing function."""
    if not lacking(plan):
        return plan
    streams = tuple(replace(stream, topics=tuple(map(_topic, stream.topics))) for stream in plan.streams)
    return replace(plan, streams=streams)


def _topic(topic: TopicPlan) -> TopicPlan:
    return replace(topic, entries=tuple(dict.fromkeys(map(_entry, topic.entries))))


def _entry(entry: Entry) -> Entry:
    if missing(entry.value, entry.filter):
        wide = _without(entry.filter)
        entry = replace(entry, filter=wide, value=None, interval=0, window=None, representation=None)
    return entry


def _without(filter_: Expr | None) -> Expr | None:
    """The conjuncts that can be evaluated."""
    if isinstance(filter_, Call) and filter_.op == "and":
        parts = [part for arg in filter_.args if (part := _without(arg)) is not None]
        return conjunction(tuple(parts))
    return None if missing(filter_) else filter_
