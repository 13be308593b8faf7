"""The explanation of a query, as data and as the JSON of the interface."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import orjson

from tamis.bounded.memory import Memory
from tamis.bounded.timeless.proof import Growth
from tamis.declarations.definitions import Rate, Session, Window
from tamis.declarations.streams import StreamDef
from tamis.declarations.watches import NamedPattern, Watch, WindowFunction, pattern_watches, window_functions
from tamis.durations import seconds
from tamis.expressions.nodes import Expr, Type
from tamis.plan.model import GREATEST
from tamis.planning.explanations.transfer import Transfer
from tamis.planning.verdict import sql_over, with_implied
from tamis.query.patterns.watch_text import call_text, window_text
from tamis.sharing.selectivity import ShareEstimate
from tamis.watching.key_history import bytes_per_key, most_readings
from tamis.watching.series_watcher import SeriesWatcher

# Patterns of one call that the text names; the JSON document has all of them.
_MOST_NAMED = 3


@dataclass(frozen=True)
class WatchedSource:
    """The patterns and the window functions of a source; None without any."""

    patterns: PatternSource | None
    windows: WindowSource | None

    @staticmethod
    def of(stream: StreamDef) -> WatchedSource:
        """The watches of a watched stream."""
        patterns, windows = pattern_watches(stream.watches), window_functions(stream.watches)
        keys = stream.keys if stream.key else 1
        watcher = SeriesWatcher(patterns)
        return WatchedSource(
            PatternSource(patterns, watcher.most_needed, watcher.bytes_per_key, keys) if patterns else None,
            WindowSource(windows, stream.rate, keys) if windows else None,
        )

    def document(self) -> dict[str, Any]:
        """The fields of the explanation's JSON object; durations are microseconds."""
        return {
            **({"similar": self.patterns.document()} if self.patterns else {}),
            **({"over": self.windows.document()} if self.windows else {}),
        }

    def lines(self) -> Iterator[str]:
        """Sentences for people."""
        for part in (self.patterns, self.windows):
            if part is not None:
                yield from part.lines()


@dataclass(frozen=True)
class PatternSource:
    """The patterns of a source. An edge keeps so many `readings` and `bytes` of each key for them."""

    watches: tuple[Watch, ...]
    readings: int
    bytes: int
    keys: int | None  # that the stream declares

    def document(self) -> dict[str, Any]:
        """Calls with all of their patterns; durations are microseconds."""
        return {
            "calls": [
                {
                    "call": call_text(watch),
                    "patterns": [
                        {"name": one.name, "length": len(one.values), "max_gap": one.max_gap}
                        for one in watch.patterns
                    ],
                }
                for watch in self.watches
            ],
            "readings_per_key": self.readings,
            "bytes_per_key": self.bytes,
        }

    def lines(self) -> Iterator[str]:
        """Sentences for people."""
        for watch in self.watches:
            yield f"{call_text(watch)} compares with {_patterns(watch.patterns)}"
        gaps = sorted({one.max_gap for watch in self.watches for one in watch.patterns})
        between = " to ".join(seconds(gap) for gap in dict.fromkeys((gaps[0], gaps[-1])))
        yield f"no window has a gap of more than {between} between two readings"
        whole = "" if self.keys in (None, 1) else f", {self.bytes * (self.keys or 1):,} bytes for all keys"
        of = "" if self.keys == 1 else " of each key"
        yield f"an edge keeps the latest {self.readings} readings{of} in {self.bytes:,} bytes{whole}"


@dataclass(frozen=True)
class WindowSource:
    """The window functions of a source. `rate` and `keys` are what the stream declares."""

    functions: tuple[WindowFunction, ...]
    rate: Rate | None
    keys: int | None

    def document(self) -> dict[str, Any]:
        """Calls with the limits of their frames; `readings_per_key` is None without a declared rate."""
        return {
            "calls": [
                {"call": window_text(one), "rows": one.frame.first, "age": one.frame.span}
                for one in self.functions
            ],
            "readings_per_key": self._readings,
            "bytes_per_key": self._bytes,
        }

    def lines(self) -> Iterator[str]:
        """Sentences for people."""
        for one in self.functions:
            age = seconds(one.frame.span)
            limit = f": readings of the same key that are at most {age} older"
            yield f"{window_text(one)}{limit if one.frame.first is not None else ''}"
        of = "" if self.keys == 1 else " of each key"
        if self._readings is None or self._bytes is None:
            span = seconds(max(one.frame.span for one in self.functions if one.frame.first is None))
            kept = f"an edge keeps the readings of the last {span}{of}"
            yield f"{kept}: at most rate x {span}, and the stream declares no rate"
            return
        whole = "" if self.keys in (None, 1) else f", {self._bytes * (self.keys or 1):,} bytes for all keys"
        count = f"{self._readings:,} reading{'' if self._readings == 1 else 's'}"
        texts = any(one.value.type is Type.VARCHAR for one in self.functions)
        more = ", plus the texts of these readings" if texts else ""
        yield f"an edge keeps at most the latest {count}{of} in {self._bytes:,} bytes{whole}{more}"

    @property
    def _readings(self) -> int | None:
        """The most readings of one key that are kept for one value."""
        counts = [most_readings([one], self._within) for one in self.functions]
        known = [int(one) for one in counts if one is not None]
        return max(known) if len(known) == len(counts) else None

    @property
    def _bytes(self) -> int | None:
        found = bytes_per_key(self.functions, self._within)
        return None if found is None else int(found)

    def _within(self, span: int) -> float | None:
        return None if self.rate is None else float(self.rate.count * (span // self.rate.per + 1))


def _patterns(patterns: tuple[NamedPattern, ...]) -> str:
    named = ", ".join(f"{one.name} ({len(one.values)} values)" for one in patterns[:_MOST_NAMED])
    if len(patterns) <= _MOST_NAMED:
        return named
    lengths = sorted(len(one.values) for one in patterns)
    ends = " to ".join(map(str, dict.fromkeys((lengths[0], lengths[-1]))))
    return f"{len(patterns):,} patterns of {ends} values: {named}, …"


@dataclass(frozen=True)
class Measured:
    """The tuples of a recording, and how many of them an edge would drop for the query alone.

    For an alert over one stream that calls Python functions only for retained tuples: `calls` is the number
    of tuples for which it would call them without omission, and `calls_saved` the number of omitted ones
    among these. For an alert with max_delay, `dropped_without_delay` is the number that an edge would drop
    if it could wait. For partial aggregates, `rows` and `records` are those that edges would send of the
    tuples that pass the filter.
    """

    tuples: int
    dropped: int
    calls: int | None = None
    calls_saved: int | None = None
    dropped_without_delay: int | None = None
    records: int | None = None
    rows: int | None = None

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
    transfer: Transfer | None = None  # what edges send; None where the omission says it

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
            **({"sent": self.transfer.document()} if self.transfer else {}),
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
