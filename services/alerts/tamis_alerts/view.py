"""What the worker knows of the fleet: the rules from the plans, and how far the joiner's frontiers have come.

A frontier may close an episode only once every alarm from below it has been taken up. The joiner writes its
frontiers a batch behind its alarms; so what is needed is that this service has committed the alarms topic
up to where it ended when the frontier was seen.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tamis.errors import InputError
from tamis.messaging.compacted import CompactedReader
from tamis.messaging.records import END_OF_TIME, Frontier
from tamis.messaging.topics import ALARMS, FRONTIERS, PLANS
from tamis.planning.plan_json import decode_plan
from tamis.telemetry import get_logger
from tamis.telemetry.threads import WorkerThread
from tamis_alerts.core.rules import Rule, rules_of

_SECONDS = 5.0


@dataclass(frozen=True)
class Passed:
    """Frontiers whose alarms have all been taken up, by alert."""

    rules: Mapping[str, Rule]
    frontiers: Mapping[str, int]


class FleetView:
    """Reads plans and frontiers in a thread of its own; the worker's loop looks at `passed` and `rules`."""

    def __init__(self, config: Mapping[str, Any], group: str) -> None:
        self._config = config
        self._reader = CompactedReader(config, [PLANS, FRONTIERS])
        self._offsets = Consumer({**config, "group.id": group, "enable.auto.commit": False})
        self._log = get_logger("alerts.view")
        self._stop = threading.Event()
        self._thread = WorkerThread("fleet-view", self._run)
        self._version = 0
        self._partitions = 0
        self._known: set[str] = set()  # alerts of any plan
        self._records: dict[int, Frontier] = {}
        self._waiting: tuple[dict[str, int], dict[int, int]] | None = (
            None  # frontiers, ends of the alarms topic
        )
        self.rules: Mapping[str, Rule] = {}
        self.passed: Passed | None = None

    def start(self) -> None:
        """Read all that is there, then follow in the background."""
        for record in self._reader.snapshot():
            self._take(record.topic, record.value)
        self._thread.start()

    def check(self) -> None:
        """Raises DeadThreadError where nobody reads plans and frontiers any more."""
        self._thread.check()

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        self._thread.join(timeout=_SECONDS)
        self._reader.close()
        self._offsets.close()

    def _run(self) -> None:
        # What changes while an earlier state is waited for counts as soon as that is over.
        changed = False
        while not self._stop.is_set():
            for record in self._reader.poll(0.2):
                self._take(record.topic, record.value)
                changed = True
            try:
                if changed and self._waiting is None:
                    self._waiting, changed = (self._frontiers(), self._ends()), False
                if self._waiting is not None and self._caught_up(self._waiting[1]):
                    self.passed = Passed(self.rules, self._waiting[0])
                    self._waiting = None
            except KafkaException as error:
                self._log.warning("offsets of the alarms can't be read", error=str(error))

    def _take(self, topic: str, value: bytes | None) -> None:
        if value is None:
            return
        try:
            if topic == PLANS:
                plan = decode_plan(value)
                if plan.version > self._version:
                    self._version, self._partitions, self.rules = (
                        plan.version,
                        plan.partitions,
                        rules_of(plan),
                    )
                self._known.update(definition.alert for definition in plan.queries)
            else:
                record = Frontier.from_bytes(value)
                self._records[record.partition] = record
        except (InputError, ValueError, TypeError, KeyError) as error:
            self._log.error("a record can't be read", topic=topic, error=str(error))

    def _frontiers(self) -> dict[str, int]:
        """The least frontier of each alert's topics over all output partitions, where all are known."""
        found: dict[str, int] = {}
        if len(self._records) < self._partitions:
            return found
        for alert, rule in self.rules.items():
            states = [r.topics.get(topic) for r in self._records.values() for topic in rule.topics]
            known = [s.frontier for s in states if s is not None and s.frontier is not None]
            if len(known) < len(states):
                continue
            if rule.timeless:
                # Nothing says what is still to come: its alarms count as far as the joiner's clock has come.
                known += [record.time for record in self._records.values()]
            found[alert] = min(known, default=END_OF_TIME)
        # Of an alert that was dropped or paused no alarm comes any more: its episodes are over.
        return found | dict.fromkeys(self._known - self.rules.keys(), END_OF_TIME)

    def _ends(self) -> dict[int, int]:
        topic = self._offsets.list_topics(ALARMS, timeout=_SECONDS).topics[ALARMS]
        return {
            number: self._offsets.get_watermark_offsets(TopicPartition(ALARMS, number), timeout=_SECONDS)[1]
            for number in topic.partitions
        }

    def _caught_up(self, ends: Mapping[int, int]) -> bool:
        wanted = [TopicPartition(ALARMS, number) for number, end in ends.items() if end > 0]
        if not wanted:
            return True
        committed = self._offsets.committed(wanted, timeout=_SECONDS)
        return all(c.offset >= ends[c.partition] for c in committed)
