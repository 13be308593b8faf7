"""The file source: a recording, replayed once, at the pace of its event times or without pause."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future

import numpy as np

from tamis.errors import InputError
from tamis.omission.columns import Int64s
from tamis.telemetry.logs import get_logger
from tamis_edge.core.commit import Commit
from tamis_edge.decode.decoder import Decoder
from tamis_edge.settings import FileSource
from tamis_edge.sources import file_rows
from tamis_edge.sources.base import Delivery, Source
from tamis_edge.storage.journal import Journal

_log = get_logger("edge.file")

RETRY = 5_000_000  # microseconds before a file that can't be read on is tried again


class ReplayClock:
    """Event time of the replays of one edge that keep the pace of the event times. All start together, at the
    earliest of their next tuples.
    """

    PATIENCE = 2_000_000  # microseconds that the first waits for the others

    def __init__(self, replays: int) -> None:
        self._replays = replays
        self._firsts: dict[str, int] = {}
        self._waiting_since: int | None = None
        self._start: tuple[int, int] | None = None

    def register(self, shard: str, first: int) -> None:
        """Register the next event time of a replay."""
        self._firsts.setdefault(shard, first)

    def elapsed(self, now: int) -> tuple[int, int] | None:
        """The event time of the start, and the microseconds since the start; None before the start."""
        if self._start is None:
            self._waiting_since = self._waiting_since or now
            if len(self._firsts) < self._replays and now - self._waiting_since < self.PATIENCE:
                return None
            self._start = min(self._firsts.values()), now
        return self._start[0], now - self._start[1]


class FileShard:
    """The one shard of a file. Offsets are row numbers from 0.

    If a file can't be read further, the shard tries again from the next row. The edge's other sources
    continue.
    """

    movable = False
    declared = True
    rereadable = True
    replayed = True
    partition = 0

    def __init__(self, source: FileSource, edge: str, journal: Journal, clock: ReplayClock) -> None:
        self.name = f"{source.stream}:{edge}/{source.name}"
        self.stream, self.topic, self.fields = source.stream, str(source.path), source.fields
        self.caught_up = False  # a file has more readings until it has ended
        self.ended = False
        self.source = source
        self.trouble: str | None = None  # why it can't be read on
        self._format = source.format or file_rows.format_of(source.path)
        self._speed = None if source.speed == "max" else float(source.speed)
        self._journal, self._clock = journal, clock
        self._blocks: Iterator[Delivery] | None = None
        self._block: Delivery | None = None
        self._due: Int64s | None = None  # when the block's rows are sent; None before it is known
        self._sent = 0
        self._next = 0  # the row behind the last one that was delivered
        self._retry_at: int | None = None  # 0: from the next poll on, which says how late it is
        self._decoder: Decoder | None = None

    def check(self) -> None:
        """Raises InputError if the file can't be read. A file that was read to its end isn't needed any
        more.
        """
        _, final = self.committed()
        if not final:
            file_rows.check(self.source.path, self._format, self.source.name)

    def committed(self) -> tuple[Commit, bool]:
        return self._journal.committed(self.name)

    def start(self, offset: int, decoder: Decoder) -> None:
        self._decoder, self._next, self.ended = decoder, offset, False
        self._open()

    def confirm_end(self) -> None:
        """It ends once, where `ended` says so."""

    def read_through(self, next_offset: int) -> bool:
        return self.ended

    def decode_by(self, decoder: Decoder) -> None:
        self._decoder = decoder
        if self._block is not None:
            self._open()

    def stop(self) -> None:
        self._blocks = self._block = self._retry_at = None

    def poll(self, limit: int, now: int) -> Delivery | None:
        if self._retry_at is not None:
            self._retry_at = self._retry_at or now + RETRY
            if now >= self._retry_at:
                self._open()
        if self._block is None:
            return None
        end = min(self._sent + limit, len(self._block.offsets))
        if self._speed is not None:
            if self._due is None:
                self._pace(self._block, now)
            elapsed = self._clock.elapsed(now)
            if elapsed is None:
                return None
            start, passed = elapsed
            assert self._due is not None
            end = min(end, int(np.searchsorted(self._due, start + int(passed * self._speed), side="right")))
        if end <= self._sent:
            return None
        part = file_rows.part(self._block, self._sent, end, now)
        self._sent, self._next = end, int(part.offsets[-1]) + 1
        if end == len(self._block.offsets):
            self._next_block()
        return part

    def commit(self, commit: Commit, final: bool) -> Future[None]:
        return self._journal.commit(self.name, commit, final)

    def _open(self) -> None:
        assert self._decoder is not None
        self._retry_at = None
        columns = self._decoder.stream.columns
        types = {name: c.type for c in columns for name in self._decoder.path(c.name).names}
        self._blocks = file_rows.read(self.source.path, self._format, types, self._next)
        self._next_block()

    def _next_block(self) -> None:
        assert self._blocks is not None
        assert self._decoder is not None
        try:
            self._block, self._sent, self._due = next(self._blocks, None), 0, None
        except InputError as error:
            self._block, self._retry_at = None, 0
            self._report(str(error))
            return
        self._report(None)
        if self._block is None:
            if not self.ended:
                _log.info(
                    "the file has ended; what is added to it later is not read",
                    source=self.source.name,
                    path=str(self.source.path),
                    rows=self._next,
                )
            self.ended = True

    def _pace(self, block: Delivery, now: int) -> None:
        """Set the time at which each row is sent. A row that will be a dead letter is sent with the row
        before it, because its time must not delay the rows after it.
        """
        assert self._decoder is not None
        decoded = block.decode(self._decoder, now)
        due = np.full(len(block.offsets), -(2**62), np.int64)
        due[decoded.rows] = decoded.times
        # Rows stay in the file's order: an older one goes with those before it.
        self._due = np.maximum.accumulate(due)
        if len(decoded.times):
            self._clock.register(self.name, int(decoded.times.min()))

    def _report(self, trouble: str | None) -> None:
        if trouble != self.trouble:
            self.trouble = trouble
            if trouble is None:
                _log.info("a file can be read again", source=self.source.name)
            else:
                _log.error("a file can't be read; trying again", source=self.source.name, reason=trouble)


class FileSources(Source):
    """All recordings of an edge. Raises InputError with all mistakes if some can't be read."""

    def __init__(self, sources: list[FileSource], edge: str, journal: Journal) -> None:
        clock = ReplayClock(sum(source.speed != "max" for source in sources))
        self._shards: list[FileShard] = []
        faults = []
        for source in sources:
            try:
                shard = FileShard(source, edge, journal, clock)
                shard.check()
            except InputError as error:
                faults.append(str(error))
            else:
                self._shards.append(shard)
        if faults:
            raise InputError("\n".join(faults))

    def shards(self) -> list[FileShard]:
        return self._shards

    def troubles(self) -> dict[str, str | None]:
        return {shard.source.name: shard.trouble for shard in self._shards}

    def stop(self) -> None:
        for shard in self._shards:
            shard.stop()
