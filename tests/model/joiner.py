"""The joiner's group of one output partition, with nothing between batches but what was checkpointed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np
import orjson
from tests.fixtures.dict_state import DictState
from tests.model import counts

from tamis.messaging.records import END_OF_TIME, Frontier
from tamis.messaging.topics import PLANS, stream_of
from tamis.plan.model import Plan
from tamis_joiner.core.frontiers import Frontiers
from tamis_joiner.core.group import Group
from tamis_joiner.core.records.envelopes import Records

if TYPE_CHECKING:
    from tests.model.world import World

Listing = tuple[str, str, int]  # shard, topic, the version that lists it


class Partition:
    """One output partition: state and offsets as of the last batch that succeeded."""

    def __init__(self, world: World, number: int) -> None:
        self.world, self.number = world, number
        self.state: dict[str, bytes] = {}
        self.offsets: Counter[str] = Counter()
        # The frontier of a topic as a shard was listed on it: what lies before it may find its partners gone.
        self.included: dict[Listing, float] = {}
        self._memories: list[Group] = []
        self._slow: dict[str, float] = {}  # how often a log is passed over
        self._batches = 0
        self._failed: dict[str, int] | None = None  # how many records of each log the batch had that failed

    def batch(self, calm: bool) -> None:
        """Take some of what there is; unless `calm` it may fail with some of its records written."""
        world, r = self.world, self.world.r
        offsets, found = Counter(self.offsets), []
        for name, values in self._logs():
            left = len(values) - offsets[name]
            slow = self._slow.setdefault(name, r.choice((0, 0, 0, 0, 0.9)))
            count = left if calm else r.choice((0, left, r.randint(0, left))) if r.random() > slow else 0
            if self._failed is not None:
                count = self._failed.get(name, 0)
            if count:
                first = offsets[name]
                numbers = np.arange(first, first + count)
                arrived = np.full(count, world.now)
                found.append(Records(name, self.number, values[first : first + count], numbers, arrived))
                offsets[name] += count
        if not found:
            return  # Spark runs no batch without records
        state, included = DictState(self.state), dict(self.included)
        group = self._load(state)
        with self._noting(included):
            plans = [some for some in found if some.topic == PLANS]
            streams = [some for some in found if some.topic != PLANS]
            self._batches += 1
            output = group.process(plans, streams, state, now=world.now, token=f"{self._batches:x}")
        self._memories = [*self._memories[-1:], group]
        fails = not calm and r.random() < 0.15
        alarms = [orjson.loads(value) for _, value in output.alarms]
        said = [f"{some.topic}:{len(some.values)}" for some in found]
        world.say("joiner", self.number, "fails" if fails else "", *said, "alarms", len(alarms))
        if output.dead_letters:
            world.broken.append(("DEAD", f"{output.dead_letters[0]}"))
        # Of a batch that fails the sink has written any part.
        world.take_alarms([alarm for alarm in alarms if not fails or r.random() < 0.5])
        if output.frontier is not None and (not fails or r.random() < 0.5):
            world.take_frontier(Frontier.from_bytes(output.frontier))
        # Spark writes down what a batch takes before it runs, so it comes again as it was; joins need less.
        self._failed = (
            {some.topic: len(some.values) for some in found}
            if fails and (world.counts or world.window_sums)
            else None
        )
        if fails:
            world.seen["joiner crashes"] += 1
        else:
            self.state, self.offsets, self.included = state.blobs, offsets, included

    def outcome(self) -> Frontier:
        """The frontier record of the state as it is."""
        state = DictState(self.state)
        output = self._load(state, remember=False).process([], [], state, now=self.world.now, token="end")
        assert output.frontier is not None
        return Frontier.from_bytes(output.frontier)

    def _load(self, state: DictState, remember: bool = True) -> Group:
        """From bytes alone, or with what the process remembers of some attempt."""
        r, memory = self.world.r, None
        if remember and self._memories and r.random() < 0.5:
            memory = self._memories.pop(r.randrange(len(self._memories)))
        return Group.load(self.number, self.world.inputs.partitions, state, memory)

    def _at_distance(self, stream: str, max_stall: int) -> float:
        """How far the frontier of a stream that never had a shard may be at most: `max_stall` behind the
        newest that the other streams have sent.
        """
        times = [
            heard.time
            for (topic, partition), log in self.world.topics.items()
            if partition == self.number and stream_of(topic) not in (stream, counts.STREAM)
            for heard in log.heard
            if heard.kind != "final" and heard.time < END_OF_TIME
        ]
        return max(times, default=-math.inf) - max_stall

    def _logs(self) -> list[tuple[str, list[bytes]]]:
        world = self.world
        return [(PLANS, world.plans[self.number])] + [
            (topic, log.values) for (topic, p), log in sorted(world.topics.items()) if p == self.number
        ]

    @contextmanager
    def _noting(self, included: dict[Listing, float]) -> Iterator[None]:
        """Note the frontiers at which shards are listed."""
        world, number, obey = self.world, self.number, Frontiers.obey

        def noting(frontiers: Frontiers, plan: Plan) -> None:
            listed = {plan.shard_streams[shard] for shard in plan.since}
            for stream in plan.streams:
                for topic in stream.topics:
                    published = world.published.get((topic.name, number), -1)
                    reached: float = max(frontiers.of(topic.name), published)
                    if stream.time and not any(name == topic.name for _, name, _ in included):
                        farthest = self._at_distance(stream.name, stream.max_stall)
                        later = stream.shards_of in listed and farthest > -math.inf
                        world.seen["first shards later"] += later
                        reached = min(reached, farthest)
                    for shard, version in plan.since.items():
                        if plan.shard_streams[shard] == stream.shards_of:
                            included.setdefault((shard, topic.name, version), reached)
            obey(frontiers, plan)

        replacement: Any = noting
        with patch.object(Frontiers, "obey", replacement):
            yield
