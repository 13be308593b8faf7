"""Identities of the alarms of one alert and key, in chunks, to recognise alarms that are delivered again.

A full chunk is closed: it is written once and never changes. The open chunk is written with each batch of
alarms, in the same record as the key's runs. So the cost of a write doesn't grow with the number of
identities. A crash loses the runs together with the identities of their alarms, or neither. A closed chunk
counts only after the record of the runs names the next chunk as the open one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

# Identities of one chunk, and closed chunks of one key. A key that raises more alarms before the frontier
# passes them may count an alarm twice after a crash; its episodes stay the same.
CHUNK = 256
MOST_CHUNKS = 80


@dataclass
class Chunk:
    """Identities, and the greatest event time of their alarms."""

    latest: int = -(2**62)
    ids: list[str] = field(default_factory=list)


class AlarmIds:
    """A set of identities, from which old ones are removed by event time."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._closed: dict[int, Chunk] = {}  # by number, in the order of these
        self._open, self._number = Chunk(), 0
        self._changed: set[int] = set()

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, identity: str, time: int) -> bool:
        """Add an identity; False if the set already has it."""
        if identity in self._ids:
            return False
        if len(self._open.ids) >= CHUNK:
            self._close()
        self._ids.add(identity)
        self._open.ids.append(identity)
        self._open.latest = max(self._open.latest, time)
        return True

    def _close(self) -> None:
        self._closed[self._number] = self._open
        self._changed.add(self._number)
        self._open, self._number = Chunk(), self._number + 1
        if len(self._closed) > MOST_CHUNKS:
            self._drop(next(iter(self._closed)))

    def forget(self, before: int) -> bool:
        """Remove the chunks whose alarms are all from before that event time; True if there were such
        chunks.
        """
        gone = [number for number, chunk in self._closed.items() if chunk.latest < before]
        for number in gone:
            self._drop(number)
        if not self._open.ids or self._open.latest >= before:
            return bool(gone)
        self._ids.difference_update(self._open.ids)
        self._open = Chunk()
        return True

    def _drop(self, number: int) -> None:
        self._ids.difference_update(self._closed.pop(number).ids)
        self._changed.add(number)

    # ---- records of the changelog

    def open_chunk(self) -> dict[str, Any]:
        """The open chunk, for the record of the runs."""
        return {"number": self._number, "latest": self._open.latest, "ids": self._open.ids}

    def changes(self) -> Iterator[tuple[int, bytes | None]]:
        """Numbers and records of chunks that were closed since the last call; None for a removed chunk."""
        changed, self._changed = sorted(self._changed), set()
        for number in changed:
            chunk = self._closed.get(number)
            yield number, None if chunk is None else orjson.dumps(chunk)

    def restore_closed(self, number: int, record: bytes | None) -> None:
        """Take a record of `changes`. `restored` must be called after the last one."""
        self._closed.pop(number, None)
        if record is not None:
            self._closed[number] = Chunk(**orjson.loads(record))

    def restore_open(self, chunk: dict[str, Any] | None) -> None:
        """Take the result of `open_chunk`."""
        found = chunk or {"number": 0, "latest": Chunk().latest, "ids": []}
        self._number, self._open = found["number"], Chunk(found["latest"], found["ids"])

    def restored(self) -> None:
        """Finish the restoration after all records have been taken."""
        # A crash may lie between a closed chunk and the runs: then this chunk still is the open one.
        self._closed = {n: self._closed[n] for n in sorted(self._closed) if n < self._number}
        self._ids = set(self._open.ids).union(*(chunk.ids for chunk in self._closed.values()))
