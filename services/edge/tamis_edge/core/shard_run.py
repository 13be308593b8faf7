"""One edge at work on one shard, from the shard's commit on (`Run` in the protocol's model).

All it does is by the plan and what it is handed: tuples in the order of their offsets, the clock, and word of
what is safe. Losing it at any moment loses nothing: another run on the same commit gets the same tuples
again.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

import numpy as np

from tamis.evaluation.dispatch import Dispatch
from tamis.messaging.dead_letters import DeadLetter
from tamis.messaging.records import END_OF_TIME, final_record, progress_record
from tamis.messaging.topics import DEAD_LETTERS
from tamis.omission.ticks import NEVER
from tamis.planning.plan import Plan, StreamPlan
from tamis.telemetry.logs import get_logger
from tamis_edge.core.commit import Commit
from tamis_edge.core.counts import Counts
from tamis_edge.core.keys import Int64s
from tamis_edge.core.progress import Progress, Said
from tamis_edge.core.records import (
    ANY_PARTITION,
    Record,
    encode,
    message_columns,
    placed_tails,
    records,
    tail,
)
from tamis_edge.core.rows import Batch, Chunk, Rows
from tamis_edge.core.shedding import Shedder, Spans
from tamis_edge.core.topic_run import TopicRun

_log = get_logger("edge.dispatch")

START_OF_TIME = -(2**62)  # before every event time, and far enough from int64's end to subtract from


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """What a commit in the making promises: progress by topic and output partition, before which place all
    is there, and whether the source had ended.
    """

    commit: Commit
    progress: Progress
    place: int
    final: bool


class ShardRun:
    """Rules 1 to 6 of the protocol, for one shard. Event times and the clock are microseconds.

    The caller must hand over tuples from the commit's `done` on, send `out` in order, report what is safe,
    make commits durable one at a time, and stop the run when a plan no longer lists its shard.
    """

    def __init__(
        self,
        shard: str,
        stream: str,
        commit: Commit,
        plan: Plan,
        shedder: Shedder | None = None,
        *,
        now: int = 0,
    ) -> None:
        """`plan` must list the shard and be as new as the commit (`listed_only`, `takeover_plan`).

        `shedder` drops retained tuples while its `share` is above 0.
        """
        if shard not in plan.since or plan.version < commit.version:
            raise ValueError(f"plan {plan.version} can't take up {shard} at {commit}")
        self.shard = shard
        self.stream_name = stream
        self.durable = commit
        self._born = commit.born if commit.version else now
        self.version, self.activation, self.high = commit.version, commit.activation, commit.high
        # Rebuilt from the replay, never taken from the commit: `wm_anew`.
        self.watermark = START_OF_TIME
        self.next_offset = self._behind = commit.done
        self.ended = False
        self.final_version = 0
        self.acknowledged: tuple[int, int] | None = None
        self.out: deque[Record] = deque()
        self.counts = Counts()
        self._now = 0
        self._next_id = 0
        self._tokens = 0
        self._rows = Rows()
        self._topics: dict[str, TopicRun] = {}
        self._dispatch = Dispatch(())
        self._unsafe: dict[int, int] = {}  # token -> source offset
        self._finals: set[int] = set()
        self._finals_version = 0
        self._making: _Snapshot | None = None
        self._said = Said()
        self._reached: Progress = {}  # of the last commit
        self._shedder, self._spans = shedder, Spans()
        self._stream: StreamPlan | None = None
        self._partitions = plan.partitions
        self.obey(plan)

    # ---- the plan

    def obey(self, plan: Plan) -> None:
        """Take up a plan: new and changed entries start without brackets, ended ones publish what they hold.

        The shard sets its own activation: one tick after the greatest event time that it has read.
        """
        stream = plan.stream(self.stream_name)
        before = self._stream
        if before is not None and (
            stream is None or (before.columns, before.time) != (stream.columns, stream.time)
        ):
            # Another stream of the same name: nothing held is of the new one's shape.
            for topic in self._topics.values():
                self._publish(topic, topic.end())
            self._topics, self._rows, self._dispatch = {}, Rows(), Dispatch(())
        plans = {} if stream is None else {topic.name: topic for topic in stream.topics}
        filters = (entry.filter for topic in plans.values() for entry in topic.entries)
        self._dispatch = Dispatch(filters, self._dispatch)
        for name, topic in list(self._topics.items()):
            new = plans.get(name)
            if new is None or new.partition_key != topic.plan.partition_key:
                self._publish(topic, topic.end())
                del self._topics[name]
            else:
                self._publish(topic, topic.obey(new, self._dispatch.row))
        for name, new in plans.items():
            if name not in self._topics:
                topic = self._topics[name] = TopicRun(new, plan.partitions)
                topic.obey(new, self._dispatch.row)
        self._stream, self._partitions = stream, plan.partitions
        if plan.version != self.version:
            self.version, self.activation = plan.version, self.high + 1

    # ---- tuples

    def take(self, batch: Batch, now: int) -> None:
        """Take tuples in order; `batch.offsets` ascend and are at least `next_offset`."""
        assert self._stream is not None
        self._now = now
        n = len(batch)
        if n == 0:
            return
        if int(batch.offsets[0]) < self._behind:
            # Its source was made anew: what comes now is no double of what came before.
            self._born = max(now, self._born + self._behind)
        if self._stream.time is None:
            # Its places are the time of a stream that has none.
            batch = replace(batch, times=self._born + batch.offsets)
        ids = np.arange(self._next_id, self._next_id + n, dtype=np.int64)
        self._next_id += n
        self.next_offset = self._behind = int(batch.offsets[-1]) + 1
        # The watermark as each tuple met it: a tuple is late behind those before it, in its batch or not.
        reached = np.maximum.accumulate(np.append(self.watermark, batch.times - self._stream.delay))
        late = batch.times < reached[:-1]
        concerned = np.zeros(n, np.bool_)
        codes: dict[int, Int64s] = {}
        work = []
        passing, failed = self._dispatch.over(batch.columns, n)
        for error in failed.values():
            _log.error("a filter can't be evaluated: every tuple passes", error=str(error))
        for topic in self._topics.values():
            wanted = topic.passes(batch, passing)
            any_entry = wanted.any()
            rows = np.flatnonzero(any_entry)
            code = np.full(n, -1, np.int64)
            key = [batch.columns[name].take(rows) for name in topic.plan.partition_key]
            code[rows] = topic.keys.codes(key, len(rows))
            codes[topic.serial] = code
            concerned |= any_entry
            work.append((topic, wanted, any_entry))
        self.counts.filtered += n - int(np.count_nonzero(concerned))
        self.counts.late += int(np.count_nonzero(concerned & late))
        if concerned.any():
            chunk = Chunk(ids, batch, codes, np.zeros(n, np.bool_))
            self._rows.append(chunk if concerned.all() else chunk.take(concerned))
        for topic, wanted, any_entry in work:
            behind = ids[any_entry & late]
            if not topic.plan.counted:
                self._publish(topic, behind, late=behind)
            in_time = wanted.only(~late) if late.any() else wanted
            kept = topic.offer(ids, batch, codes[topic.serial], in_time, now)
            if topic.plan.counted and len(behind):
                # Places must rise.
                self._publish(topic, np.union1d(kept, behind), late=behind)
            else:
                self._publish(topic, kept)
        self.watermark = int(reached[-1])
        self.high = max(self.high, int(batch.times.max()))
        self.settle(now)

    def bury(self, letter: DeadLetter, arrival: int) -> None:
        """Set a reading aside whole; its offset isn't done before the dead letter is safe.

        Offsets of `take` and `bury` may interleave within what the source handed over at once.
        """
        self.next_offset = max(self.next_offset, letter.offset + 1)
        self.counts.dead += 1
        token = self._token()
        self._unsafe[token] = letter.offset
        self.out.append(
            Record(token, DEAD_LETTERS, ANY_PARTITION, None, letter.payload, arrival, letter.headers())
        )

    def skip(self, offset: int) -> None:
        """Everything before `offset` has been handed over, though no tuple may have come of it."""
        self.next_offset = max(self.next_offset, offset)

    def idle(self, now: int) -> None:
        """The source has nothing to say: the watermark follows the clock where the stream asks for that."""
        stream = self._stream
        if stream is None or stream.time is None or self.ended:
            return
        if stream.idle_timeout is not None:
            self.watermark = max(self.watermark, now - stream.idle_timeout - stream.delay)

    def finish(self) -> None:
        """The source has ended: no tuple can come any more."""
        self.ended = True
        self.watermark = int(NEVER)

    def settle(self, now: int) -> None:
        """Decide what watermark and clock allow."""
        self._now = now
        for topic in self._topics.values():
            self._publish(topic, topic.decide(self.watermark, now))

    def next_deadline(self) -> int | None:
        """When `settle` has to be called even if nothing comes."""
        deadlines = [topic.next_deadline() for topic in self._topics.values()]
        return min((at for at in deadlines if at is not None), default=None)

    # ---- what is safe

    def safe(self, token: int) -> None:
        """The record of this token can't be lost any more: delivered, or spooled where the shard is bound to
        this edge.
        """
        if self._unsafe.pop(token, None) is None and token in self._finals:
            self._finals.discard(token)
            if not self._finals:
                self.final_version = self._finals_version

    def carries_tuple(self, token: int) -> bool:
        """Whether the record is of readings, and not progress or a final record, which can be made again."""
        return token in self._unsafe

    def place(self, token: int) -> int:
        """Where in its source the record's readings stood, the first of them; not for other records."""
        return self._born + self._unsafe[token]

    def retract(self, token: int) -> None:
        """This progress or final record was not sent: another has to be made."""
        self._said.take_back()
        self._finals.clear()

    def commit(self) -> Commit | None:
        """What may now be made durable, None where a commit is in the making; progress of this moment goes
        with it.
        """
        if self._making is not None:
            return None
        held = self._held()
        ids = np.unique(np.concatenate([np.empty(0, np.int64), *(ids for ids, _ in held.values())]))
        self.counts.omitted += self._rows.retain(ids)
        for topic in self._topics.values():
            topic.forget_keys(self._rows)
        first = [min(self._unsafe.values())] if self._unsafe else []
        if len(ids):
            chunk, places = self._rows.find(ids[:1])[0]
            first.append(int(chunk.batch.offsets[places[0]]))
        done = min(first, default=self.next_offset)
        commit = Commit(done, self.high, self.version, self.activation, self._born)
        final = self.ended and done == self.next_offset
        self._making = _Snapshot(commit, self._progress(held), self._born + self.next_offset, final)
        return commit

    def committed(self, now: int) -> None:
        """The last `commit()` is durable: the plan may be acknowledged, and progress sent."""
        making, self._making = self._making, None
        assert making is not None
        commit = self.durable = making.commit
        self.acknowledged = (commit.version, commit.activation)
        self._reached = making.progress
        timed = self._stream is not None and self._stream.time is not None
        for topic, partition, time in self._said.news(making.progress, commit.version, now):
            counted = topic in self._topics and self._topics[topic].plan.counted
            value = progress_record(
                self.shard,
                commit.version,
                commit.activation,
                time if timed else None,
                place=making.place if counted else None,
            )
            self.out.append(Record(self._token(), topic, partition, None, value, now // 1000))
        if making.final and not self._finals and self.final_version < commit.version == self.version:
            self._send_finals(now)

    def commit_failed(self) -> None:
        """The last `commit()` was not made durable."""
        self._making = None

    # ---- what there is to see

    def take_counts(self) -> Counts:
        """What was counted since this was last called."""
        counts, self.counts = self.counts, Counts()
        return counts

    @property
    def settling(self) -> bool:
        """Nothing may be read before the plan is committed: of what a standing query counts under a plan
        nothing may be read again under an older one, or it would count some and lose what lies between.
        """
        counted = any(topic.plan.counted for topic in self._topics.values())
        return counted and self.durable.version != self.version

    @property
    def held(self) -> int:
        """How many tuples are undecided."""
        return sum(len(ids) for ids, _ in self._held().values())

    @property
    def remembered(self) -> int:
        """How many tuples omission remembers, counted once for each entry."""
        return sum(topic.size() for topic in self._topics.values())

    @property
    def unsafe(self) -> int:
        """How many records are on their way."""
        return len(self._unsafe)

    # ---- inside

    def _held(self) -> dict[TopicRun, tuple[Int64s, Int64s]]:
        return {topic: topic.held() for topic in self._topics.values()}

    def _progress(self, held: dict[TopicRun, tuple[Int64s, Int64s]]) -> Progress:
        """The least event time that can still be published, by topic and output partition."""
        if self._stream is not None and self._stream.time is None:
            everywhere = range(self._partitions)
            place = self._born + self.next_offset
            return {(topic.plan.name, p): place for topic in held for p in everywhere}
        if self.watermark == START_OF_TIME:
            return {}
        progress = {}
        for topic, (ids, times) in held.items():
            least = np.full(self._partitions, min(self.watermark, END_OF_TIME), np.int64)
            if len(ids):
                codes = [chunk.codes[topic.serial][places] for chunk, places in self._rows.find(ids)]
                np.minimum.at(least, topic.keys.partitions(np.concatenate(codes)), times)
            for partition, time in enumerate(least.tolist()):
                progress[topic.plan.name, partition] = time
        return progress

    def _publish(self, topic: TopicRun, ids: Int64s, late: Int64s | None = None) -> None:
        """Send tuples on; `ids` and those among them that are `late` ascend."""
        if len(ids) == 0:
            return
        assert self._stream is not None
        stamp = self.shard, self.version, self.activation
        for chunk, retained in self._rows.find(ids):
            places = self._shed(topic, chunk, retained)
            if len(places) == 0:
                continue
            behind = np.isin(chunk.ids[places], late) if late is not None else np.zeros(len(places), np.bool_)
            # Late ones are counted apart.
            self.counts.published += int(np.count_nonzero(~chunk.published[places] & ~behind))
            chunk.published[places] = True
            batch = chunk.batch
            # A reading may have come since this turn began, and the clock may be set back.
            self.counts.holds.append(np.maximum(self._now - batch.arrivals[places], 0))
            codes = chunk.codes[topic.serial][places]
            encoded = topic.keys.encoded
            keys = [encoded[code] for code in codes.tolist()]
            if topic.plan.counted:
                ends = placed_tails(*stamp, (self._born + batch.offsets[places]).tolist(), behind.tolist())
            else:
                ends = [tail(*stamp, late is not None)] * len(places)
            values = encode(message_columns(batch, places, self._stream, topic.plan), ends)
            self.counts.published_bytes += sum(map(len, keys)) + sum(map(len, values))
            tokens = range(self._tokens + 1, self._tokens + 1 + len(keys))
            self._tokens = tokens[-1]
            self._unsafe.update(zip(tokens, batch.offsets[places].tolist(), strict=True))
            self.out.extend(
                records(
                    tokens,
                    topic.plan.name,
                    partitions=topic.keys.partitions(codes).tolist(),
                    keys=keys,
                    values=values,
                    arrivals=(batch.arrivals[places] // 1000).tolist(),
                )
            )

    def _shed(self, topic: TopicRun, chunk: Chunk, places: Int64s) -> Int64s:
        """Drop what the shedder picks; returns what is left.

        The span goes out in the tuples' place, and their offsets are done only when it is safe.
        """
        # What is counted can't be made up for by a mark: it waits instead.
        spared = self._shedder is None or topic.plan.counted
        kept = None if spared or self._shedder is None else self._shedder.kept(len(places))
        if kept is None or kept.all():
            return places
        gone = places[~kept]
        self.counts.shed += len(gone)
        chunk.published[gone] = True  # it is not omission that dropped them
        partitions = topic.keys.partitions(chunk.codes[topic.serial][gone])
        for partition in np.unique(partitions).tolist():
            rows = gone[partitions == partition]
            offset = int(chunk.batch.offsets[rows].min())
            found = self._spans.add(topic.plan.name, partition, chunk.batch.times[rows])
            if isinstance(found, int):
                if found in self._unsafe:
                    self._unsafe[found] = min(self._unsafe[found], offset)
                continue
            token = self._token()
            self._spans.said(topic.plan.name, partition, found, token)
            self._unsafe[token] = offset
            reached = self._reached.get((topic.plan.name, partition))
            value = progress_record(self.shard, self.version, self.activation, reached, found)
            self.out.append(Record(token, topic.plan.name, partition, None, value, self._now // 1000))
        left: Int64s = places[kept]
        return left

    def _send_finals(self, now: int) -> None:
        self._finals_version = self.version
        value = final_record(self.shard, self.version)
        for topic in self._topics.values():
            for partition in range(self._partitions):
                token = self._token()
                self._finals.add(token)
                self.out.append(Record(token, topic.plan.name, partition, None, value, now // 1000))
        if not self._finals:
            self.final_version = self.version

    def _token(self) -> int:
        self._tokens += 1
        return self._tokens
