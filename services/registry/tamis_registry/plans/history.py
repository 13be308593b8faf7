"""The newest plan versions as written, and the version in a record of `tamis.plans`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from tamis.errors import InputError
from tamis.plan.json_form import version_of
from tamis_registry.plans.origin import Origin

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
