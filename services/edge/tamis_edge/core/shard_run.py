"""One edge's work on one shard, beginning at the shard's commit (`Run` in the protocol's model).

It depends only on the plan and on its input: tuples in the order of their offsets, the clock, and reports of
records that are safe. It may be lost at any moment without loss of data: another run from the same commit
receives the same tuples again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tamis.messaging.dead_letters import DeadLetter
from tamis.messaging.records import END_OF_TIME, fence_envelope, progress_envelope
from tamis.messaging.schemas.tuple_encoding import encode_alone
from tamis.omission.columns import NEVER, Int64s
from tamis.operators.time_join.filter_dispatch import Bools
from tamis.operators.time_join.tuple_entries import Matches
from tamis.plan.model import Plan, StreamPlan
from tamis_edge.core.commit import Commit, History
from tamis_edge.core.cursor import Cursor, retires_definition
from tamis_edge.core.cuts.partial_topics import PartialTopics
from tamis_edge.core.max_ahead import limit
from tamis_edge.core.outbox import START_OF_TIME, Counts, Ledger, Origin, Outbox, Progress, SentProgress
from tamis_edge.core.rows import Batch, Chunk
from tamis_edge.core.served_topics import ServedTopics
from tamis_edge.core.shedding import Shedder
from tamis_edge.core.topic_run import TopicRun
from tamis_edge.core.watched_streams import Start, WatchedStreams


@dataclass(frozen=True, slots=True)
class _PendingCommit:
    """A commit that isn't durable yet, and the records that may be sent once it is: progress, positions, and
    final records.
    """

    commit: Commit
    progress: Progress
    places: dict[str, int]  # by topic: the progress covers every tuple before this position
    final: bool  # the source had ended


class ShardRun:
    """Rules 1 to 6 of the protocol, for one shard. Event times and the clock are microseconds.

    The caller must give it the tuples from the commit's `done` on, send `out` in order, and report the
    records that are safe. It makes commits durable one at a time, and stops the run when a plan no longer
    lists its shard.
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
        replayed: bool = False,
        progress_every: int = 0,
    ) -> None:
        """`plan` must list the shard and be as new as the commit (`listed_only`, `takeover_plan`).

        `shedder` drops retained tuples while its `share` is above 0. `replayed`: see `core.max_ahead`.
        `progress_every`: see `SentProgress`.
        """
        if shard not in plan.since or plan.version < commit.form:
            raise ValueError(f"plan {plan.version} can't take up {shard} at {commit}")
        self.shard = shard
        self.stream_name = stream
        self.durable = commit
        self._cursor = Cursor.of(commit, plan, stream, now)
        self.version, self.activation, self.high = commit.version, commit.activation, commit.high
        # Rebuilt from the replay if there is one: `wm_anew`.
        self.watermark = START_OF_TIME
        self.history = commit.history
        self.ended = False
        # Whether commits keep what a restart needs to rebuild the series of watched streams.
        self.keep_series = True
        self.acknowledged: tuple[int, int] | None = None
        self._outbox = Outbox(shedder)
        self.out = self._outbox.records
        self._now, self._replayed = now, replayed
        self._next_id = 0
        self._served = ServedTopics(plan.partitions)
        self.watched = WatchedStreams(stream, commit, self._outbox.watched, self._send_watched)
        self.partials = PartialTopics(stream, commit)
        self._pending: _PendingCommit | None = None
        self._sent_progress = SentProgress(progress_every)
        self._reached: Progress = {}  # of the last commit
        self._retiring = False
        self.partials.serve(plan, commit.version, self.next_offset)
        # What was read under the plan of the commit is sent before this plan is taken up.
        self._plan, self._whole = plan, bool(self._cursor.reread) or self.partials.changes(plan)
        if self._whole:
            self._serve_tuples()
        else:
            self.obey(plan)
        if commit.version and commit.done == commit.read:
            self._go_on()

    # ---- the plan

    def obey(self, plan: Plan, now: int = 0) -> None:
        """Start to use a plan. New and changed entries start without brackets; ended entries publish the
        tuples that they hold.

        The shard sets its own activation: one tick after the greatest event time that it has read. If the
        plan retires a definition of the stream, all held tuples are first published under the previous plan
        (`publish_held`): the version of the definition that counts a combination is the least version of its
        tuples.
        """
        self._now = max(self._now, now)
        self._retiring = retires_definition(plan, self.stream_name, self.durable.version)
        if self._retiring:
            for topic in self._served.topics.values():
                self._publish(topic, topic.release())
            self.watched.publish_held()
        stream, latest = plan.stream(self.stream_name), self.high
        if stream is not None and stream.anew > self.version:
            latest = self._begin_anew(stream)
        self._plan, self._whole = plan, False
        self.partials.serve(plan, plan.version, self.next_offset)
        self._serve_tuples()
        if plan.version != self.version:
            self.version, self.activation = plan.version, latest + 1

    def _go_on(self) -> None:
        """Take the watermark from the commit, because no reading comes again from which it is rebuilt.

        Otherwise a shard that moves just after its last reading, or whose edge restarts then, would hold back
        what waits for its progress until its next reading (decision 103).
        """
        stream = self._served.stream
        if stream is not None and stream.time is not None and self.high >= 0 and not self.watched:
            self.watermark = self.high - stream.delay

    @property
    def rereading(self) -> bool:
        """True if readings after the commit must be read again before the shard uses another plan."""
        return self._cursor.rereading

    @property
    def next_offset(self) -> int:
        """The offset that comes next: all readings before it were delivered."""
        return self._cursor.next

    def ready(self, plan: Plan) -> bool:
        """True if the shard may use a plan now. Otherwise all that it has read in partial aggregates is sent
        first; nothing is read until then.
        """
        return self.partials.ready(plan, self.next_offset)

    def _serve_tuples(self) -> None:
        """Serve the topics that carry tuples. `_whole`: nothing is omitted."""
        plan, whole, aggregated = self._plan, self._whole, self.partials.without_tuples
        stream = plan.stream(self.stream_name)
        self._served.serve(plan, stream, self._publish, whole=whole, without_tuples=aggregated)
        floor = self.high if self.high >= 0 else START_OF_TIME
        number = max(self._now - self._cursor.born, 0)  # greater than that of any earlier reading
        start = Start(floor, self.next_offset, self.watermark, number)
        self.watched.serve(plan, start, whole=whole)

    def _begin_anew(self, stream: StreamPlan) -> int:
        """Forget the event time that was reached, because a reading from the future has moved it. Returns the
        greatest event time that other readings may have reached.
        """
        latest, most = self.high, limit(stream, self._replayed)
        # Tuples are sent to new topics from now on: later activations count from their first tuple on.
        self.high = -1
        if not self.ended:
            self.watermark = START_OF_TIME
            self.watched.begin_anew(self.next_offset)
        return latest if most is None else min(latest, self._now + most)

    # ---- tuples

    def take(self, batch: Batch, now: int) -> None:
        """Take tuples in order; `batch.offsets` ascend and are at least `next_offset`."""
        stream = self._served.stream
        assert stream is not None
        self._now = now
        if len(batch) == 0:
            return
        batch = self._positioned(batch, stream)
        decided = self._cursor.decided
        aggregated = self.partials.take(batch, now)
        first = int(np.searchsorted(batch.offsets, decided))
        if first < len(batch):
            self._take(batch.take(slice(first, None)) if first else batch, stream.delay, aggregated[first:])
        if self.watched:
            self.watched.take(batch, stream.delay)
        self._reach()
        self.settle(now)

    def _take(self, batch: Batch, delay: int, aggregated: Bools) -> None:
        n = len(batch)
        ids = np.arange(self._next_id, self._next_id + n, dtype=np.int64)
        self._next_id += n
        # The watermark as each tuple met it: a tuple is late behind those before it, in its batch or not.
        reached = np.maximum.accumulate(np.append(self.watermark, batch.times - delay))
        late = batch.times < reached[:-1]
        matched = self._served.match(batch)
        counts = self._outbox.raw.counts
        concerned = matched.concerned | aggregated
        counts.aggregated += int(np.count_nonzero(aggregated & ~matched.concerned & ~late))
        counts.filtered += n - int(np.count_nonzero(concerned))
        counts.late += int(np.count_nonzero(concerned & late))
        self._served.keep(ids, batch, matched, late)
        for topic, matches, any_entry in matched.topics:
            behind = ids[any_entry & late]
            in_time = matches.only(~late) if late.any() else matches
            self._offer(topic, ids, batch, codes=matched.codes[topic.serial], in_time=in_time, late=behind)
        self.watermark = int(reached[-1])
        self.high = max(self.high, int(batch.times.max()))

    def _positioned(self, batch: Batch, stream: StreamPlan) -> Batch:
        """The batch with the times that omission uses. The next offset moves behind the batch."""
        first = int(batch.offsets[0])
        if self._cursor.take(first, int(batch.offsets[-1]), self._now):
            self.watched.source_begins_anew(first)
            self.partials.source_begins_anew(first)
        if stream.time is None:
            # The position of a tuple is its time where a stream has none.
            return replace(batch, times=self._cursor.born + batch.offsets)
        return batch

    def _offer(
        self, topic: TopicRun, ids: Int64s, batch: Batch, *, codes: Int64s, in_time: Matches, late: Int64s
    ) -> None:
        """Offer tuples to a topic's entries, and publish the late ones, whose ids are given."""
        if not topic.plan.counted:
            self._publish(topic, late, late)
        kept = topic.offer(ids, batch, codes, in_time, self._now)
        if topic.plan.counted and len(late):
            # Positions must rise.
            self._publish(topic, np.union1d(kept, late), late)
        else:
            self._publish(topic, kept)

    def note_history(self, offset: int, times: Int64s) -> None:
        """Note what history a backfill stream has: readings from `offset` on, with these event times."""
        earliest = [int(times.min())] if len(times) else []
        known = self.history or History(offset)
        earliest += [] if known.earliest is None else [known.earliest]
        self.history = History(known.first_offset, min(earliest, default=None))

    def is_decided(self, offset: int) -> bool:
        """True if a reading is read again only for the series of watched streams."""
        return offset < self._cursor.decided

    def add_dead_letter(self, letter: DeadLetter, arrival: int) -> None:
        """Send a reading to the dead letters. Its offset is done when the dead letter is safe.

        Offsets of `take` and `add_dead_letter` may interleave within one delivery of the source.
        """
        self._cursor.skip(letter.offset + 1)
        self._outbox.add_dead_letter(letter, arrival)

    def skip(self, offset: int) -> None:
        """All readings before `offset` were delivered, even if no tuple was among them."""
        self._cursor.skip(offset)
        self._reach()

    def _reach(self) -> None:
        """All readings before the next offset were read. After a restart, those that are read again may lack
        the latest one that was read before: later readings are late behind it all the same.
        """
        self.partials.reached(self.next_offset)
        self._keep_watermark()

    def _keep_watermark(self) -> None:
        if self.partials:
            self.watermark = max(self.watermark, self.partials.watermark)

    def idle(self, now: int) -> None:
        """The source has no readings now. The watermark follows the clock if the stream declares that."""
        self._caught_up()
        stream = self._served.stream
        if stream is None or stream.time is None or self.ended:
            return
        if stream.idle_timeout is not None:
            self.watermark = max(self.watermark, now - stream.idle_timeout - stream.delay)
            self.watched.advance(self.watermark)

    def finish(self) -> None:
        """The source has ended: no more tuples can arrive."""
        self._caught_up()
        self.ended = True
        self.watermark = int(NEVER)
        self.watched.advance(self.watermark)

    def _caught_up(self) -> None:
        """All was read that the source has. It doesn't have those any more that should have come again."""
        self._cursor.reread = 0
        self.partials.reached(END_OF_TIME)
        self._keep_watermark()

    def settle(self, now: int) -> None:
        """Decide on all tuples for which watermark and clock allow it."""
        self._now = now
        for topic in self._served.topics.values():
            self._publish(topic, topic.decide(self.watermark, now))
        self.watched.settle(now)

    def next_deadline(self) -> int | None:
        """The time at which `settle` has to be called even if no tuple arrives."""
        deadlines = [topic.next_deadline() for topic in self._topics().values()]
        return min((at for at in deadlines if at is not None), default=None)

    # ---- records that are safe, and commits

    def safe(self, *tokens: int) -> None:
        """The records of these tokens can't be lost any more: they are delivered, or they are in the spool
        and the shard can't move to another edge.
        """
        self._outbox.safe(*tokens)
        self.partials.safe(*tokens)

    def carries_tuple(self, token: int) -> bool:
        """True if the record has readings. Progress and final records, which have none, can be made again."""
        unsafe = self._outbox.raw.unsafe, self._outbox.watched.unsafe
        return token in unsafe[0] or token in unsafe[1] or self.partials.carries(token)

    def place(self, token: int) -> int:
        """The position of the first reading in a record of readings: in the source, or below 0 by its number
        on watched streams, falling. Records of cuts have 0, since no restart makes them from other readings.
        """
        if self.partials.carries(token):
            return 0
        number = self._outbox.watched.unsafe.get(token)
        return self._cursor.born + self._outbox.raw.unsafe[token] if number is None else ~number

    def retract(self, token: int) -> None:
        """This progress or final record was not sent and must be made again."""
        self._sent_progress.forget()
        self._outbox.forget_finals()

    def commit(self) -> Commit | None:
        """The commit that may now be made durable. None if there is none, or if a commit is already in
        progress.

        The progress of this moment is sent when the commit is durable.
        """
        unsafe = self._outbox.raw.unsafe
        if self._pending is not None or (self._awaits_commit and self._retiring and self.unsafe):
            return None
        if self.partials.begin_chains(self.next_offset, len(unsafe)):
            self._serve_tuples()
        held = self._served.held()
        ids = self._served.forget_decided(held, self._outbox.raw.counts)
        first = [min(unsafe.values())] if unsafe else []
        if len(ids):
            first.append(self._served.offset(ids[:1]))
        cursor = self._cursor
        decided = max(min(first, default=cursor.next), cursor.decided)
        place = cursor.position
        progress = dict(self._served.progress(held, self.watermark, place))
        done, watched = decided, None
        if self.watched:
            done, watched = self.watched.commit(decided, cursor.next, keep_series=self.keep_series)
            progress |= self.watched.progress(cursor.born)
        elif cursor.next < cursor.decided:
            # The plan that had watched streams may come back.
            done, watched = self.durable.done, self.durable.watched
        self.partials.draw(cursor.next, self.watermark, cursor.born, self._now)
        done = min(done, self.partials.done(cursor.next))
        commit = Commit(
            done,
            self.high,
            self.version,
            self.activation,
            cursor.born,
            cursor.read,
            watched,
            self.history,
            self.partials.commit(decided, cursor.next),
            self.partials.fence.committed,
        )
        places = {name: place for name in self._served.topics.keys() - self.partials.without_tuples}
        places |= {
            name: self.watched.place(cursor.born) for one in self.watched.served for name in one.topics
        }
        final = self.ended and done == cursor.next
        self._pending = _PendingCommit(commit, progress, places, final)
        return commit

    def committed(self, now: int) -> None:
        """The last `commit()` is durable: the plan may be acknowledged, and progress sent."""
        pending, self._pending = self._pending, None
        assert pending is not None
        commit = self.durable = pending.commit
        self.acknowledged = (commit.version, commit.activation)
        self._retiring &= commit.version != self.version
        self._reached = pending.progress
        stream, topics = self._served.stream, self._topics()
        timed = stream is not None and stream.time is not None
        schemas = {name: one for served in self._all_served() for name, one in served.schemas.items()}
        last = pending.final and commit.version == self.version
        self._send_fence(now)
        self._send_cuts(now)
        progress = {**pending.progress, **self.partials.progress}
        changed = self._sent_progress.changed(progress, commit.version, now, last=last)
        fences = self.partials.fences
        for topic, partition, time in changed:
            known = topics.get(topic)
            envelope = progress_envelope(
                self.shard,
                commit.version,
                commit.activation,
                time if timed and time != START_OF_TIME else None,
                place=pending.places.get(topic) if known is not None and known.plan.counted else None,
                form=self.partials.form if topic in self.partials.without_tuples else None,
                fence=fences.get(topic, 0),
            )
            value = encode_alone(schemas.get(topic), envelope)
            self._outbox.add(topic, partition, value, now)
        if last:
            self._outbox.add_finals(topics.values(), self._served.partitions, self._origin._replace(now=now))

    def _send_fence(self, now: int) -> None:
        """Send the fence of the last commit to its topics, before all that carries its number."""
        fence = self.partials.fence
        # A plan may have come since it was drawn.
        if topics := fence.made_durable() & self.partials.fences.keys():
            value = encode_alone(None, fence_envelope(self.shard, self.version, fence.number))
            places = [(topic, partition) for topic in topics for partition in range(self._served.partitions)]
            fence.sent_as([self._outbox.add(*place, value, now) for place in places])

    def _send_cuts(self, now: int) -> None:
        """Send the cuts of the last commit, before the progress that covers them."""
        self.partials.made_durable()
        counts = self._outbox.raw.counts
        for chain, rows, records in self.partials.to_send(self.shard, self._cursor.born):
            topic = chain.topic.name
            tokens = [self._outbox.add(topic, partition, value, now) for partition, value in records]
            self.partials.sent_as(chain, tokens)
            size = sum(len(value) for _, value in records)
            counts.published_bytes += size
            sent = counts.partials[topic]
            sent.records += len(records)
            sent.rows += rows
            sent.bytes += size

    def commit_failed(self) -> None:
        """The last `commit()` was not made durable."""
        self._pending = None

    # ---- state, for metrics and the worker

    def take_counts(self) -> Counts:
        """The counts since the last call."""
        return self._outbox.raw.take_counts()

    @property
    def totals(self) -> dict[str, int]:
        """The tuples by decision since the run began."""
        return self._outbox.raw.totals()

    def take_watched_counts(self) -> Counts:
        """The counts of tuples of watched streams since the last call."""
        return self._outbox.watched.take_counts()

    @property
    def final_version(self) -> int:
        """The plan version under which the final records were sent; 0 before that."""
        return self._outbox.final_version

    @property
    def settling(self) -> bool:
        """True if nothing may be read before the plan is committed.

        Tuples that a standing query counts under a plan must not be read again under an older plan: it
        would count some of them and miss those between. Tuples that were read under the plan before must
        not be read again under a plan that retires a definition (`settled_first`). And see
        `PartialTopics.waits`.
        """
        return self._awaits_commit or self.partials.waits

    @property
    def _awaits_commit(self) -> bool:
        counted = any(topic.plan.counted for topic in self._topics().values())
        return (counted or self._retiring) and self.durable.version != self.version

    @property
    def reached(self) -> int | None:
        """The greatest event time by which readings have advanced the shard; None if the clock doesn't limit
        event times.
        """
        stream = self._served.stream
        if stream is None or self.ended or limit(stream, self._replayed) is None:
            return None
        return max(self.high, self.watermark)

    def ahead(self, now: int) -> int:
        """The microseconds by which `reached` is ahead of the clock, if that is more than the stream allows;
        otherwise 0.
        """
        if self.reached is None or self._served.stream is None or self._served.stream.max_ahead is None:
            return 0
        far = self.reached - now
        return far if far > self._served.stream.max_ahead else 0

    @property
    def held(self) -> int:
        """The number of undecided tuples."""
        return sum(len(ids) for served in self._all_served() for ids, _ in served.held().values())

    @property
    def remembered(self) -> int:
        """The number of tuples that omission remembers, counted once for each entry."""
        return sum(topic.size() for topic in self._topics().values())

    @property
    def keys(self) -> dict[str, int]:
        """By topic, the number of partition keys that the shard knows: those of its tuples since it began. It
        forgets keys without tuples only once they are thousands.
        """
        return {name: len(topic.keys) for name, topic in self._topics().items()}

    @property
    def unsafe(self) -> int:
        """The number of records of readings that are not safe yet."""
        return len(self._outbox.raw.unsafe) + len(self._outbox.watched.unsafe) + self.partials.unsafe

    @property
    def read_again(self) -> int:
        """The number of readings that a restart would read again."""
        return self.next_offset - self.durable.done

    # ---- inside

    @property
    def _origin(self) -> Origin:
        born = self._cursor.born
        fences = self.partials.fences
        return Origin(self.shard, self.version, self.activation, born, self._now, self._reached, fences)

    def _all_served(self) -> tuple[ServedTopics, ...]:
        return self._served, *self.watched.served

    def _topics(self) -> dict[str, TopicRun]:
        """All topics by name."""
        return {name: topic for served in self._all_served() for name, topic in served.topics.items()}

    def _publish(self, topic: TopicRun, ids: Int64s, late: Int64s | None = None) -> None:
        """Send tuples on; `ids` and those among them that are `late` ascend."""
        if len(ids) == 0:
            return
        stream = self._served.stream
        assert stream is not None
        for chunk, rows in self._served.rows.find(ids):
            self._outbox.add_tuples(
                topic, chunk, rows, stream=stream, origin=self._origin, ledger=self._outbox.raw, late=late
            )

    def _send_watched(
        self, topic: TopicRun, chunk: Chunk, rows: Int64s, stream: StreamPlan, late: Int64s | None
    ) -> None:
        """Send tuples of a watched stream on. Late tuples have offsets, the others numbers."""
        ledger = self._outbox.watched
        if late is not None:
            ledger = Ledger(ledger.counts, self._outbox.raw.unsafe)
        self._outbox.add_tuples(
            topic, chunk, rows, stream=stream, origin=self._origin, ledger=ledger, late=late
        )
