"""Interfaces of sources and of their shards, and the readings that they deliver."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tamis.omission.columns import Int64s
from tamis_edge.core.commit import Commit
from tamis_edge.decode.decoder import Decoded, Decoder
from tamis_edge.source_fields import FieldMap

READ_BYTES = 32 * 2**20  # of readings that are decoded at once, or wait in memory for that


class Delivery(Protocol):
    """Readings in the order of their offsets; `arrivals` is wall clock in microseconds, `size` bytes."""

    @property
    def offsets(self) -> Int64s: ...

    @property
    def arrivals(self) -> Int64s: ...

    @property
    def size(self) -> int: ...

    def decode(self, decoder: Decoder, now: int) -> Decoded:
        """The tuples and the mistakes, by their position in this delivery."""
        ...

    def payload(self, row: int) -> bytes:
        """One complete reading, for a dead letter."""
        ...


@dataclass(frozen=True)
class Payloads:
    """Readings as the bytes that were sent. `streams`: for readings of unknown streams, the stream name that
    the sender gave.
    """

    offsets: Int64s
    arrivals: Int64s
    payloads: Sequence[bytes]
    streams: Sequence[str] = ()

    @classmethod
    def concat(cls, parts: Sequence[Payloads]) -> Payloads:
        """The readings of deliveries of one shard, in order."""
        return cls(
            np.concatenate([part.offsets for part in parts]),
            np.concatenate([part.arrivals for part in parts]),
            [payload for part in parts for payload in part.payloads],
            [stream for part in parts for stream in part.streams],
        )

    def part(self, start: int, end: int) -> Payloads:
        """The readings from `start` to before `end`."""
        rows = slice(start, end)
        return Payloads(self.offsets[rows], self.arrivals[rows], self.payloads[rows], self.streams[rows])

    def split(self, rows: int) -> tuple[Payloads, Payloads]:
        """The first `rows` readings, and the others."""
        return self.part(0, rows), self.part(rows, len(self.offsets))

    @property
    def size(self) -> int:
        return sum(map(len, self.payloads))

    def decode(self, decoder: Decoder, now: int) -> Decoded:
        return decoder.payloads(self.payloads, now)

    def payload(self, row: int) -> bytes:
        return self.payloads[row]


@dataclass(frozen=True)
class RawColumns:
    """Readings of a file that has columns. The columns have the names of the file."""

    offsets: Int64s
    arrivals: Int64s
    columns: Mapping[str, Sequence[Any]]
    size: int

    def decode(self, decoder: Decoder, now: int) -> Decoded:
        return decoder.columns(self.columns, len(self.offsets), now)

    def payload(self, row: int) -> bytes:
        # A row of a table has no bytes of its own, so a dead letter has it as JSON. orjson can't write NaN
        # and integers beyond 64 bits, which are often the mistake.
        row_of = {name: values[row] for name, values in self.columns.items()}
        return json.dumps(row_of, default=str, ensure_ascii=False).encode()


def payloads(first: int, arrival: int, items: Sequence[bytes]) -> Payloads:
    """Consecutive readings that arrived together."""
    n = len(items)
    return Payloads(np.arange(first, first + n), np.full(n, arrival), items)


class SourceShard(Protocol):
    """One shard as its source knows it. All calls come from the edge's one loop."""

    name: str  # the shard's id
    stream: str
    topic: str  # the origin that dead letters name
    partition: int
    fields: FieldMap
    movable: bool  # another edge may take it up: its readings are done only once they are published
    declared: bool  # the configuration names its stream, which may be created later
    rereadable: bool  # it can be read again from its beginning, as far as its source still has it
    replayed: bool  # a recording, whose event times have nothing to do with the clock

    @property
    def caught_up(self) -> bool:
        """True if the source has no more readings now and all were polled."""
        ...

    def confirm_end(self) -> None:
        """Find out where the source ends now, for `read_through`."""
        ...

    def read_through(self, next_offset: int) -> bool:
        """True if all readings were polled that the source had at the last `confirm_end`, and it is known
        where it ended then. `next_offset`: that behind the last reading.
        """
        ...

    @property
    def ended(self) -> bool:
        """True if the source will never have more readings and all were polled."""
        ...

    def committed(self) -> tuple[Commit, bool] | None:
        """The durable commit, and whether the shard's final records were sent; None while it isn't known."""
        ...

    def start(self, offset: int, decoder: Decoder) -> None:
        """Deliver readings from `offset` on, which will be decoded by `decoder`."""
        ...

    def decode_by(self, decoder: Decoder) -> None:
        """Deliver readings that this decoder will decode from now on: their stream has changed."""
        ...

    def stop(self) -> None:
        """Deliver nothing until the next start."""
        ...

    def poll(self, limit: int, now: int) -> Delivery | None:
        """The readings that have arrived: at most `limit` readings, and about `READ_BYTES`; None if there are
        none. It never waits.
        """
        ...

    def commit(self, commit: Commit, final: bool) -> Future[None]:
        """Make a commit durable. The future fails if that is not possible."""
        ...


class Source(ABC):
    """A source of readings, with a shard for each stream or partition."""

    def start(self) -> None:  # noqa: B027
        """Open the source. A source that can't be reached is tried again later."""

    @abstractmethod
    def shards(self) -> Sequence[SourceShard]:
        """The shards that this edge serves now. The loop calls it in each turn, and the source does its own
        work in this call.
        """

    @property
    def behind(self) -> bool:
        """True if the source has more readings than its shards returned at the last poll. A full micro-batch
        says so where this is always false.
        """
        return False

    @abstractmethod
    def troubles(self) -> Mapping[str, str | None]:
        """The problem of each configured source, by its name; None if the source has no problem."""

    def check(self) -> None:  # noqa: B027
        """Raises DeadThreadError if a thread of the source has died."""

    def refuse(self, full: bool) -> None:  # noqa: B027
        """Refuse readings while the spool is full. The loop stops polling in any case."""

    @abstractmethod
    def stop(self) -> None:
        """Take no more readings."""

    def close(self) -> None:  # noqa: B027
        """Close everything that `stop` has left open, after the last commit."""
