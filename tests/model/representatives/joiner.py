"""Output partitions of the joiner. Batches fail and are repeated, and states are lost."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import numpy as np
import orjson
from tests.fixtures.dict_state import DictState
from tests.model.representatives.shard import Logs

from tamis.messaging.records import Frontier
from tamis.messaging.topics import PLANS
from tamis_joiner.core.group import Group
from tamis_joiner.core.records.envelopes import Records

Definition = tuple[str, int]  # alert and version
Row = tuple[object, ...]


class Partition:
    """One output partition: state and offsets as of the last batch that succeeded."""

    def __init__(self, r: random.Random, number: int, partitions: int) -> None:
        self._r, self._number, self._partitions = r, number, partitions
        self._state: dict[str, bytes] = {}
        self.offsets: Counter[str] = Counter()
        self._failed: dict[str, tuple[int, int]] | None = None  # first and end of what the failed batch had
        self._batches = 0

    @property
    def may_lose(self) -> bool:
        """False while a batch must be repeated."""
        return self._failed is None

    def caught_up(self, plans: list[bytes], logs: Logs) -> bool:
        """True if all plans and records were taken."""
        read = [
            (PLANS, len(plans)),
            *((t, len(log.values)) for (t, p), log in logs.items() if p == self._number),
        ]
        return all(self.offsets[topic] >= end for topic, end in read)

    def batch(
        self, plans: list[bytes], logs: Logs, now: int, *, calm: bool
    ) -> tuple[list[tuple[Definition, Row]], Frontier | None]:
        """Take some of what there is; returns the rows and the frontier record that reach Kafka."""
        spans = self._failed or dict(self._spans(plans, logs, calm=calm))
        found = []
        for topic, (first, end) in spans.items():
            values = (plans if topic == PLANS else logs[topic, self._number].values)[first:end]
            arrived = np.full(end - first, now)
            found.append(Records(topic, self._number, values, np.arange(first, end), arrived))
        if not found:
            return [], None
        self._batches += 1
        state, r = DictState(self._state), self._r
        output = Group.load(self._number, self._partitions, state).process(
            [one for one in found if one.topic == PLANS],
            [one for one in found if one.topic != PLANS],
            state,
            now=now,
            token=f"{self._batches:x}",
        )
        assert not output.dead_letters, output.dead_letters[0]
        fails = not calm and r.random() < 0.15
        self._failed = spans if fails else None
        if not fails:
            self._state = state.blobs
            self.offsets.update({topic: end - self.offsets[topic] for topic, (_, end) in spans.items()})
        rows = []
        for _, value in output.alarms:
            alarm = orjson.loads(value)
            if not fails or r.random() < 0.5:
                rows.append(((alarm["alert"], alarm["definition"]), tuple(alarm["row"].values())))
        told = output.frontier is not None and (not fails or r.random() < 0.5)
        return rows, Frontier.from_bytes(output.frontier) if told and output.frontier else None

    def _spans(self, plans: list[bytes], logs: Logs, *, calm: bool) -> Iterator[tuple[str, tuple[int, int]]]:
        r = self._r
        ends = {PLANS: (0, len(plans))} | {
            topic: (log.first, len(log.values))
            for (topic, partition), log in sorted(logs.items())
            if partition == self._number
        }
        for topic, (least, last) in ends.items():
            first = max(self.offsets[topic], least)
            end = last if calm else r.choice((first, last, r.randint(first, max(first, last))))
            if end > first:
                yield topic, (first, end)

    def lose(self, plans: int) -> None:
        """Lose the state: all topics are read from their oldest record. `plans`: those that are deleted."""
        self._state, self._failed = {}, None
        self.offsets = Counter({PLANS: plans})
