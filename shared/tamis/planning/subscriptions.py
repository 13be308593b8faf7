"""A reader outside the fleet: a predicate over one stream, served like a query without omission."""

from __future__ import annotations

from dataclasses import dataclass

from tamis.expressions.nodes import Expr
from tamis.planning.entries import Reader
from tamis.planning.omission import Omission
from tamis.planning.plan import Input
from tamis.query.model import StreamDef


@dataclass(frozen=True)
class Subscription:
    """Every tuple of a raw stream that passes `filter` (over bare column names; None: all), with all of its
    columns. `version` is the plan version that made it.
    """

    id: str
    stream: str
    filter: Expr | None
    version: int


def subscriber(one: Subscription, stream: StreamDef, topic: str) -> Reader:
    """The subscription as a reader of a topic."""
    key = stream.key
    rest = tuple(c.name for c in stream.columns if c.name not in (*key, stream.time))
    source = Input("", stream.name, topic, stream.time or "", key, one.filter, 0, rest)
    nothing = "no omission: whoever reads it wants every tuple"
    omission = Omission("", 0, key, None, None, None, one.filter, one.filter, nothing)
    return Reader(source, omission, one.version, None)
