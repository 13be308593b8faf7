"""Queue of one sink: its own consumer group on the topic of episodes.

Events that wait for a sink are in Kafka. They survive every restart, and no other sink waits for them.

Notifications of one alert and key are delivered one after the other, those of different keys at the same
time. An offset is committed when all records before it are delivered or given up. Records after it that are
done, too, are committed as metadata. Before a notification is given up, it becomes a dead letter. After a
crash the topic may have an event twice. The queue recognises it, because at its start it also reads the last
events before its offset.

An opening that a silence covers is held: its offset is committed, and `silencing` keeps the event. When no
silence covers it any more, it is delivered like an event that has just come.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any

from confluent_kafka import Consumer, Message, TopicPartition

from tamis.messaging.column_names import ColumnNames
from tamis.messaging.connection import Connection
from tamis.messaging.heartbeats import SinkState
from tamis.messaging.records import canonical_key, json_bytes
from tamis.messaging.topics import EPISODES
from tamis.settings import KafkaSettings
from tamis.telemetry import Metrics, get_logger
from tamis.telemetry.threads import WorkerThread
from tamis_alerts.core.notifications import event_id
from tamis_alerts.core.offset_tracker import OffsetTracker
from tamis_alerts.sinks.backlog import Backlog
from tamis_alerts.sinks.delivery import Delivery
from tamis_alerts.sinks.event_delivery import EventDelivery, QueuedEvent
from tamis_alerts.sinks.group_offsets import (
    GROUP_PREFIX,
    REQUEST_SECONDS,
    GroupOffsets,
    Position,
)
from tamis_alerts.sinks.notification import read_episode
from tamis_alerts.sinks.silencing import Silencing

# At a start this many records before the offset are read again, to recognise events that come twice. A crash
# repeats at most the events of one write of the service, which are fewer.
LOOK_BACK = 5_000
# Records in memory, and their bytes; more of them wait in Kafka. Kafka takes records of several MB, and in
# memory an event needs two to three times its bytes.
MAX_RECORDS = 1_000
MAX_BYTES = 8 * 2**20
# Pause between two polls of Kafka, unless something is delivered meanwhile.
POLL_SECONDS = 0.05
# Notifications that are being sent when the service stops get this long.
GRACE_SECONDS = 2.0
MEASURE_SECONDS = 2.0

log = get_logger("alerts.sinks")


class SinkQueue:
    """Delivers to one sink, in its own thread. `make` makes its delivery in the thread's event loop."""

    def __init__(
        self,
        name: str,
        make: Callable[[], Delivery],
        kafka: KafkaSettings,
        metrics: Metrics,
        silencing: Silencing | None = None,
    ) -> None:
        self.name = name
        self._silencing = silencing
        self._make, self._kafka, self._metrics = make, kafka, metrics
        self._connection = Connection.of(kafka.client_config())
        self._consumer = Consumer(
            {
                **kafka.client_config(),
                "group.id": f"{GROUP_PREFIX}{name}",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                # When a member comes or goes, the others keep their partitions and what they are sending.
                "partition.assignment.strategy": "cooperative-sticky",
                "session.timeout.ms": 10_000,
                "fetch.wait.max.ms": 100,
                # By default the client asks again for a topic that it may not read after five minutes.
                "topic.metadata.refresh.interval.ms": 10_000,
                # Each sink has a client: without a limit each would fetch up to 64 MB ahead.
                "queued.max.messages.kbytes": 4096,
                "error_cb": self._connection,
            }
        )
        self._thread = WorkerThread(f"sink-{name}", lambda: asyncio.run(self._work()))
        self._stopping = threading.Event()
        self._offsets = GroupOffsets(name, self._consumer, self._connection, self._stopping)
        self._backlog = Backlog(name, self._offsets, metrics, silencing)
        self._trackers: dict[int, OffsetTracker] = {}  # by partition
        self._tasks: dict[asyncio.Task[None], QueuedEvent] = {}  # with their events, in the order of these
        self._bytes = 0  # of the records of these tasks
        self._last: dict[bytes, asyncio.Task[None]] = {}  # the last notification of each key
        self._uncommitted: list[asyncio.Future[None]] = []  # done when the next commit is done
        # Whether the partitions are paused; None after a rebalance, when some may be and others not.
        self._paused: bool | None = None

    def register(self, starts: Mapping[int, int]) -> None:
        """Let a new sink get the events from the offsets in `starts` on, by partition, and without an offset
        those that are written from now on. Call this before the service writes any. Raises UnavailableError.
        """
        self._offsets.register(starts)

    @property
    def registered(self) -> bool:
        """True if an earlier process has registered the sink. Raises UnavailableError."""
        return self._offsets.registered

    def start(self) -> None:
        """Begin to deliver."""
        self._thread.start()

    def check(self) -> None:
        """Raises DeadThreadError if the thread has ended by an error."""
        self._thread.check()

    def ask_to_stop(self) -> None:
        """Let the thread end, without waiting for it."""
        self._stopping.set()

    def stop(self) -> None:
        """End the thread. Events that aren't delivered remain in Kafka."""
        self.ask_to_stop()
        self._thread.join(timeout=2 * REQUEST_SECONDS)
        self._consumer.close()

    @property
    def trouble(self) -> str:
        """The number of notifications that wait, and for how long; empty if none has waited for long."""
        return self._backlog.trouble

    @property
    def state(self) -> SinkState:
        """The notifications that wait, in the partitions of this worker."""
        return self._backlog.state

    # ---- the thread's event loop

    async def _work(self) -> None:
        delivery = self._make()
        self._events = EventDelivery(delivery, self._kafka, self._metrics, self._silencing, self._stopping)
        self._wake = asyncio.Event()
        self._consumer.subscribe([EPISODES], on_assign=self._on_assign, on_revoke=self._on_revoke)
        measured = 0.0
        try:
            # An unexpected error ends the task group, and by that the thread and the service.
            async with asyncio.TaskGroup() as group:
                while not self._stopping.is_set():
                    self._take(group)
                    self._take_held(group)
                    await self._commit()
                    if time.monotonic() - measured > MEASURE_SECONDS:
                        waiting = list(self._tasks.values())
                        await self._backlog.measure(waiting, self._trackers, delivery.error)
                        measured = time.monotonic()
                    await self._pause()
                until = time.monotonic() + GRACE_SECONDS
                while self._tasks and time.monotonic() < until:
                    await self._commit()
                    await self._pause()
                self._cancel(set(self._trackers))
        finally:
            await self._events.close()
            self._commit_blocking()

    async def _pause(self) -> None:
        try:
            await asyncio.wait_for(self._wake.wait(), POLL_SECONDS)
        except TimeoutError:
            return
        self._wake.clear()

    def _take(self, group: asyncio.TaskGroup) -> None:
        """Take records from Kafka, as many as there is room for, and begin to deliver them."""
        room = MAX_RECORDS - len(self._tasks) if self._bytes < MAX_BYTES else 0
        # Without room the partitions are paused, and Kafka is polled all the same: rebalances come by
        # polling, and the group removes a member that doesn't poll.
        if self._paused != (room <= 0):
            self._paused = room <= 0
            assigned = [TopicPartition(EPISODES, number) for number in self._trackers]
            (self._consumer.pause if self._paused else self._consumer.resume)(assigned)
        for message in self._consumer.consume(max(room, 1), 0):
            error = message.error()
            if error is not None:
                why = str(self._connection.error(error))
                log.warning("reading episodes failed", sink=self.name, error=why)
            else:
                self._begin(message, group)

    def _begin(self, message: Message, group: asyncio.TaskGroup) -> None:
        partition, offset = message.partition() or 0, message.offset() or 0
        tracker = self._trackers.get(partition)
        if tracker is None:
            return
        value = message.value() or b""
        try:
            episode = read_episode(value)
        except ValueError as error:
            self._metrics.inc("tamis_dead_letters_total", service="alerts", reason="undecodable")
            log.error("an episode can't be read", sink=self.name, offset=offset, error=repr(error))
            episode = None
        is_new = episode is None or tracker.is_new_event(event_id(episode))
        if offset < tracker.start:
            return
        written = message.timestamp()[1] / 1000
        if not tracker.add(offset):
            return
        if episode is None or not is_new or not self._events.concerns(episode):
            tracker.done(offset)
            return
        names, place = ColumnNames.of(message.headers()), (partition, offset)
        event = QueuedEvent.of(self.name, episode, value, place=place, written=written, names=names)
        work = partial(self._events.deliver, event, lambda: self._done(tracker, offset))
        self._start(group, work, event, message.key() or b"", len(value))

    def _take_held(self, group: asyncio.TaskGroup) -> None:
        """Begin to deliver the openings that no silence covers any more."""
        for held in [] if self._silencing is None else self._silencing.due():
            episode = held.event
            key, value = canonical_key((episode["alert"], *episode["key"])), json_bytes(episode)
            event = QueuedEvent.of(
                self.name,
                episode,
                value,
                place=(held.partition, held.offset),
                written=time.time(),
                names=ColumnNames(held.columns, held.key_times, held.row_times),
            )
            work = partial(self._events.deliver_held, held, event)
            self._start(group, work, event, key, len(value))

    def _start(
        self,
        group: asyncio.TaskGroup,
        work: Callable[[], Coroutine[Any, Any, None]],
        event: QueuedEvent,
        key: bytes,
        size: int,
    ) -> None:
        """Start the delivery of an event of `size` bytes. It waits for the one before of its key."""
        task = group.create_task(_after(self._last.get(key), work))
        self._tasks[task] = event
        self._last[key] = task
        self._bytes += size
        task.add_done_callback(lambda task: self._ended(key, size, task))

    def _ended(self, key: bytes, size: int, task: asyncio.Task[None]) -> None:
        del self._tasks[task]
        self._bytes -= size
        if self._last.get(key) is task:
            del self._last[key]
        self._wake.set()

    # ---- offsets

    async def _done(self, tracker: OffsetTracker, offset: int) -> None:
        """Mark a record as done, and return when the next commit is done."""
        tracker.done(offset)
        committed = asyncio.get_running_loop().create_future()
        self._uncommitted.append(committed)
        self._wake.set()
        await committed

    def _committable(self) -> dict[int, Position]:
        """The positions that have changed since the last commit, by partition."""
        positions = {number: tracker.to_commit() for number, tracker in self._trackers.items()}
        return {n: position for n, position in positions.items() if position != self._trackers[n].committed}

    async def _commit(self) -> None:
        """Commit the offsets that are done, then free the slots of their notifications."""
        committed, self._uncommitted = self._uncommitted, []
        # Read here and not in the thread that commits: tasks of this loop change the trackers meanwhile.
        positions = self._committable()
        if positions:
            taken = await asyncio.to_thread(self._offsets.commit, positions)
            if taken:
                self._note_committed(positions)
        for future in committed:
            if not future.done():  # its task was cancelled
                future.set_result(None)

    def _commit_blocking(self) -> None:
        positions = self._committable()
        if positions and self._offsets.commit(positions):
            self._note_committed(positions)

    def _note_committed(self, positions: dict[int, Position]) -> None:
        for number, position in positions.items():
            self._trackers[number].committed = position

    # ---- callbacks of a rebalance, called within consume()

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        starts = self._offsets.starts(partitions)
        if self._silencing is not None:
            self._silencing.assign({number: start for number, (start, _) in starts.items()}, self._stopping)
        for number, (start, metadata) in starts.items():
            self._trackers[number] = OffsetTracker(start, LOOK_BACK, metadata)
        consumer.incremental_assign(
            [TopicPartition(EPISODES, n, max(0, start - LOOK_BACK)) for n, (start, _) in starts.items()]
        )
        self._paused = None
        log.info("assigned", sink=self.name, partitions=sorted(self._trackers))

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        numbers = {at.partition for at in partitions}
        self._cancel(numbers)
        if self._silencing is not None:
            self._silencing.revoke(numbers)
        self._commit_blocking()
        for number in numbers:
            self._trackers.pop(number, None)

    def _cancel(self, numbers: set[int]) -> None:
        """Cancel the deliveries of some partitions: the next member of the group delivers them again."""
        for task, event in self._tasks.items():
            if event.letter.partition in numbers:
                task.cancel()


async def _after(before: asyncio.Task[None] | None, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Do the work when the task before it has ended."""
    if before is not None:
        await asyncio.wait([before])
    await work()
