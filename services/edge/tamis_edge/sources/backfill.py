"""Sources of backfill streams: those of their raw streams, opened again and read from the beginning.

They are opened when a plan has the backfill stream, and closed with the first plan that doesn't have it.
Their shards have names and commits of their own. A Kafka topic is read in a consumer group of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tamis.errors import TamisError
from tamis.plan.model import Plan, StreamPlan
from tamis.telemetry.logs import get_logger
from tamis_edge.settings import AnySource, FileSource, KafkaSource
from tamis_edge.sources.base import Source

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
