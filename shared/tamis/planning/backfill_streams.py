"""Backfill streams of a plan: those of the alerts that also read readings from before they were created."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tamis.query.backfill import Backfill
from tamis.query.model import AlertDef, Catalog, StreamDef


def backfill(origin: object, version: int, stream: str) -> Backfill | None:
    """The backfill stream in place of a raw stream for a reader that plan `version` made; None if it reads
    the stream itself.
    """
    since = origin.options.from_ if isinstance(origin, AlertDef) else None
    return None if since is None else Backfill.of(stream, version, since)


def stream_read(origin: object, version: int, stream: str) -> str:
    """The stream that a reader of plan `version` reads in place of the stream in its SQL."""
    found = backfill(origin, version, stream)
    return stream if found is None else found.name


def live(alert: AlertDef) -> AlertDef:
    """The alert without `from`, which reads its streams themselves: for recordings, which have a beginning
    anyway.
    """
    if alert.options.from_ is None:
        return alert
    return replace(alert, options=replace(alert.options, from_=None))


def with_backfills(
    catalog: Catalog, alerts: Sequence[tuple[AlertDef, int]], known: Mapping[str, StreamDef]
) -> Catalog:
    """The catalogue with the backfill streams of these alerts, each with the plan version that made it. It is
    this object if they have none. A stream that is the same in `known` stays the same object.
    """
    made = {stream.name: stream for stream in _streams(catalog, alerts)}
    if not made:
        return catalog
    found = catalog.copy()
    for name, stream in made.items():
        before = known.get(name)
        found.streams[name] = before if before == stream else stream
    return found


def _streams(catalog: Catalog, alerts: Sequence[tuple[AlertDef, int]]) -> Iterator[StreamDef]:
    for alert, version in alerts:
        for name in {source.stream for source in alert.query.sources}:
            found, stream = backfill(alert, version, name), catalog.streams.get(name)
            if found is not None and stream is not None:
                yield replace(stream, name=found.name, origin=name, begin=found.begin)
