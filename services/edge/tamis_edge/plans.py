"""The plan in force: read from Kafka as it changes, kept on disk, so that an edge that is cut off goes on
with its last one.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from tamis.errors import TamisError
from tamis.messaging.topics import PLANS
from tamis.planning.plan import Plan
from tamis.planning.plan_json import from_bytes
from tamis.settings import KafkaSettings
from tamis.telemetry.logs import get_logger

_log = get_logger("edge.plans")

RETRY = 1.0  # seconds between attempts to find the plan topic, or topics that a plan names


class PlanFile:
    """The last plan, as bytes, on disk."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> Plan | None:
        """The plan; None where there is none, or none that can be read (it comes again from Kafka)."""
        try:
            return from_bytes(self._path.read_bytes())
        except FileNotFoundError:
            return None
        except TamisError as error:
            _log.warning("the plan on disk can't be read", path=str(self._path), error=str(error))
            return None

    def save(self, value: bytes) -> None:
        """Replace the plan in one go."""
        draft = self._path.with_suffix(".new")
        with draft.open("wb") as file:
            file.write(value)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._path)


class PlanReader:
    """A thread that reads every partition of the plan topic and takes the greatest version, never an older
    one.

    A plan whose partition count isn't that of the topics that it names is refused: keys would be where nobody
    looks for them.
    """

    def __init__(self, settings: KafkaSettings, edge: str, file: PlanFile, wake: Callable[[], None]) -> None:
        self._file, self._wake = file, wake
        self._lock = threading.Lock()
        self._plan = file.load()
        self._fresh = False
        self._refused: str | None = None
        self._stopping = threading.Event()
        # A group is asked for, but never joined: the partitions are assigned by hand and nothing is
        # committed.
        self._config = {
            **settings.client_config(),
            "group.id": f"tamis-edge.{edge}.plans",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "reconnect.backoff.max.ms": 2_000,
            "topic.metadata.refresh.interval.ms": 10_000,
            "error_cb": lambda error: _log.debug("Kafka", error=str(error)),
        }
        self._thread = threading.Thread(target=self._run, name="plans", daemon=True)

    def start(self) -> None:
        """Read in the background."""
        self._thread.start()

    def stop(self) -> None:
        """Stop reading."""
        self._stopping.set()
        self._thread.join(timeout=10)

    @property
    def plan(self) -> Plan | None:
        """The plan to obey."""
        with self._lock:
            return self._plan

    @property
    def fresh(self) -> bool:
        """Whether the topic was read to its end in this life: the plan isn't only what the disk remembers."""
        with self._lock:
            return self._fresh

    @property
    def refused(self) -> str | None:
        """Why the newest plan is not obeyed."""
        with self._lock:
            return self._refused

    def _run(self) -> None:
        consumer = Consumer(self._config)
        try:
            partitions = self._find(consumer)
            if partitions:
                self._read(consumer, partitions)
        finally:
            consumer.close()

    def _find(self, consumer: Consumer) -> int:
        """How many partitions the plan topic has, once it exists; 0 when stopping."""
        while not self._stopping.is_set():
            count = _partitions(consumer, PLANS)
            if count:
                return count
            self._stopping.wait(RETRY)
        return 0

    def _read(self, consumer: Consumer, partitions: int) -> None:
        consumer.assign([TopicPartition(PLANS, p, OFFSET_BEGINNING) for p in range(partitions)])
        unread = set(range(partitions))
        newest: tuple[Plan, bytes] | None = None
        while not self._stopping.is_set():
            message = consumer.poll(0.2)
            if message is not None:
                error, value = message.error(), message.value()
                if error is not None and error.code() == KafkaError._PARTITION_EOF:
                    unread.discard(message.partition() or 0)
                elif error is not None:
                    _log.warning("reading the plan failed", error=str(error))
                elif value is not None:
                    newest = _newer(newest, value)
            # At the start what older versions said is of no interest.
            if unread:
                continue
            if newest is not None and self._offer(consumer, *newest):
                newest = None
            with self._lock:
                if not self._fresh:
                    self._fresh = True
                    self._wake()

    def _offer(self, consumer: Consumer, plan: Plan, value: bytes) -> bool:
        """Take a plan up if it is newer and fits; False: try again."""
        current = self.plan
        if current is not None and plan.version <= current.version:
            return True
        for topic in [topic.name for stream in plan.streams for topic in stream.topics]:
            found = _partitions(consumer, topic)
            if found != plan.partitions:
                state = (
                    "can't be found"
                    if found is None
                    else f"has {found} partitions, the plan says {plan.partitions}"
                )
                self._refuse(f"plan {plan.version}: topic {topic} {state}")
                time.sleep(RETRY)
                return False
        self._file.save(value)
        with self._lock:
            self._plan, self._refused = plan, None
        _log.info("plan", version=plan.version)
        self._wake()
        return True

    def _refuse(self, why: str) -> None:
        with self._lock:
            if self._refused != why:
                _log.error("refusing a plan", reason=why)
            self._refused = why


def _newer(newest: tuple[Plan, bytes] | None, value: bytes) -> tuple[Plan, bytes] | None:
    try:
        plan = from_bytes(value)
    except TamisError as error:
        _log.error("a plan can't be read", error=str(error))
        return newest
    return (plan, value) if newest is None or plan.version > newest[0].version else newest


def _partitions(consumer: Consumer, topic: str) -> int | None:
    try:
        found = consumer.list_topics(topic, timeout=5).topics[topic]
    except KafkaException:
        return None
    return None if found.error is not None else len(found.partitions)
