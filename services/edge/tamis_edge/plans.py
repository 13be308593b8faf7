"""The plan in force: read from Kafka as it changes, kept on disk, so that an edge that is cut off goes on
with its last one.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

from tamis.errors import InputError, UnavailableError
from tamis.expressions.opaque import SETTING
from tamis.messaging.compacted import CompactedReader, Record
from tamis.messaging.topics import PLANS
from tamis.planning.plan import Plan
from tamis.planning.plan_json import decode_plan
from tamis.settings import KafkaSettings
from tamis.telemetry.logs import get_logger
from tamis.telemetry.threads import WorkerThread
from tamis_edge.core.able import able, lacking, needed

_log = get_logger("edge.plans")

RETRY = 1.0  # seconds between attempts to read the plan topic, or to find the topics that a plan names


class PlanFile:
    """The last plan, as bytes, on disk."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> Plan | None:
        """The plan; None where there is none, or none that can be read (it comes again from Kafka)."""
        try:
            return decode_plan(self._path.read_bytes())
        except FileNotFoundError:
            return None
        except InputError as error:
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

    def __init__(
        self,
        settings: KafkaSettings,
        file: PlanFile,
        partitions: Callable[[str], int | None],
        wake: Callable[[], None],
    ) -> None:
        """`partitions`: how many a topic has, None where it doesn't exist or Kafka can't be asked; `wake` is
        called when there is something new.
        """
        self._settings, self._file, self._partitions, self._wake = settings, file, partitions, wake
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
        """Raises DeadThreadError where nobody reads plans any more."""
        self._thread.check()

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
        config = self._settings.client_config()
        while not self._stopping.is_set():
            try:
                with CompactedReader(config, [PLANS]) as reader:
                    self._follow(reader)
            except UnavailableError as error:
                _log.info("no plan yet", reason=str(error))
                self._stopping.wait(RETRY)
            except OSError as error:
                # A disk that is full now may have room again: an edge must not be deaf to plans for ever.
                self._refuse(f"the plan can't be kept on disk: {error}")
                self._stopping.wait(RETRY)

    def _follow(self, reader: CompactedReader) -> None:
        # At the start what older versions said is of no interest.
        newest: tuple[Plan, bytes] | None = None
        for record in reader.snapshot():
            newest = _newer(newest, record)
        while not self._stopping.is_set():
            if newest is not None and self._offer(*newest):
                newest = None
            with self._lock:
                was_fresh, self._fresh = self._fresh, True
            if not was_fresh:
                self._wake()
            for record in reader.poll(0.2):
                newest = _newer(newest, record)

    def _offer(self, plan: Plan, value: bytes) -> bool:
        """Take a plan up if it is newer and fits; False: try again."""
        current = self.plan
        if current is not None and plan.version <= current.version:
            return True
        for topic in [topic.name for stream in plan.streams for topic in stream.topics]:
            found = self._partitions(topic)
            if found != plan.partitions:
                state = "can't be found" if found is None else f"has {found} partitions"
                self._refuse(f"plan {plan.version}: topic {topic} {state}, the plan says {plan.partitions}")
                self._stopping.wait(RETRY)
                return False
        if missing := needed(plan):
            self._refuse(
                f"plan {plan.version}: a derived stream needs {', '.join(missing)}; set {SETTING} to the "
                "modules that have it, where this edge starts"
            )
            self._stopping.wait(RETRY)
            return False
        self._file.save(value)
        plan = _able(plan)
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


def _able(plan: Plan) -> Plan:
    """The plan as far as this edge's functions go, and word of what is missing."""
    for name in lacking(plan):
        _log.error("a function isn't installed: every tuple is kept that it would judge", function=name)
    return able(plan)


def _newer(newest: tuple[Plan, bytes] | None, record: Record) -> tuple[Plan, bytes] | None:
    if record.value is None:
        return newest
    try:
        plan = decode_plan(record.value)
    except InputError as error:
        _log.error("a plan can't be read", partition=record.partition, offset=record.offset, error=str(error))
        return newest
    return (plan, record.value) if newest is None or plan.version > newest[0].version else newest
