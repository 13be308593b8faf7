"""Dead letters: readings that can't be used, kept unchanged on `tamis.dead-letters`.

The headers have the reason and the origin of each.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Reason(StrEnum):
    """The reason why a reading can't be used; also the label of the metric."""

    UNDECODABLE = "undecodable"
    UNKNOWN_SCHEMA = "unknown_schema"  # the schema registry doesn't have it
    MISSING_FIELD = "missing_field"
    WRONG_TYPE = "wrong_type"
    OUT_OF_DOMAIN = "out_of_domain"
    NOT_A_NUMBER = "nan"
    UNKNOWN_STREAM = "unknown_stream"
    TOO_LARGE = "too_large"
    AHEAD_OF_CLOCK = "ahead_of_clock"
    REFUSED = "refused"  # by Kafka, for good
    FOREIGN = "foreign"  # a record on a stream topic that no edge has written
    UNDELIVERED = "undelivered"  # a notification that a sink has not accepted


@dataclass(frozen=True)
class DeadLetter:
    """The original bytes and the values of the headers. `error` names the field, and what to do."""

    payload: bytes
    service: str
    source: str  # topic, file, URL path
    partition: int
    offset: int
    reason: Reason
    error: str
    edge: str = ""  # the name of the edge that made it
    stream: str = ""  # of a reading: the stream that it was sent to
    sink: str = ""  # of a notification: the sink that has not accepted it
    of_event: tuple[tuple[str, bytes], ...] = ()  # of a notification: the headers of the event

    def headers(self) -> list[tuple[str, bytes]]:
        """The Kafka headers of the record."""
        return [
            ("service", self.service.encode()),
            ("source.topic", self.source.encode()),
            ("source.partition", str(self.partition).encode()),
            ("source.offset", str(self.offset).encode()),
            ("reason", self.reason.value.encode()),
            ("error", self.error.encode()),
            *([("edge", self.edge.encode())] if self.edge else []),
            *([("stream", self.stream.encode())] if self.stream else []),
            *([("sink", self.sink.encode())] if self.sink else []),
            *self.of_event,
        ]
