"""The file source: a recording, replayed once, at the pace of its event times or as fast as it goes."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from tamis.errors import InputError
from tamis.expressions.nodes import Type
from tamis_edge.config import FileSource
from tamis_edge.core.commit import Commit
from tamis_edge.core.keys import Int64s
from tamis_edge.decode.decoder import Decoder
from tamis_edge.journal import Journal
from tamis_edge.sources.base import READ_BYTES, Delivery, Payloads, RawColumns, payloads
from tamis_edge.sources.csv_rows import csv_blocks

BLOCK = 10_000  # rows decoded ahead; a paced replay sends them in parts


class ReplayClock:
    """Where the paced replays of one edge are in event time: all start together, at the earliest of their
    next tuples.
    """

    PATIENCE = 2_000_000  # microseconds that the first waits for the others

    def __init__(self, replays: int) -> None:
        self._replays = replays
        self._firsts: dict[str, int] = {}
        self._waiting_since: int | None = None
        self._start: tuple[int, int] | None = None

    def register(self, shard: str, first: int) -> None:
        """A replay's next event time."""
        self._firsts.setdefault(shard, first)

    def elapsed(self, now: int) -> tuple[int, int] | None:
        """Event time of the start, and microseconds since then; None before."""
        if self._start is None:
            self._waiting_since = self._waiting_since or now
            if len(self._firsts) < self._replays and now - self._waiting_since < self.PATIENCE:
                return None
            self._start = min(self._firsts.values()), now
        return self._start[0], now - self._start[1]


class FileShard:
    """The one shard of a file; offsets are row numbers from 0."""

    movable = False
    declared = True
    partition = 0

    def __init__(self, source: FileSource, edge: str, journal: Journal, clock: ReplayClock) -> None:
        self.name = f"{source.stream}:{edge}/{source.name}"
        self.stream, self.topic, self.fields = source.stream, str(source.path), source.fields
        self.caught_up = False  # a file has always more to say until it has ended
        self.ended = False
        self._path, self._format = source.path, source.format or _format_of(source.path)
        self._speed = None if source.speed == "max" else float(source.speed)
        self._journal, self._clock = journal, clock
        self._blocks: Iterator[Delivery] | None = None
        self._block: Delivery | None = None
        self._due: Int64s = np.empty(0, np.int64)
        self._sent = 0
        self._decoder: Decoder | None = None

    def committed(self) -> tuple[Commit, bool]:
        return self._journal.committed(self.name)

    def start(self, offset: int, decoder: Decoder) -> None:
        self._decoder, self.ended, self._block = decoder, False, None
        types = {".".join(decoder.path(c.name)): c.type for c in decoder.stream.columns}
        self._blocks = _skip(_read(self._path, self._format, types), offset)
        self._next_block()

    def stop(self) -> None:
        self._blocks = self._block = None

    def poll(self, limit: int, now: int) -> Delivery | None:
        if self._block is None:
            return None
        end = min(self._sent + limit, len(self._block.offsets))
        if self._speed is not None:
            elapsed = self._clock.elapsed(now)
            if elapsed is None:
                return None
            start, passed = elapsed
            end = min(end, int(np.searchsorted(self._due, start + int(passed * self._speed), side="right")))
        if end <= self._sent:
            return None
        part = _part(self._block, self._sent, end, now)
        self._sent = end
        if end == len(self._block.offsets):
            self._next_block()
        return part

    def commit(self, commit: Commit, final: bool) -> Future[None]:
        return self._journal.commit(self.name, commit, final)

    def _next_block(self) -> None:
        assert self._blocks is not None
        assert self._decoder is not None
        self._block, self._sent = next(self._blocks, None), 0
        if self._block is None:
            self.ended = True
        elif self._speed is not None:
            decoded = self._block.decode(self._decoder, 2**62)
            due = np.full(len(self._block.offsets), -(2**62), np.int64)
            due[decoded.rows] = decoded.times
            # Rows stay in the file's order: an older one goes with those before it.
            self._due = np.maximum.accumulate(due)
            if len(decoded.times):
                self._clock.register(self.name, int(decoded.times.min()))


class FileSources:
    """All recordings of an edge."""

    behind = False  # a full micro-batch says so

    def __init__(self, sources: list[FileSource], edge: str, journal: Journal) -> None:
        clock = ReplayClock(sum(source.speed != "max" for source in sources))
        for source in sources:
            if not source.path.is_file():
                raise InputError(
                    "no such file", where=str(source.path), hint=f"correct the path of source {source.name!r}"
                )
        self._shards = [FileShard(source, edge, journal, clock) for source in sources]

    def start(self) -> None:
        """Nothing to open: a shard opens its file when it is taken up."""

    def shards(self) -> list[FileShard]:
        return self._shards

    def check(self) -> None:
        """It has no thread of its own."""

    def refuse(self, full: bool) -> None:
        """The loop stops polling by itself."""

    def stop(self) -> None:
        for shard in self._shards:
            shard.stop()

    def close(self) -> None:
        """Nothing is left to close."""


def _format_of(path: Path) -> str:
    formats = {".csv": "csv", ".ndjson": "ndjson", ".jsonl": "ndjson", ".parquet": "parquet"}
    try:
        return formats[path.suffix.lower()]
    except KeyError:
        raise InputError(
            f"unknown suffix {path.suffix!r}", where=str(path), hint="set `format` to csv, ndjson or parquet"
        ) from None


def _read(path: Path, form: str, types: dict[str, Type]) -> Iterator[Delivery]:
    """The file's rows in blocks, numbered from 0."""
    first = 0
    try:
        if form == "ndjson":
            with path.open("rb") as lines:
                block: list[bytes] = []
                size = 0
                for line in lines:
                    block.append(line.rstrip(b"\r\n"))
                    size += len(line)
                    if len(block) == BLOCK or size >= READ_BYTES:
                        yield payloads(first, 0, block)
                        first, block, size = first + len(block), [], 0
                if block:
                    yield payloads(first, 0, block)
            return
        if form == "csv":
            yield from csv_blocks(path, types, BLOCK)
            return
        for batch in pa.parquet.ParquetFile(path).iter_batches(BLOCK):
            n = batch.num_rows
            named = zip(batch.schema.names, batch.columns, strict=True)
            columns = {name: _values(column) for name, column in named}
            yield RawColumns(np.arange(first, first + n), np.zeros(n, np.int64), columns, batch.nbytes)
            first += n
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"can't read the file behind row {first}: {error}", where=str(path)) from error


def _values(column: Any) -> Any:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.string())
    elif pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    return column.to_pylist()


def _skip(blocks: Iterator[Delivery], offset: int) -> Iterator[Delivery]:
    for block in blocks:
        if int(block.offsets[-1]) >= offset:
            yield _part(block, max(0, offset - int(block.offsets[0])), len(block.offsets), 0)


def _part(block: Delivery, start: int, end: int, arrival: int) -> Delivery:
    offsets = block.offsets[start:end]
    arrivals = np.full(end - start, arrival, np.int64)
    if isinstance(block, Payloads):
        return Payloads(offsets, arrivals, block.payloads[start:end])
    assert isinstance(block, RawColumns)
    columns = {name: values[start:end] for name, values in block.columns.items()}
    return RawColumns(offsets, arrivals, columns, block.size * (end - start) // len(block.offsets))
