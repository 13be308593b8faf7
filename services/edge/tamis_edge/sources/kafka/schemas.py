"""Schemas that the readings of a Kafka source name, fetched from the schema registry by a thread.

Readings whose schemas aren't here yet wait in their shard's buffer. A registry that doesn't answer is asked
again and again, so that no reading is lost for it.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tamis.errors import UnavailableError
from tamis.messaging.dead_letters import Reason
from tamis.messaging.schemas.registry import MOST_CACHED, UnusableSchema, WriterSchema
from tamis.messaging.schemas.wire_format import Kind, schema_of
from tamis.telemetry.logs import get_logger
from tamis_edge.decode.decoder import Decoded, Decoder
from tamis_edge.decode.schema_rows import Schemas
from tamis_edge.sources.base import Payloads

_log = get_logger("edge.schemas")

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0  # seconds between questions to a registry that doesn't answer
# Seconds until the registry is asked again for a schema that it didn't have: its replicas may lag.
ABSENT_FOR = 30.0


class Registry(Protocol):
    """The part of `tamis.messaging.schemas.registry.SchemaRegistry` that is used here."""

    def schema(self, number: int, kind: Kind) -> WriterSchema | UnusableSchema: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class SchemaPayloads(Payloads):
    """Readings with the schemas that they name."""

    schemas: Schemas = field(default_factory=dict)

    def decode(self, decoder: Decoder, now: int) -> Decoded:
        return decoder.with_schemas(self.payloads, self.schemas, now)


class FetchedSchemas:
    """The schemas of one source. `find` is called by the edge's loop and never waits."""

    def __init__(
        self,
        registry: Registry,
        kind: Kind,
        *,
        clock: Callable[[], float] = time.monotonic,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        """`clock`: monotonic seconds. `wake` is called when a schema has come."""
        self._registry, self._kind, self._clock, self._wake = registry, kind, clock, wake
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._known: OrderedDict[int, tuple[WriterSchema | UnusableSchema, float]] = OrderedDict()
        self._asked: set[int] = set()
        self._trouble: str | None = None
        self._closing = False
        self._thread: threading.Thread | None = None

    @property
    def trouble(self) -> str | None:
        """The reason why a schema can't be fetched; None if none is missing."""
        with self._lock:
            return self._trouble

    def find(self, payloads: Sequence[bytes]) -> tuple[int, Schemas]:
        """The number of readings from the first one on whose schemas are known, and these schemas. The schema
        of the next reading is fetched.
        """
        wanted: dict[int, WriterSchema | UnusableSchema] = {}
        with self._lock:
            for row, payload in enumerate(payloads):
                number = schema_of(payload)
                if number is None or number in wanted:
                    continue
                found = self._get(number)
                if found is None:
                    self._ask(number)
                    return row, wanted
                wanted[number] = found
        return len(payloads), wanted

    def close(self) -> None:
        """Fetch no more."""
        with self._lock:
            self._closing = True
            self._changed.notify_all()

    def _get(self, number: int) -> WriterSchema | UnusableSchema | None:
        if number not in self._known:
            return None
        found, until = self._known[number]
        if self._clock() >= until:
            del self._known[number]
            return None
        self._known.move_to_end(number)
        return found

    def _ask(self, number: int) -> None:
        # One at a time is enough: later readings wait behind it.
        self._asked.add(number)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="schemas", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _run(self) -> None:
        try:
            self._fetch()
        finally:
            self._registry.close()

    def _fetch(self) -> None:
        pause = FIRST_PAUSE
        while (number := self._next()) is not None:
            try:
                found = self._registry.schema(number, self._kind)
            except UnavailableError as error:
                with self._lock:
                    if self._trouble != str(error):
                        _log.warning("readings wait for their schema", schema=number, reason=str(error))
                    self._trouble = str(error)
                    self._changed.wait_for(lambda: self._closing, pause)
                pause = min(pause * 2, LONGEST_PAUSE)
                continue
            pause = FIRST_PAUSE
            self._keep(number, found)
            self._wake()

    def _next(self) -> int | None:
        """The next schema to fetch; None if this is closed."""
        with self._lock:
            self._changed.wait_for(lambda: self._closing or bool(self._asked))
            return None if self._closing else min(self._asked)

    def _keep(self, number: int, found: WriterSchema | UnusableSchema) -> None:
        absent = isinstance(found, UnusableSchema) and found.reason is Reason.UNKNOWN_SCHEMA
        until = self._clock() + ABSENT_FOR if absent else float("inf")
        with self._lock:
            self._known[number] = found, until
            self._asked.discard(number)
            while len(self._known) > MOST_CACHED:
                self._known.popitem(last=False)
            self._trouble = None
        if isinstance(found, UnusableSchema):
            _log.error("a schema can't be used: its readings become dead letters", reason=found.error)
        else:
            _log.info("a schema was fetched", schema=number)
