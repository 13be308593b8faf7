"""What an edge does of a plan that calls functions of Python which aren't installed beside it.

It does without: an entry whose value it can't compute keeps every tuple, one whose filter it can't evaluate
lets pass what that part would have decided, and the joiner sees to the rest. That costs traffic, never an
alarm.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import chain

from tamis.expressions.nodes import Call, Expr, conjunction
from tamis.expressions.opaque import calls, missing
from tamis.planning.plan import Entry, Plan, TopicPlan
from tamis.planning.plan_json import MOST_REMEMBERED
from tamis.planning.remembered import Remembered


def lacking(plan: Plan) -> tuple[str, ...]:
    """The functions that entries call and that aren't installed here."""
    entries = (entry for stream in plan.streams for topic in stream.topics for entry in topic.entries)
    return missing(*chain.from_iterable(_CALLS.one(entry, partial(_calls, entry)) for entry in entries))


# A plan comes with every change of one query, and its other entries are the objects that they were.
_CALLS = Remembered[tuple[Call, ...]](MOST_REMEMBERED)


def _calls(entry: Entry) -> tuple[Call, ...]:
    return tuple(calls(entry.filter, entry.value))


def needed(plan: Plan) -> tuple[str, ...]:
    """Those that can't be done without: a derived stream's own columns are made of them."""
    topics = [topic for stream in plan.streams for topic in stream.topics]
    return missing(*(expr for topic in topics for _, expr in topic.select))


def able(plan: Plan) -> Plan:
    """The plan with nothing in it that can't be called here."""
    if not lacking(plan):
        return plan
    streams = tuple(replace(stream, topics=tuple(map(_topic, stream.topics))) for stream in plan.streams)
    return replace(plan, streams=streams)


def _topic(topic: TopicPlan) -> TopicPlan:
    return replace(topic, entries=tuple(dict.fromkeys(map(_entry, topic.entries))))


def _entry(entry: Entry) -> Entry:
    if missing(entry.value):
        entry = replace(entry, value=None, interval=0, window=None)
    if missing(entry.filter):
        entry = replace(entry, filter=_without(entry.filter))
    return entry


def _without(filter_: Expr | None) -> Expr | None:
    """The conjuncts that can be evaluated."""
    if isinstance(filter_, Call) and filter_.op == "and":
        parts = [part for arg in filter_.args if (part := _without(arg)) is not None]
        return conjunction(tuple(parts))
    return None if missing(filter_) else filter_
