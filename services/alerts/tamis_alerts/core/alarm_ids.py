"""Identities of the alarms of one alert and key, in chunks, to recognise alarms that are delivered again.

A full chunk is closed: it is written once and never changes. The open chunk is written with each batch of
alarms, in the same record as the key's runs. So the cost of a write doesn't grow with the number of
identities. A crash loses the runs together with the identities of their alarms, or neither. A closed chunk
counts only after the record of the runs names the next chunk as the open one.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Struct

# Identities of one chunk, and closed chunks of one key. A key that raises more alarms before the frontier
# passes them may count an alarm twice after a crash; its episodes stay the same.
CHUNK = 256
MOST_CHUNKS = 80

_EARLIEST = -(2**62)


class ClosedChunk(Struct, gc=False):
    """Identities that don't change any more, and the greatest event time of their alarms."""

    latest: int
    ids: list[str]


class Chunk(Struct, gc=False):
    """The open chunk: its number, the greatest event time of its alarms, and their identities."""

    number: int = 0
    latest: int = _EARLIEST
    ids: list[str] = []


_read_closed = msgspec.json.Decoder(ClosedChunk).decode
_encode = msgspec.json.Encoder().encode


class AlarmIds:
    """A set of identities, from which old ones are removed by event time.

    Dictionaries without values take the place of sets: most keys have few identities, and an empty
    dictionary takes a third of a set's memory.
    """

    __slots__ = ("_changed", "_closed", "_closed_ids", "_latest", "_number", "_open")

    def __init__(self) -> None:
        self._number, self._latest = 0, _EARLIEST
        self._open: dict[str, None] = {}
        self._closed: dict[int, ClosedChunk] = {}  # by number, in the order of these
        self._closed_ids: dict[str, None] = {}
        self._changed: dict[int, None] = {}

    def __len__(self) -> int:
        return len(self._open) + len(self._closed_ids)

    def add(self, identity: str, time: int) -> bool:
        """Add an identity; False if the set already has it."""
        if identity in self._open or identity in self._closed_ids:
            return False
        if len(self._open) >= CHUNK:
            self._close()
        self._open[identity] = None
        self._latest = max(self._latest, time)
        return True

    def _close(self) -> None:
        self._closed[self._number] = ClosedChunk(self._latest, list(self._open))
        self._closed_ids.update(self._open)
        self._changed[self._number] = None
        self._number += 1
        self._empty()
        if len(self._closed) > MOST_CHUNKS:
            self._drop(next(iter(self._closed)))

    def _empty(self) -> None:
        self._open, self._latest = {}, _EARLIEST

    def forget(self, before: int) -> bool:
        """Remove the chunks whose alarms are all from before that event time; True if there were such
        chunks.
        """
        gone = [number for number, chunk in self._closed.items() if chunk.latest < before]
        for number in gone:
            self._drop(number)
        if not self._open or self._latest >= before:
            return bool(gone)
        self._empty()
        return True

    def _drop(self, number: int) -> None:
        for identity in self._closed.pop(number).ids:
            self._closed_ids.pop(identity, None)
        self._changed[number] = None

    # ---- records of the changelog

    def open_chunk(self) -> Chunk:
        """The open chunk, for the record of the runs."""
        return Chunk(self._number, self._latest, list(self._open))

    def changes(self) -> Iterator[tuple[int, bytes | None]]:
        """Numbers and records of chunks that were closed since the last call; None for a removed chunk."""
        if not self._changed:
            return
        changed, self._changed = sorted(self._changed), {}
        for number in changed:
            chunk = self._closed.get(number)
            yield number, None if chunk is None else _encode(chunk)

    def restore_closed(self, number: int, record: bytes | None) -> None:
        """Take a record of `changes`. `restored` must be called after the last one. Raises
        msgspec.MsgspecError for another record.
        """
        self._closed.pop(number, None)
        if record is not None:
            self._closed[number] = _read_closed(record)

    def restore_open(self, chunk: Chunk | None) -> None:
        """Take the result of `open_chunk`."""
        found = Chunk() if chunk is None else chunk
        self._number, self._latest, self._open = found.number, found.latest, dict.fromkeys(found.ids)

    def restored(self) -> None:
        """Finish the restoration after all records have been taken."""
        # A crash may lie between a closed chunk and the runs: then this chunk still is the open one.
        self._closed = {n: self._closed[n] for n in sorted(self._closed) if n < self._number}
        self._closed_ids = {identity: None for chunk in self._closed.values() for identity in chunk.ids}
