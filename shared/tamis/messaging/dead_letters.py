"""Dead letters: a reading that can't be used is kept whole on `tamis.dead-letters`, with why and whence in
its headers.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Reason(StrEnum):
    """Why a reading was set aside; also the label of the metric."""

    UNDECODABLE = "undecodable"
    MISSING_FIELD = "missing_field"
    WRONG_TYPE = "wrong_type"
    OUT_OF_DOMAIN = "out_of_domain"
    NOT_A_NUMBER = "nan"
    UNKNOWN_STREAM = "unknown_stream"
    TOO_LARGE = "too_large"
    AHEAD_OF_CLOCK = "ahead_of_clock"
    REFUSED = "refused"  # by Kafka, for good
    FOREIGN = "foreign"  # on a stream topic, but not written by an edge


@dataclass(frozen=True)
class DeadLetter:
    """The original bytes, and what the headers say of them. `error` names the field and what to do."""

    payload: bytes
    service: str
    source: str  # topic, file, URL path
    partition: int
    offset: int
    reason: Reason
    error: str

    def headers(self) -> list[tuple[str, bytes]]:
        """Kafka headers of the record."""
        return [
            ("service", self.service.encode()),
            ("source.topic", self.source.encode()),
            ("source.partition", str(self.partition).encode()),
            ("source.offset", str(self.offset).encode()),
            ("reason", self.reason.value.encode()),
            ("error", self.error.encode()),
        ]
