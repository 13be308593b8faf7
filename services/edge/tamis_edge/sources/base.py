"""What the edge asks of a source."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tamis_edge.core.commit import Commit
from tamis_edge.core.keys import Int64s
from tamis_edge.decode.decoder import Decoded, Decoder, FieldMap

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
        """The tuples, and the offenders by their place in this delivery."""
        ...

    def payload(self, row: int) -> bytes:
        """One reading whole, for a dead letter."""
        ...


@dataclass(frozen=True)
class Payloads:
    """Readings as the bytes that were sent. `streams`: what each was sent for, where that differs."""

    offsets: Int64s
    arrivals: Int64s
    payloads: Sequence[bytes]
    streams: Sequence[str] = ()

    @classmethod
    def concat(cls, parts: Sequence[Payloads]) -> Payloads:
        """One after the other."""
        return cls(
            np.concatenate([part.offsets for part in parts]),
            np.concatenate([part.arrivals for part in parts]),
            [payload for part in parts for payload in part.payloads],
        )

    def split(self, rows: int) -> tuple[Payloads, Payloads]:
        """The first so many readings, and the others."""
        first = Payloads(self.offsets[:rows], self.arrivals[:rows], self.payloads[:rows])
        return first, Payloads(self.offsets[rows:], self.arrivals[rows:], self.payloads[rows:])

    @property
    def size(self) -> int:
        return sum(map(len, self.payloads))

    def decode(self, decoder: Decoder, now: int) -> Decoded:
        return decoder.payloads(self.payloads, now)

    def payload(self, row: int) -> bytes:
        return self.payloads[row]


@dataclass(frozen=True)
class RawColumns:
    """Readings of a file that has columns, by the file's names for them."""

    offsets: Int64s
    arrivals: Int64s
    columns: Mapping[str, Sequence[Any]]
    size: int

    def decode(self, decoder: Decoder, now: int) -> Decoded:
        return decoder.columns(self.columns, len(self.offsets), now)

    def payload(self, row: int) -> bytes:
        # A row of a table has no bytes of its own: JSON says what it held.
        # Not by orjson, which has no NaN and no integers beyond 64 bits: often just these are the fault.
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
    topic: str  # what dead letters name as the origin
    partition: int
    fields: FieldMap
    movable: bool  # another edge may take it up: only what is published is done with
    declared: bool  # the configuration names its stream, which may be created later

    @property
    def caught_up(self) -> bool:
        """All that there is to read was polled."""
        ...

    @property
    def ended(self) -> bool:
        """Nothing more will ever come, and all was polled."""
        ...

    def committed(self) -> tuple[Commit, bool] | None:
        """The durable commit, and whether the shard's final records were sent; None while it isn't known."""
        ...

    def start(self, offset: int, decoder: Decoder) -> None:
        """Deliver from `offset` on. `decoder` is the one that deliveries will be decoded by."""
        ...

    def stop(self) -> None:
        """Deliver nothing until started again."""
        ...

    def poll(self, limit: int, now: int) -> Delivery | None:
        """What has come, at most `limit` readings and about `READ_BYTES`; None for nothing. Never waits."""
        ...

    def commit(self, commit: Commit, final: bool) -> Future[None]:
        """Make a commit durable; the future fails where that is not possible."""
        ...


class Source(Protocol):
    """A way in for readings."""

    def start(self) -> None:
        """Open it. What can't be reached is tried again, not an error."""
        ...

    def shards(self) -> Sequence[SourceShard]:
        """The shards that this edge serves now; called at each turn of the loop, and does the source's own
        work in it.
        """
        ...

    @property
    def behind(self) -> bool:
        """More is at hand than its shards were last asked for."""
        ...

    def troubles(self) -> Mapping[str, str | None]:
        """By the name of each source in the configuration why nothing can be had of it now; None: it can."""
        ...

    def check(self) -> None:
        """Raises DeadThreadError where a thread of the source has died."""
        ...

    def refuse(self, full: bool) -> None:
        """Turn readings away while the spool is full."""
        ...

    def stop(self) -> None:
        """Take nothing more from outside."""
        ...

    def close(self) -> None:
        """Let go of everything, after the last commit."""
        ...
