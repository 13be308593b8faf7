"""State of a group: one map from names to bytes, and its cache in the process.

    meta                         JSON: format, token, counters, frontiers, the index of all that follows
    plan/<version>               the plan that the group obeys, as the registry wrote it
    slice/<topic>/<width>/<n>    the tuples of a topic with n * width <= time < (n + 1) * width
    parked/<number>              records that wait for a plan
    newer/<number>               plans of a format that only a newer joiner reads
    standing/<alert>@<version>   the synopses of a standing query

Tuples and records are compressed. A batch rewrites `meta`, the slices that it added tuples to and the
synopses that changed, nothing else.
All names change together, as one commit of the state store. Each write of a slice has a new random token,
and `meta` has the tokens of all slices. So a slice that a process has cached under the token in `meta` is
equal to the stored one, even if attempts failed, were repeated, or the process was restarted in between.
"""

from __future__ import annotations

from typing import Protocol


class StateMap(Protocol):
    """A map whose changes are committed together: Spark's map state, or a dict in tests."""

    def get(self, name: str) -> bytes | None:
        """The bytes under `name`, None if there are none."""

    def put(self, name: str, value: bytes) -> None:
        """Store bytes under `name`."""

    def remove(self, name: str) -> None:
        """Remove `name`."""


class DictState:
    """State in a dict that records which names are read and written, for tests and benchmarks."""

    def __init__(self, blobs: dict[str, bytes] | None = None) -> None:
        self.blobs = dict(blobs or {})
        self.reads: list[str] = []
        self.writes: list[str] = []

    def get(self, name: str) -> bytes | None:
        """As `StateMap.get`."""
        self.reads.append(name)
        return self.blobs.get(name)

    def put(self, name: str, value: bytes) -> None:
        """As `StateMap.put`."""
        self.writes.append(name)
        self.blobs[name] = value

    def remove(self, name: str) -> None:
        """As `StateMap.remove`."""
        self.blobs.pop(name, None)
