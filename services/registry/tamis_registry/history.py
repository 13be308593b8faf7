"""The newest plan versions, as written."""

from __future__ import annotations

from collections.abc import Iterator

# How many versions are kept at most, and how many bytes of them: plans of thousands of queries are large.
VERSIONS = 50
BYTES = 32 * 1024 * 1024


class History:
    """Plans by version, the newest always among them."""

    def __init__(self) -> None:
        self._plans: dict[int, bytes] = {}

    def add(self, version: int, document: bytes) -> None:
        """Take a plan, and let go of the oldest."""
        self._plans[version] = document
        while len(self._plans) > 1 and (len(self._plans) > VERSIONS or self._bytes() > BYTES):
            del self._plans[min(self._plans)]

    def get(self, version: int) -> bytes | None:
        """A plan; None where it isn't kept."""
        return self._plans.get(version)

    def newest_first(self) -> Iterator[bytes]:
        """All that are kept."""
        return (document for _, document in sorted(self._plans.items(), reverse=True))

    @property
    def greatest(self) -> int:
        """The newest version; 0 where there is none."""
        return max(self._plans, default=0)

    def _bytes(self) -> int:
        return sum(map(len, self._plans.values()))
