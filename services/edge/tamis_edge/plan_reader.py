"""Reader of plans: reads the newest plan from Kafka, and keeps it on disk in case Kafka is away."""

from __future__ import annotations

import os
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from tamis.errors import InputError, UnavailableError
from tamis.expressions.python_functions import SETTING
from tamis.messaging.plans import FARTHER, TAIL, Newest, newest, newest_plan
from tamis.messaging.topic_reader import Record, TopicReader
from tamis.messaging.topics import PART_PREFIX, PLANS, part_topic
from tamis.plan.json_form import decode_plan
from tamis.plan.model import Plan
from tamis.plan.parts import NewestParts, cut
from tamis.settings import KafkaSettings
from tamis.telemetry.logs import get_logger
from tamis.telemetry.threads import WorkerThread
from tamis_edge.core.missing_functions import able, lacking, needed

_log = get_logger("edge.plans")

RETRY = 1.0  # seconds between attempts to read the plan topic, or to find the topics that a plan names
# Seconds between two looks whether `tamis.plans` has a plan that came without parts.
LOOK = 10.0
# Seconds that the parts of a plan may come later than the plan.
LATER = 3.0
# Seconds for which whole plans are read once a plan has come without parts.
WHOLE = 600.0


class PlanFile:
    """The last plan, cut to the edge's streams, on disk. The first line says which streams these are.

    Older releases keep whole plans in `plan.json`. They don't know `edge-plan.json`, which lacks streams that
    the edge may have after its configuration was changed.
    """

    def __init__(self, folder: Path, streams: frozenset[str] | None = None) -> None:
        """`streams`: the raw streams of the edge's sources; None: any stream."""
        self._path, self._whole = folder / "edge-plan.json", folder / "plan.json"
        self.streams = streams
        self._head = msgspec.json.encode(None if streams is None else sorted(streams))

    def load(self) -> Plan | None:
        """The plan; None if there is none for these streams, or if the file can't be read. The plan is then
        read from Kafka.
        """
        document = None
        with suppress(FileNotFoundError):
            head, _, found = self._path.read_bytes().partition(b"\n")
            document = found if head == self._head else None
        try:
            return decode_plan(self.cut(self._whole.read_bytes()) if document is None else document)
        except FileNotFoundError:
            return None
        except InputError as error:
            path = self._whole if document is None else self._path
            _log.warning("the plan on disk can't be read", path=str(path), error=str(error))
            return None

    def save(self, value: bytes) -> None:
        """Replace the plan atomically. `value` is cut already."""
        draft = self._path.with_suffix(".new")
        with draft.open("wb") as file:
            file.writelines((self._head, b"\n", value))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._path)
        self._whole.unlink(missing_ok=True)

    def cut(self, document: bytes) -> bytes:
        """The part of a plan that the edge needs."""
        return cut(document, self.streams)


