"""The explanation of a query, as data and as the JSON of the interface."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import orjson

from tamis.bounded.memory import Memory
from tamis.bounded.timeless.proof import Growth
from tamis.expressions.nodes import Expr
from tamis.plan.model import GREATEST
from tamis.planning.verdict import sql_over, with_implied
from tamis.planning.watched_source import WatchedSource
from tamis.query.model import Session, StreamDef, Window
from tamis.sharing.selectivity import ShareEstimate


@dataclass(frozen=True)
class Measured:
    """The tuples of a recording, and how many of them an edge would drop for the query alone.

    For an alert over one stream that calls Python functions only for retained tuples: `calls` is the number
    of tuples for which it would call them without omission, and `calls_saved` the number of omitted ones
    among these. For an alert with max_delay, `dropped_without_delay` is the number that an edge would drop
    if it could wait.
    """

    tuples: int
    dropped: int
    calls: int | None = None
    calls_saved: int | None = None
    dropped_without_delay: int | None = None

    def document(self) -> dict[str, int]:
        """The JSON object, without the numbers that there are not."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class SourceExplanation:
    """One source of a query. Expressions are SQL over the stream's columns; intervals are microseconds."""

    alias: str
    stream: str
    key: tuple[str, ...]  # what omission keeps apart: the partition key's columns first
    filter: Expr | None
    value: str | None
    interval: int | None
    sides: str | None
    certificate: str | None
    reason: str
    window: Window | None = None
    implied: Expr | None = None  # by the other conditions: edges apply it beside the filter
    selectivity: ShareEstimate | None = None  # of both, where it was asked for and can be estimated
    constant: bool = False  # its values don't matter: any tuple can replace another one close in time
    watched: StreamDef | None = None  # the watched stream in place of the stream, which `filter` reads
    most_omitted: float | None = None  # greatest share that omission can leave out, by the declared rate
    measured: Measured | None = None  # on a recording, where one was given
    advice: tuple[str, ...] = ()  # changes that allow more omission, where they were asked for
    session: Session | None = None

    @property
    def predicate(self) -> str | None:
        """The filter as SQL."""
        return None if self.filter is None else sql_over(self.filter, self.watched)

    @property
    def implied_predicate(self) -> str | None:
        """The implied predicate as SQL."""
        return None if self.implied is None else sql_over(self.implied, self.watched)

    def document(self) -> dict[str, Any]:
        """The JSON object of the interface, with more fields where they are known."""
        return {
            "alias": self.alias,
            "stream": self.stream,
            "key": list(self.key),
            "predicate": self.predicate,
            "value": self.value,
            "omission": {
                "interval": self.interval,
                "sides": self.sides,
                "certificate": self.certificate,
                "reason": with_implied(self.reason, self.implied, self.watched),
            },
            **(WatchedSource.of(self.watched).document() if self.watched else {}),
            **({"window": _lengths(self.window)} if self.window else {}),
            **({"session": asdict(self.session)} if self.session else {}),
            **({"selectivity": asdict(self.selectivity)} if self.selectivity else {}),
            **({"most_omitted": self.most_omitted} if self.most_omitted is not None else {}),
            **({"measured": self.measured.document()} if self.measured else {}),
            **({"advice": list(self.advice)} if self.advice else {}),
        }


def _lengths(window: Window) -> dict[str, Any]:
    """The slide and the size of a window, and its other properties if it has them."""
    return {name: value for name, value in asdict(window).items() if value}


@dataclass(frozen=True)
class Explanation:
    """The explanation of one query before it runs."""

    name: str
    kind: str  # "alert", "stream"
    accepted: bool
    reason: str  # why it is refused; otherwise how it is partitioned
    streams: tuple[SourceExplanation, ...]
    memory: Memory
    growth: tuple[Growth, ...] | None = None  # of a query that is called unbounded, where it was asked for
    warnings: tuple[str, ...] = ()  # mistakes that the query probably has, although it is valid
    history: str = ""  # what reading the history of the streams means, if the alert has the option from

    def document(self) -> dict[str, Any]:
        """The JSON object of the interface."""
        return {
            "name": self.name,
            "kind": self.kind,
            "accepted": self.accepted,
            "streams": [source.document() for source in self.streams],
            "memory": {
                **asdict(self.memory),
                "bound": _number(self.memory.bound),
                "repairs": list(self.memory.repairs),
            },
            **({"warnings": list(self.warnings)} if self.warnings else {}),
            **({"history": self.history} if self.history else {}),
            **({} if self.growth is None else {"growth": [asdict(one) for one in self.growth]}),
        }


def _number(bound: int | None) -> int | orjson.Fragment | None:
    """A bound as orjson takes it, which knows numbers of 64 bits."""
    return bound if bound is None or bound <= GREATEST else orjson.Fragment(str(bound))
