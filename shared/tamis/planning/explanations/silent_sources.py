"""Warnings about queries that wait for event time, over streams whose event time may stand still."""

from __future__ import annotations

from collections.abc import Iterator

from tamis.durations import seconds
from tamis.query.model import Catalog, Query


def silence_warnings(query: Query, catalog: Catalog) -> Iterator[str]:
    """A warning for each stream under NOT EXISTS without `idle_timeout`: while a source sends nothing, its
    event time doesn't move, and no row is decided.
    """
    absent = {alias for absence in query.absences for alias in absence.aliases}
    for name in dict.fromkeys(source.stream for source in query.sources if source.alias in absent):
        stream = catalog.streams[name]
        if stream.idle_timeout is None:
            shown, stall = stream.shown_name, seconds(stream.max_stall)
            yield (
                f"stream {shown} has no idle_timeout: while a source of it sends nothing, its event time"
                " stands still, and alarms wait for its next reading, or for the end of its max_stall of"
                f" {stall}. Add idle_timeout = '30 seconds' to its WITH, so that its event time follows the"
                " clock"
            )
