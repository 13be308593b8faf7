"""Subscriptions: readers outside the fleet, each a predicate over one stream, served without omission."""

from __future__ import annotations

from dataclasses import dataclass

from tamis.expressions.nodes import Expr
from tamis.plan.model import Input
from tamis.plan.omission import Omission
from tamis.query.model import StreamDef
from tamis.sharing.entries import ReaderInput


@dataclass(frozen=True)
class Subscription:
    """Every tuple of a raw stream that passes `filter`, with all of its columns.

    `filter` is over bare column names; None lets every tuple pass. `version`: the plan version that made it.
    """

    id: str
    stream: str
    filter: Expr | None
    version: int


def subscriber(one: Subscription, stream: StreamDef, topic: str) -> ReaderInput:
    """The subscription as an input from a topic."""
    key = stream.key
    rest = tuple(c.name for c in stream.columns if c.name not in (*key, stream.time))
    source = Input("", stream.name, topic, stream.time or "", key, one.filter, 0, rest)
    nothing = "no omission: a subscriber needs every tuple"
    return ReaderInput(source, Omission.none("", key, one.filter, nothing), one.version, max_delay=None)
