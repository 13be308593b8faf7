"""Shards whose readings are in the journal."""

from __future__ import annotations

from concurrent.futures import Future

import numpy as np

from tamis_edge.core.commit import Commit
from tamis_edge.decode.decoder import Decoder
from tamis_edge.source_fields import FieldMap
from tamis_edge.sources.base import READ_BYTES, Payloads
from tamis_edge.storage.journal import Journal

# Streams named only by senders, for which readings may wait before the first plan.
MOST_UNPLANNED = 100

# As a stream's name: readings of all streams that the plan doesn't have.
STRAY = "?"


class JournalShard:
    """Reads the readings that an HTTP or MQTT source has added to the journal."""

    movable = False
    rereadable = False
    replayed = False
    ended = False
    partition = 0

    def __init__(
        self,
        journal: Journal,
        *,
        stream: str,
        edge: str,
        source: str,
        topic: str,
        fields: FieldMap,
        declared: bool,
    ) -> None:
        self.name = f"{stream}:{edge}/{source}"
        self.stream, self.topic, self.fields, self.declared = stream, topic, fields, declared
        self.caught_up = False
        self._journal = journal
        self._next: int | None = None
        self._known_end = 0  # at the last `confirm_end`

    def committed(self) -> tuple[Commit, bool]:
        return self._journal.committed(self.name)

    def start(self, offset: int, decoder: Decoder) -> None:
        self._next = offset

    def confirm_end(self) -> None:
        self._known_end = self._journal.end(self.name)

    def read_through(self, next_offset: int) -> bool:
        return next_offset >= self._known_end

    def decode_by(self, decoder: Decoder) -> None:
        """Payloads are the same whatever their stream is."""

    def stop(self) -> None:
        self._next = None

    def poll(self, limit: int, now: int) -> Payloads | None:
        if self._next is None:
            return None
        rows = self._journal.read(self.name, self._next, limit, READ_BYTES)
        if rows:
            self._next = rows[-1].seq + 1
        self.caught_up = self._next >= self._journal.end(self.name)
        if not rows:
            return None
        return Payloads(
            np.array([row.seq for row in rows], np.int64),
            np.array([row.arrival for row in rows], np.int64),
            [row.payload for row in rows],
        )

    def commit(self, commit: Commit, final: bool) -> Future[None]:
        return self._journal.commit(self.name, commit, final)


class StrayShard(JournalShard):
    """Readings of unknown streams, which become dead letters. All of them share one shard, so that senders
    who invent names can't use up the edge's memory.
    """

    @staticmethod
    def pack(stream: str, payload: bytes) -> bytes:
        """The row for the journal: the payload behind the name of its stream."""
        return b"%s\0%s" % (stream.encode(), payload)

    def poll(self, limit: int, now: int) -> Payloads | None:
        found = super().poll(limit, now)
        if found is None:
            return None
        parts = [packed.partition(b"\0") for packed in found.payloads]
        streams = [stream.decode() for stream, _, _ in parts]
        return Payloads(found.offsets, found.arrivals, [payload for _, _, payload in parts], streams)
