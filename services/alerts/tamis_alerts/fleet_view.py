"""View of the fleet: rules from the plans, and frontiers from the joiner.

A frontier may close an episode only after every alarm below it has been processed. The joiner writes a
frontier after the alarms below it. So these alarms have been processed when this service has committed the
alarms topic up to the end that the topic had when the frontier was read.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tamis.errors import InputError
from tamis.messaging.plans import newest_plan
from tamis.messaging.records import END_OF_TIME, Frontier, read_frontier
from tamis.messaging.topic_reader import Record, TopicReader, UnreadableRecords
from tamis.messaging.topics import ALARMS, FRONTIERS, PLANS
from tamis.plan.json_form import alerts_of, decode_plan, version_of
from tamis.plan.model import Plan
from tamis.telemetry import Metrics, get_logger
from tamis.telemetry.threads import WorkerThread
from tamis_alerts.core.rules import Rule, rules_of
from tamis_alerts.kafka_reads import offset_range

REQUEST_SECONDS = 5.0

_log = get_logger("alerts.view")


@dataclass(frozen=True)
class ProcessedFrontiers:
    """For each alert, a frontier below which all alarms have been processed; and the rules of the alerts."""

    rules: Mapping[str, Rule]
    frontiers: Mapping[str, int]


class FleetView:
    """Reads plans and frontiers in its own thread. The worker's loop uses `rules` and `take_processed`."""

    def __init__(self, config: Mapping[str, Any], group: str, metrics: Metrics | None = None) -> None:
        self._config = config
        self._unreadable = UnreadableRecords("alerts", metrics, _log)
        self._reader = TopicReader(config, [PLANS, FRONTIERS])
        self._offsets = Consumer({**config, "group.id": group, "enable.auto.commit": False})
        self._stop = threading.Event()
        self._thread = WorkerThread("fleet-view", self._run)
        self._plan: Plan | None = None
        self._version = 0
        self._partitions = 0
        self._alerts: set[str] = set()  # alerts of all plans
        self._versions: set[int] = set()  # versions of plans whose alerts are in it
        self._records: dict[int, Frontier] = {}
        self._waiting: tuple[dict[str, int], dict[int, int]] | None = (
            None  # frontiers, ends of the alarms topic
        )
        self.rules: Mapping[str, Rule] = {}
        # Rules of alerts that were dropped or paused since this process runs. Their episodes close with the
        # severity and the labels with which they were opened: sinks are chosen and alerts resolved by them.
        self.former_rules: dict[str, Rule] = {}
        # At most one, the newest. Its operations are atomic: no update gets lost between the two threads.
        self._processed: deque[ProcessedFrontiers] = deque(maxlen=1)

    def start(self) -> None:
        """Read both topics to their end, then follow them in the background."""
        # The newest plan comes first: of older plans only the names of alerts are needed.
        with TopicReader(self._config, [PLANS]) as plans:
            found = newest_plan(plans, self._unreadable.report)
        if found is not None:
            self._obey(found.plan)
        for record in self._reader.snapshot():
            self._take(record)
        self._thread.start()

    def take_processed(self) -> ProcessedFrontiers | None:
        """The newest frontiers whose alarms have been processed; None if none have come since the last
        call.
        """
        try:
            return self._processed.pop()
        except IndexError:
            return None

    def check(self) -> None:
        """Raises DeadThreadError if the thread has ended by an error."""
        self._thread.check()

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        self._thread.join(timeout=REQUEST_SECONDS)
        self._reader.close()
        self._offsets.close()

    def _run(self) -> None:
        # Changes during the wait for an earlier state count after it.
        changed = False
        while not self._stop.is_set():
            for record in self._reader.poll(0.2):
                self._take(record)
                changed = True
            try:
                if changed and self._waiting is None:
                    self._waiting, changed = (self._frontiers(), self._ends()), False
                if self._waiting is not None and self._caught_up(self._waiting[1]):
                    self._processed.append(ProcessedFrontiers(self.rules, self._waiting[0]))
                    self._waiting = None
            except KafkaException as error:
                _log.warning("offsets of the alarms can't be read", error=str(error))

    def _take(self, record: Record) -> None:
        if record.value is None:
            return
        try:
            if record.topic == PLANS:
                self._take_plan(record.value)
            else:
                self._take_frontier(read_frontier(record.key, record.value))
        except (InputError, ValueError) as error:
            self._unreadable.report(record, error)

    def _take_frontier(self, record: Frontier) -> None:
        self._records[record.partition] = record

    def _take_plan(self, value: bytes) -> None:
        version = version_of(value)
        if version in self._versions:
            return  # every partition has it
        if version > self._version:
            self._obey(decode_plan(value))
        else:
            self._alerts |= alerts_of(value)
            self._versions.add(version)

    def _obey(self, plan: Plan) -> None:
        before = self.rules
        self.rules = rules_of(plan)
        self.former_rules |= {alert: rule for alert, rule in before.items() if alert not in self.rules}
        self._plan, self._version, self._partitions = plan, plan.version, plan.partitions
        self._alerts.update(definition.alert for definition in plan.queries)
        self._versions.add(plan.version)

    def _frontiers(self) -> dict[str, int]:
        """By alert, the least frontier of its topics over all output partitions, if all of them are known."""
        found: dict[str, int] = {}
        if len(self._records) < self._partitions:
            return found
        for alert, rule in self.rules.items():
            states = [r.topics.get(topic) for r in self._records.values() for topic in rule.topics]
            known = [s.frontier for s in states if s is not None and s.frontier is not None]
            if len(known) < len(states):
                continue
            if rule.timeless:
                # Without event time there is no frontier: the joiner's clock takes its place.
                known += [record.time for record in self._records.values()]
            found[alert] = min(known, default=END_OF_TIME)
        # An alert that was dropped or paused raises no alarms any more: its episodes are over.
        return found | dict.fromkeys(self._alerts - self.rules.keys(), END_OF_TIME)

    def _ends(self) -> dict[int, int]:
        topic = self._offsets.list_topics(ALARMS, timeout=REQUEST_SECONDS).topics[ALARMS]
        return {number: self._range(number)[1] for number in topic.partitions}

    def _caught_up(self, ends: Mapping[int, int]) -> bool:
        wanted = [TopicPartition(ALARMS, number) for number, end in ends.items() if end > 0]
        if not wanted:
            return True
        committed = self._offsets.committed(wanted, timeout=REQUEST_SECONDS)
        behind = [c.partition for c in committed if c.offset < ends[c.partition]]
        # A partition whose records have all expired has no committed offset, and nothing to process.
        return all(self._range(number)[0] >= ends[number] for number in behind)

    def _range(self, number: int) -> tuple[int, int]:
        return offset_range(self._offsets, TopicPartition(ALARMS, number), REQUEST_SECONDS)
