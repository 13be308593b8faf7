"""The oracle: the full join over all readings, and what of it was promised.

A shard promises from its acknowledged activation on; not what it lost as it was declared gone, and not what
came behind the frontier at which it was listed. Of a definition that was replaced it promises the
combinations with a reading from before it took up the successor's plan; those of which every record has that
plan or a later one count for the successor alone. A missed combination is made good by an alarm of the same
definition and key whose readings lie within the omission interval of its own.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict

from tests.model.readings import Alert, Reading
from tests.model.world import NEVER, World

Broken = tuple[str, str]


class Promises:
    """From when on each shard keeps what for which definition."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._acks: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for ack in world.acks:
            if ack.state != "waiting":
                self._acks[ack.shard].append((ack.plan, ack.activation))
        self._lost: dict[tuple[str, str, int], list[tuple[float, int | None, dict[int, int], float]]]
        self._lost = defaultdict(list)
        longest = max((alert.interval for alert in world.every.values()), default=0)
        for joiner in world.joiners:
            listed: dict[tuple[str, str], list[int]] = defaultdict(list)
            for shard, topic, version in sorted(joiner.included):
                listed[shard, topic].append(version)
            for (shard, topic), versions in listed.items():
                # Before it was first listed it may be behind the frontier.
                lost = self._lost[shard, topic, joiner.number]
                lost.append((-math.inf, 0, {}, joiner.included[shard, topic, versions[0]]))
            for low in world.lows:
                topic, partition = low.place
                if partition == joiner.number:
                    # From its last progress on, until its next listing is active.
                    later = [n for n in listed[low.shard, topic] if n > low.version]
                    back = later[0] if later else None
                    since = joiner.included[low.shard, topic, back] if back is not None else math.inf
                    lowest = low.progress - longest if low.progress > NEVER else -math.inf
                    self._lost[low.shard, topic, partition].append((lowest, back, low.had, since))

    def active(self, shard: str, version: int, alert: Alert | None = None) -> float:
        """From which event time on the shard obeys the version, and a plan with the definition."""
        return min(
            (
                at
                for plan, at in self._acks[shard]
                if plan >= version
                and (alert is None or (alert.name, alert.version) in self._world.history[plan])
            ),
            default=math.inf,
        )

    def past(self, reading: Reading, version: int, alert: Alert | None = None) -> bool:
        """True if the shard read it after it had taken up the version, in a plan with the definition."""
        begun = self._world.durable[reading.shard].begun
        plans = [
            plan
            for plan in begun
            if plan >= version and (alert is None or (alert.name, alert.version) in self._world.history[plan])
        ]
        return bool(plans) and reading.offset >= begun[min(plans)]

    def kept(self, alert: Alert, reading: Reading) -> bool:
        """True if the definition may count on the reading."""
        key = getattr(reading, alert.by)
        if key is None or reading.late or not self._world.accepts(reading):
            return False
        # Where the stream began anew, what was read before is lost; all of the rest counts for definitions
        # that began with it, since their activation can only be a guess.
        begun = {n: offset for (shard, n), offset in self._world.begun.items() if shard == reading.shard}
        if any(reading.offset < offset for n, offset in begun.items() if n <= alert.version):
            return False
        active = self.active(reading.shard, alert.version, alert)
        if alert.version in begun and active < math.inf:
            active = -math.inf
        if reading.t < active and not self.past(reading, alert.version, alert):
            return False
        stream = self._world.shards[reading.shard].stream
        topics = self._world.topics_of[alert.name, alert.version, stream]
        partition = self._world.inputs.partition(key)
        return all(
            reading.t < low
            or had.get(reading.number, 0) >= alert.version
            or (back is not None and reading.t >= max(since, self.active(reading.shard, back, alert)))
            for topic in topics
            for low, back, had, since in self._lost[reading.shard, topic, partition]
        )


def judge(world: World) -> list[Broken]:
    """What is wrong with the alarms."""
    promises = Promises(world)
    oldest: dict[int, int] = {}
    for log in world.topics.values():
        for heard in log.heard:
            if heard.kind == "tuple":
                oldest[heard.number] = min(heard.version, oldest.get(heard.number, heard.version))
    raised: dict[Alert, list[tuple[Reading, Reading]]] = defaultdict(list)
    bad: list[Broken] = []
    for key, *numbers in world.alarms:
        a, b = (world.inputs.by_number[number] for number in numbers)
        alert = world.every.get(key)
        if alert is None or not alert.raises(a, b) or (_stream(world, a), _stream(world, b)) != alert.streams:
            bad.append(("EXTRA", f"{key} {a} {b}"))
        elif min(oldest[number] for number in numbers) >= world.replaced.get(alert, math.inf):
            bad.append(("OLD", f"{key} {a} {b}"))
        else:
            raised[alert].append((a, b))
    seen: Counter[str] = world.seen
    seen["alarms"] += len(world.alarms)
    for alert in world.every.values():
        if alert in world.ended:
            continue
        successor = world.replaced.get(alert)
        left, right = (
            [
                reading
                for shard in world.shards.values()
                if shard.stream == stream
                for reading in shard.log
                if promises.kept(alert, reading)
            ]
            for stream in alert.streams
        )
        for a in left:
            for b in right:
                if not alert.raises(a, b):
                    continue
                if successor is not None and all(promises.past(x, successor) for x in (a, b)):
                    continue  # both are the new definition's
                seen["promised"] += 1
                if not any(
                    getattr(x, alert.by) == getattr(a, alert.by)
                    and abs(x.t - a.t) <= alert.interval
                    and abs(y.t - b.t) <= alert.interval
                    for x, y in raised[alert]
                ):
                    bad.append(("MISS", f"{alert.name}@{alert.version} {a} {b}"))
    return bad


def _stream(world: World, reading: Reading) -> str:
    return world.shards[reading.shard].stream
