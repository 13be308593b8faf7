"""Plan versions: the newest as written, each with its origin, and the plan that is still to be written.

Services refuse a plan with a member that they don't know (decision 51). Of a record they read no headers, so
earlier releases can read plans with an origin, which is a header. Plans that they have written have the time
of their record only.

A large plan is written once for several changes. Every partition gets the whole plan (decision 29). If a plan
of thousands of queries were written at every change, it would fill disks, and all services would be busy
reading it. A decision is durable with its statements. For the fleet, a plan that is never written is the same
as a plan that was decided just before a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import orjson
from msgspec import Struct

from tamis.errors import InputError
from tamis.messaging.topic_reader import Record
from tamis.plan.document import PlanDocument
from tamis.plan.json_form import version_of
from tamis_registry.core.plan.change import Change, Final

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


# How many versions are kept at most, and how many bytes of them: plans of thousands of queries are large.
VERSIONS = 50
BYTES = 32 * 1024 * 1024


Summary = dict[str, Any]

# Versions are counted one by one, so a registry never writes a greater version. Later versions would exceed
# the numbers that every service can read.
GREATEST_VERSION = 2**53


def whole_version(document: bytes) -> int:
    """The version of a plan whose whole text is valid JSON. Raises InputError if the record isn't a plan."""
    try:
        orjson.loads(document)
    except orjson.JSONDecodeError as error:
        raise InputError(f"not JSON: {error}") from None
    version = version_of(document)
    if version >= GREATEST_VERSION:
        raise InputError(f"the plan has version {version}, which is too large for a plan of a registry")
    return version


def claimed(document: bytes) -> int:
    """The version in a record that isn't a plan, such as a truncated plan; 0 if it has none.

    A service may have read the complete plan, so no other plan may get this version.
    """
    try:
        version = version_of(document)
    except InputError:
        return 0
    return version if version < GREATEST_VERSION else 0


class History:
    """Plans by version. It always has the newest plan."""

    def __init__(self) -> None:
        self._plans: dict[int, bytes] = {}
        self._origins: dict[int, Origin] = {}
        self._summaries: dict[int, Summary | None] = {}
        self._claimed = 0

    def add(self, version: int, document: bytes, origin: Origin) -> None:
        """Add a plan, and remove the oldest."""
        self._plans[version] = document
        self._origins[version] = origin
        self._summaries.pop(version, None)
        while len(self._plans) > 1 and (len(self._plans) > VERSIONS or self._bytes() > BYTES):
            oldest = min(self._plans)
            del self._plans[oldest], self._origins[oldest]
            self._summaries.pop(oldest, None)

    def get(self, version: int) -> bytes | None:
        """A plan; None if it isn't kept."""
        return self._plans.get(version)

    def origin(self, version: int) -> Origin | None:
        """The origin of a plan; None if the plan isn't kept."""
        return self._origins.get(version)

    def summaries(self, make: Callable[[bytes], Summary | None]) -> list[Summary]:
        """The result of `make` for each plan, the newest first. Plans for which `make` returns nothing are
        left out.

        `make` is called once for each plan, because a plan of thousands of queries takes long to decode.
        """
        for version, document in self._plans.copy().items():
            if version not in self._summaries:
                self._summaries[version] = make(document)
        found = sorted(self._summaries.copy().items(), reverse=True)
        return [summary for version, summary in found if summary is not None and version in self._plans]

    def claim(self, version: int) -> None:
        """Reserve a version that must not be used again, although its plan can't be read."""
        self._claimed = max(self._claimed, version)

    @property
    def greatest(self) -> int:
        """The newest version; 0 if there is none."""
        return max(self._claimed, *self._plans, 0)

    def _bytes(self) -> int:
        return sum(map(len, self._plans.values()))


# Bytes of plans a second, over all partitions, and the most seconds that a change waits for its plan.
RATE = 16_000_000
LONGEST = 5.0
# Bytes, over all partitions, of a plan that is written at once.
SMALL = 1_000_000


@dataclass
class PendingPlan:
    """The plan that waits to be written; version 0: none.

    `written`: the time at which the last write ended, seconds of the monotonic clock.
    """

    version: int = 0
    plan: PlanDocument | None = None
    finals: list[Final] = field(default_factory=list)
    why: list[str] = field(default_factory=list)
    written: float = float("-inf")

    def take(self, change: Change) -> None:
        """Replace the plan by the plan of a change. Final records and reasons of all changes are kept."""
        assert change.plan is not None
        self.version, self.plan = change.plan.version, change.written
        self.finals += change.finals
        self.why += change.why

    def due(self, now: float, partitions: int) -> bool:
        """True if it is time to write the plan."""
        size = (self.plan.size if self.plan else 0) * partitions
        return size <= SMALL or now - self.written >= min(size / RATE, LONGEST)
