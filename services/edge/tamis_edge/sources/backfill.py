"""Backfill streams at an edge: their sources, and the alignment of the shards that read history.

The sources are those of the raw streams, opened again and read from the beginning. They are opened when a
plan has the backfill stream, and closed with the first plan that doesn't have it. Their shards have names and
commits of their own. A Kafka topic is read in a consumer group of its own.

Sources deliver years of readings as fast as the edge takes them, and not equally fast. The joiner keeps the
tuples of a stream until the others have come as far. The bound of a query's memory allows for a lead of
`max_stall`. A shard that is further ahead of another shard of the same alert therefore waits for it. A
micro-batch can pass this limit, and shards of other edges aren't known here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from tamis.declarations.backfill import Backfill
from tamis.errors import TamisError
from tamis.plan.model import Plan, StreamPlan
from tamis.telemetry.logs import get_logger
from tamis_edge.settings import AnySource, FileSource, KafkaSource
from tamis_edge.sources.base import Source


class Reader(NamedTuple):
    """A shard of a backfill stream that reads. `high`: the greatest event time that it has read, -1 before
    the first reading; `max_stall`: of its stream, microseconds. `going`: its source has more readings.
    """

    shard: str
    stream: str
    high: int
    max_stall: int
    going: bool


def too_far_ahead(readers: Iterable[Reader]) -> set[str]:
    """The shards that have to wait for others.

    >>> hour = 3_600_000_000
    >>> slow = Reader("a", "air-backfill-7", 0, hour, True)
    >>> fast = Reader("b", "surface-backfill-7", 2 * hour, hour, True)
    >>> too_far_ahead([slow, fast]), too_far_ahead([slow._replace(going=False), fast])
    ({'b'}, set())
    """
    groups: dict[int, list[Reader]] = {}
    for one in readers:
        found = Backfill.named(one.stream)
        if found is not None:
            groups.setdefault(found.version, []).append(one)
    waiting = set()
    for group in groups.values():
        least = min((one.high for one in group if one.going), default=None)
        if least is not None:
            lead = min(one.max_stall for one in group)
            waiting |= {one.shard for one in group if one.high - least > lead}
    return waiting


_log = get_logger("edge.backfill")

_Key = tuple[str, str]  # (stream, source)


class BackfillSources:
    """The open sources of backfill streams at one edge."""

    def __init__(
        self, configured: Sequence[AnySource], open_source: Callable[[KafkaSource | FileSource], Source]
    ) -> None:
        self._configured = [one for one in configured if isinstance(one, KafkaSource | FileSource)]
        self._open = open_source
        self._version = 0
        self._opened: dict[_Key, Source] = {}
        self._troubles: dict[_Key, str] = {}

    @property
    def sources(self) -> Sequence[Source]:
        """The sources that are open."""
        return list(self._opened.values())

    def obey(self, plan: Plan | None) -> None:
        """Open the sources of backfill streams that are new in a plan, and close those of others."""
        if plan is None or plan.version == self._version:
            return
        self._version = plan.version
        wanted = {
            (stream.name, source.name): (stream, source)
            for stream in plan.streams
            for source in self._configured
            if stream.origin == source.stream
        }
        for key in self._opened.keys() - wanted.keys():
            source = self._opened.pop(key)
            source.stop()
            source.close()
            _log.info("a source of a backfill stream is closed", stream=key[0], source=key[1])
        self._troubles = {key: why for key, why in self._troubles.items() if key in wanted}
        for key in wanted.keys() - self._opened.keys():
            self._start(key, *wanted[key])

    def _start(self, key: _Key, stream: StreamPlan, configured: KafkaSource | FileSource) -> None:
        changes = {"group": None} if isinstance(configured, KafkaSource) else {"speed": "max"}
        try:
            source = self._open(configured.model_copy(update={"stream": stream.name, **changes}))
        except TamisError as error:
            # A recording that was read to its end may be gone. The edge's other sources continue.
            self._troubles[key] = str(error)
            _log.error("a source can't be read again", stream=key[0], source=key[1], reason=str(error))
            return
        source.start()
        self._troubles.pop(key, None)
        self._opened[key] = source
        _log.info("a source is read again from its beginning", stream=key[0], source=key[1])

    def troubles(self) -> Mapping[str, str | None]:
        """The problem of each source, by its name and its backfill stream; None if it has no problem."""
        found: dict[str, str | None] = {
            f"{name} for {stream}": why for (stream, name), why in self._troubles.items()
        }
        for (stream, _), source in self._opened.items():
            found |= {f"{name} for {stream}": why for name, why in source.troubles().items()}
        return found
