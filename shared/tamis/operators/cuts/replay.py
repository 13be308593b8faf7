"""Run aggregates of windows over a recording as a fleet does: edges send partial aggregates, by cuts.

The readings are divided among shards at random. Each of these runs the rules of edges (`chain`): it cuts at
random, also fully, and with watermarks of earlier moments; it crashes at random before and after commits and
while it sends, and reads again from the last durable commit. Records go through their JSON. Rows don't depend
on any of this.

Readings come in the order in which `run_windowed` takes them. A late one counts in the windows that its
watermark hadn't passed, so what that has passed is sent, and its windows are closed, before it comes.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
import numpy as np

from tamis.declarations.file_access import FileAccess
from tamis.expressions.vectors import Columns, Vector
from tamis.messaging.records import END_OF_TIME
from tamis.omission.columns import Int64s
from tamis.operators.contract import RecordedRun, Rows
from tamis.operators.cuts.chain import START_OF_TIME, CutChain, Drawing, Sending
from tamis.operators.cuts.cut import ChainCommit
from tamis.operators.recording_runs import END, closing_batches
from tamis.operators.windows.boundaries import last_boundary
from tamis.operators.windows.cut_policy import part_of_each
from tamis.operators.windows.groups import WindowedGroups
from tamis.operators.windows.pane_documents import from_document, to_document
from tamis.plan.model import TopicPlan
from tamis.plan.nodes import Grouping, Windows
from tamis.recordings.typed import Recording

_MOST_SHARDS = 3
# Moments at which shards may cut, besides those that late readings need.
_MOMENTS = 40
# Probabilities, at each moment and shard: of a commit, that its cut is full, and of a crash at each place
# where one makes a difference.
_COMMIT, _FULL, _CRASH = 0.7, 0.2, 0.1


@dataclass(frozen=True, slots=True)
class ShardReadings:
    """Readings of one shard (`tamis.operators.cuts.chain.Readings`)."""

    columns: dict[str, Vector]
    times: Int64s
    offsets: Int64s

    def __len__(self) -> int:
        return len(self.offsets)

    def view(self) -> Columns:
        """The columns with the empty alias."""
        return {("", name): column for name, column in self.columns.items()}

    def take(self, rows: np.ndarray | slice) -> ShardReadings:
        """The readings with these numbers; a slice copies nothing."""
        columns = {name: column.take(rows) for name, column in self.columns.items()}
        return ShardReadings(columns, self.times[rows], self.offsets[rows])


@dataclass(frozen=True)
class CutRecord:
    """A record as Kafka has it: its shard, its place among the records of the shard, and its value."""

    shard: int
    place: tuple[int, int]
    value: bytes
    grouping: Grouping


def run_by_cuts(
    node: Windows, topic: TopicPlan, recording: Recording, file_access: FileAccess, r: random.Random
) -> RecordedRun:
    """Run aggregates of windows over the recording of their stream, to its end, through the partial
    aggregates of a topic. The rows are those of `run_windowed`, in the same order.
    """
    stream = recording.stream
    assert stream.time is not None
    order = np.argsort(recording.reached, kind="stable")
    watermarks = recording.reached[order] - stream.delay
    times = recording.columns[stream.time].data[order]
    shard_of = np.random.default_rng(r.getrandbits(32)).integers(_MOST_SHARDS, size=len(order))
    shards = []
    for number in range(_MOST_SHARDS):
        places = np.flatnonzero(shard_of == number)
        columns = {name: vector.take(order[places]) for name, vector in recording.columns.items()}
        readings = ShardReadings(columns, times[places], np.arange(len(places)))
        shards.append(_Shard(number, topic, readings, places, r))
    joiner = _Joiner(node, file_access, len(shards))
    closing = {first for first, _ in closing_batches(node.window, times, watermarks)}
    moments = closing | {r.randrange(len(order)) for _ in range(_MOMENTS if len(order) else 0)}
    for moment in sorted(moments - {0}):
        watermark = int(watermarks[moment - 1])
        for shard in shards:
            joiner.take(shard.pass_by(moment, watermark))
            if moment in closing:
                joiner.take(shard.send_all(moment, watermark))
        joiner.advance(shards)
    for shard in shards:
        joiner.take(shard.send_all(len(order), END_OF_TIME))
    joiner.advance(shards)
    return joiner.end()


class _Shard:
    """A shard and what outlives its crashes: the last durable commit. `places` has the place of each reading
    among those of all shards.
    """

    def __init__(
        self, number: int, topic: TopicPlan, readings: ShardReadings, places: Int64s, r: random.Random
    ) -> None:
        assert topic.partials is not None
        self._number, self._topic, self._readings, self._places, self._r = number, topic, readings, places, r
        self._grids = topic.partials.grids
        self._version = max(grid.version for grid in self._grids)
        self._commit = ChainCommit(0, 0, 0, 0, START_OF_TIME)
        self._start()

    def _start(self) -> None:
        self._chain = CutChain(self._commit.since, self._commit)
        self._chain.use(self._topic, self._version)
        self._next = self._commit.done
        self._chain.reached(self._next)

    @property
    def progress(self) -> int:
        """The time of the last cut that was sent."""
        return self._chain.progress

    def pass_by(self, moment: int, watermark: int) -> Iterator[CutRecord]:
        """Read what came before a moment, and commit perhaps. Yields the records that reach Kafka."""
        yield from self._read(moment)
        if self._r.random() < _COMMIT:
            earlier = self._r.choice((0, 0, self._grids[0].slide, 3 * self._grids[0].slide))
            yield from self._cut(moment, watermark - earlier, full=self._r.random() < _FULL)

    def send_all(self, moment: int, watermark: int) -> Iterator[CutRecord]:
        """Send all panes before a moment that the watermark has passed, after however many crashes."""
        bound = watermark if watermark == END_OF_TIME else last_boundary(watermark, self._grids)
        while self.progress < bound:
            yield from self._read(moment)
            yield from self._cut(moment, watermark, full=False)

    def _end(self, moment: int) -> int:
        return int(np.searchsorted(self._places, moment))

    def _read(self, moment: int) -> Iterator[CutRecord]:
        end = self._end(moment)
        if self._crashes():
            return
        if self._next < end:
            self._chain.take(self._readings.take(slice(self._next, end)), 0)
            self._next = end
        self._chain.reached(self._next)
        yield from self._send()

    def _cut(self, moment: int, watermark: int, *, full: bool) -> Iterator[CutRecord]:
        """Commit, with a new cut if there is reason to. A crash before the commit is durable forgets it. The
        watermark holds when all readings before the moment were read.
        """
        if self._next < self._end(moment):
            watermark = START_OF_TIME
        pending = self._chain.commit(self._next)
        number = max(pending.number, pending.pending.number if pending.pending else 0)
        self._chain.draw(Drawing(number, self._next, watermark, self._version, born=0, full=full, now=0))
        if self._crashes():
            return
        self._commit = self._chain.commit(self._next)
        self._chain.made_durable()
        if not self._crashes():
            yield from self._send()

    def _send(self) -> Iterator[CutRecord]:
        """Send the pending cut, if there is one. A crash leaves out the last records, or none."""
        sending = self._chain.to_send()
        if sending is None:
            return
        records = list(self._records(sending))
        crashed = self._r.random() < _CRASH
        yield from records[: self._r.randint(0, len(records))] if crashed else records
        if crashed:
            self._start()

    def _records(self, sending: Sending) -> Iterator[CutRecord]:
        cut, rows, grouping = sending
        parts = part_of_each(rows, cut.parts)
        for part in np.unique(parts).tolist():
            value = msgspec.json.encode(to_document(rows.take(parts == part), grouping))
            yield CutRecord(self._number, (cut.place, part), value, grouping)

    def _crashes(self) -> bool:
        crashed = self._r.random() < _CRASH
        if crashed:
            self._start()
        return crashed


class _Joiner:
    """The upper half: it drops records that it has, and closes windows that all shards have passed."""

    def __init__(self, node: Windows, file_access: FileAccess, shards: int) -> None:
        self._evaluator, self._stream = WindowedGroups(node, file_access), node.scan.stream
        self._taken = [(0, 0)] * shards
        self._parts: list[Rows] = []
        self._most = 0

    def take(self, records: Iterator[CutRecord]) -> None:
        for record in records:
            if record.place > self._taken[record.shard]:
                self._taken[record.shard] = record.place
                rows = from_document(msgspec.json.decode(record.value), record.grouping)
                self._evaluator.take_panes(rows, record.grouping)
                self._most = max(self._most, self._evaluator.entries())

    def advance(self, shards: list[_Shard]) -> None:
        self._parts.append(self._evaluator.advance(self._stream, min(one.progress for one in shards)))

    def end(self) -> RecordedRun:
        self._parts.append(self._evaluator.advance(self._stream, END))
        return RecordedRun(Rows.concat(self._parts), self._most, self._evaluator.late)
