"""Origin of a plan version: when and why it was made, as a header of the plan's record.

Services refuse a plan with a member that they don't know (decision 51). Of a record they read no headers, so
earlier releases can read plans with an origin, and plans that they have written have the time of their record
only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec
from msgspec import Struct

from tamis.messaging.topic_reader import Record

HEADER = "origin"
# Bytes of the reasons, so that a plan of the greatest size fits into its record with them.
MOST_BYTES = 2_000


@dataclass(frozen=True)
class Origin:
    """The time at which a plan was made, in microseconds, and the reasons, oldest first."""

    time: int
    why: tuple[str, ...] = ()

    @staticmethod
    def now(time: int, why: Iterable[str]) -> Origin:
        """The origin of a plan that is written now; of many reasons the first ones and the number of the
        others.
        """
        reasons = list(dict.fromkeys(why))
        kept, left = 0, MOST_BYTES
        for reason in reasons:
            left -= len(reason.encode())
            if left < 0:
                break
            kept += 1
        more = [f"{len(reasons) - kept} more"] if kept < len(reasons) else []
        return Origin(time, (*reasons[:kept], *more))

    @staticmethod
    def of(record: Record) -> Origin:
        """The origin of a plan in Kafka."""
        written = record.timestamp * 1_000
        for name, value in record.headers:
            if name == HEADER:
                try:
                    found = _decode(value)
                except msgspec.MsgspecError:
                    continue  # of a later release
                return Origin(found.time, found.why)
        return Origin(written)

    @property
    def header(self) -> tuple[str, bytes]:
        """The header of the plan's record."""
        return HEADER, _encode(_Header(self.time, self.why))


class _Header(Struct):
    time: int
    why: tuple[str, ...] = ()


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Header).decode
