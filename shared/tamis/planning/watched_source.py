"""Explanation of a source with `similar`: its patterns, and what an edge keeps of each key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tamis.durations import seconds
from tamis.query.model import StreamDef
from tamis.query.patterns.watch_text import call_text
from tamis.query.watches import NamedPattern, Watch
from tamis.watching.series_watcher import SeriesWatcher

# Patterns of one call that the text names; the JSON document has all of them.
_MOST_NAMED = 3


@dataclass(frozen=True)
class WatchedSource:
    """The watches of a source. An edge keeps so many `readings` and `bytes` of each key for their windows."""

    watches: tuple[Watch, ...]
    readings: int
    bytes: int
    keys: int | None  # that the stream declares

    @staticmethod
    def of(stream: StreamDef) -> WatchedSource:
        """The watches of a watched stream."""
        watcher = SeriesWatcher(stream.watches)
        keys = stream.keys if stream.key else 1
        return WatchedSource(stream.watches, watcher.most_needed, watcher.bytes_per_key, keys)

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


def _patterns(patterns: tuple[NamedPattern, ...]) -> str:
    named = ", ".join(f"{one.name} ({len(one.values)} values)" for one in patterns[:_MOST_NAMED])
    if len(patterns) <= _MOST_NAMED:
        return named
    lengths = sorted(len(one.values) for one in patterns)
    ends = " to ".join(map(str, dict.fromkeys((lengths[0], lengths[-1]))))
    return f"{len(patterns):,} patterns of {ends} values: {named}, …"