class PlanReader:
    """A thread that reads the parts of plans that concern the edge's streams, each from a topic of its own.
    If there are none, as under an older registry, or if the edge takes any stream, it reads whole plans from
    one partition of the plan topic: all have the same plans. It takes the plan with the greatest version,
    never an older one.

    A plan is refused if its topics have a different partition count in Kafka than in the plan: readers would
    look for keys in the wrong partitions.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        file: PlanFile,
        partition_counts: Callable[[], Mapping[str, int]],
        wake: Callable[[], None],
        edge: str = "",
    ) -> None:
        """`partition_counts` asks Kafka for the partition count of each topic. `wake` is called when there is
        a new plan. The name of the `edge` chooses the partition, so that many edges read from all brokers.
        """
        self._one = zlib.crc32(edge.encode())
        self._settings, self._file, self._wake = settings, file, wake
        self._partition_counts = partition_counts
        self._lock = threading.Lock()
        remembered = file.load()
        self._plan = None if remembered is None else _able(remembered)
        self._fresh = False
        self._refused: str | None = None
        self._stopping = threading.Event()
        self._thread = WorkerThread("plans", self._run)

    def start(self) -> None:
        """Read in the background."""
        self._thread.start()

    def check(self) -> None:
        """Raises DeadThreadError if the thread has died."""
        self._thread.check()

    def ask_to_stop(self) -> None:
        """Let the thread end, without waiting for it."""
        self._stopping.set()

    def stop(self) -> None:
        """Stop reading."""
        self.ask_to_stop()
        self._thread.join(timeout=10)

    @property
    def plan(self) -> Plan | None:
        """The plan to use."""
        with self._lock:
            return self._plan

    @property
    def fresh(self) -> bool:
        """True if the topic was read to its end since the start. Otherwise the plan may be an old one from
        the disk.
        """
        with self._lock:
            return self._fresh

    @property
    def refused(self) -> str | None:
        """The reason why the newest plan is not used; None if it is used."""
        with self._lock:
            return self._refused

    def _run(self) -> None:
        config = self._settings.client_config()
        reason = ""
        while not self._stopping.is_set():
            try:
                if self._file.streams:
                    self._read_parts(config, self._file.streams)
                with TopicReader(config, [PLANS], one=self._one) as reader:
                    self._follow(reader)
            except UnavailableError as error:
                if str(error) != reason:
                    reason = str(error)
                    _log.warning("plans can't be read; trying again", reason=reason)
                self._stopping.wait(RETRY)
            except OSError as error:
                # A disk that is full may have room again later: the edge must go on reading plans.
                self._refuse(f"the plan can't be kept on disk: {error}")
                self._stopping.wait(RETRY)

    def _read_parts(self, config: dict[str, Any], streams: frozenset[str]) -> None:
        """Read parts of plans until a plan comes without parts, or they can't be read although Kafka answers.

        Raises UnavailableError if Kafka is away.
        """
        reason = f"a plan in {PLANS} has no parts"
        with TopicReader(config, [part_topic(stream) for stream in sorted(streams)]) as reader:
            try:
                while self._follow_parts(reader, NewestParts(streams)):
                    pass
            except UnavailableError as error:
                reason = str(error)
                reader.end(PLANS, 0)
        if not self._stopping.is_set():
            _log.info("reading whole plans", reason=reason)

    def _follow_parts(self, reader: TopicReader, parts: NewestParts) -> bool:
        """Read the newest parts, and then new ones, until Kafka was away and has answered again. False if
        there is a plan without them, or if the edge stops.
        """
        self._newest_parts(reader, parts)
        offered, look, missing = 0, 0.0, 0.0
        while not self._stopping.is_set():
            if parts.version > offered and self._offer_parts(parts):
                offered = parts.version
            now = time.monotonic()
            if now >= look:
                complete = self._complete(reader, parts)
                if complete:
                    self._now_fresh()
                elif missing and now - missing > LATER:
                    return False
                missing = 0.0 if complete else missing or now
                look = now + (LOOK if complete else RETRY)
            self._take(parts, reader.poll(0.2))
            if reader.trouble is not None and reader.reachable(RETRY):
                return True
        return False

    def _newest_parts(self, reader: TopicReader, parts: NewestParts) -> None:
        topics = [part_topic(stream) for stream in parts.streams]
        tail = TAIL
        while True:
            self._take(parts, reader.snapshot(last=dict.fromkeys(topics, tail)))
            if parts.version or reader.from_beginning:
                return
            tail *= FARTHER

    def _take(self, parts: NewestParts, records: Iterable[Record]) -> None:
        for record in records:
            if record.value is not None:
                try:
                    parts.take(record.topic.removeprefix(PART_PREFIX), record.value)
                except InputError as error:
                    _unreadable(record, error)

    def _offer_parts(self, parts: NewestParts) -> bool:
        """`_offer` of the plan of these parts. A plan that can't be read isn't offered."""
        document = parts.plan()
        try:
            plan = decode_plan(document)
        except InputError as error:
            _log.error("a plan can't be read", version=parts.version, error=str(error))
            return True
        return self._offer(Newest(plan, document))

    def _complete(self, reader: TopicReader, parts: NewestParts) -> bool:
        """True if no plan has come without parts: the plan topic ends where the parts say."""
        if not parts.version:
            return False
        partition = self._one % len(parts.ends)
        return reader.end(PLANS, partition) == parts.ends[partition]

    def _now_fresh(self) -> None:
        with self._lock:
            was_fresh, self._fresh = self._fresh, True
        if not was_fresh:
            self._wake()

    def _follow(self, reader: TopicReader) -> None:
        """Read the newest plan, and then new plans until Kafka was away and has answered again. The topic may
        have been created again meanwhile, and the reader's position may be behind its newest plan.
        """
        until = time.monotonic() + WHOLE
        waiting = newest_plan(reader, _unreadable, self._file.cut)
        while not self._stopping.is_set():
            if waiting is not None and self._offer(waiting):
                waiting = None
            self._now_fresh()
            known = waiting.plan if waiting is not None else self.plan
            version = known.version if known else 0
            waiting = newest(reader.poll(0.2), version, _unreadable, self._file.cut) or waiting
            if reader.trouble is not None and reader.reachable(RETRY):
                return
            if self._file.streams and time.monotonic() > until:
                return  # there may be parts by now

    def _offer(self, offered: Newest) -> bool:
        """Use a plan if it is newer and fits; False if the caller should offer it again."""
        plan, current = offered.plan, self.plan
        if current is not None and plan.version <= current.version:
            return True
        names = [topic.name for stream in plan.streams for topic in stream.topics]
        counts = self._partition_counts() if names else {}
        for topic in names:
            found = counts.get(topic)
            if found != plan.partitions:
                state = "can't be found" if found is None else f"has {found} partitions"
                self._refuse(f"plan {plan.version}: topic {topic} {state}, the plan says {plan.partitions}")
                self._stopping.wait(RETRY)
                return False
        if missing := needed(plan):
            self._refuse(
                f"plan {plan.version}: a derived stream or similar() needs {', '.join(missing)}; set "
                f"{SETTING} to the modules that have it, where this edge starts"
            )
            self._stopping.wait(RETRY)
            return False
        self._file.save(offered.document)
        plan = _able(plan)
        with self._lock:
            self._plan, self._refused = plan, None
        _log.info("a new plan is in force", version=plan.version)
        self._wake()
        return True

    def _refuse(self, why: str) -> None:
        with self._lock:
            if self._refused != why:
                _log.error("refusing a plan", reason=why)
            self._refused = why


def _able(plan: Plan) -> Plan:
    """The plan without calls of missing functions, which are logged."""
    for name in lacking(plan):
        _log.error("a function isn't installed: tuples for which it is needed are kept", function=name)
    return able(plan)


def _unreadable(record: Record, error: InputError) -> None:
    _log.error("a plan can't be read", partition=record.partition, offset=record.offset, error=str(error))
