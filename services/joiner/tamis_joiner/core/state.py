"""Where a group's state lives: one map from names to opaque bytes, and a cache in the process beside it.

    meta                         JSON: format, token, counters, frontiers, the index of all that follows
    plan/<version>               the plan that the group obeys, as it came
    slice/<topic>/<width>/<n>    the tuples of a topic with n * width <= time < (n + 1) * width
    parked/<number>              records that wait for a plan
    standing/<alert>@<version>   the synopses of a standing query

A batch rewrites `meta`, the slices that it put tuples into and the synopses that changed, nothing else.
Every write of a slice has a fresh random token, which `meta` names; all names change together, as one commit
of the state store. So what a process remembers of a slice with the token that `meta` names is what the store
holds, whatever attempts, retries and restarts lie between.
"""

from __future__ import annotations

from typing import Protocol


class StateMap(Protocol):
    """A map that is committed as one: Spark's map state, or a dict in tests."""

    def get(self, name: str) -> bytes | None:
        """The bytes under `name`."""

    def put(self, name: str, value: bytes) -> None:
        """Put bytes under `name`."""

    def remove(self, name: str) -> None:
        """Forget `name`."""


class DictState:
    """State in a dict, counting what is read and written; `tamis run` and tests use it."""

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
