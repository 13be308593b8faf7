"""Standing queries in the schedules: what they ask, and what their rows must have counted.

A reading of the counted stream is a digit: `w` is 4 to the power of its index, so that a sum says of each
reading how often it was counted. Nothing here is the product's.
"""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.model.readings import Reading

if TYPE_CHECKING:
    from tests.model.world import Key, World

STREAM = "c0"
STREAM_SQL = (
    f"CREATE STREAM {STREAM} (k VARCHAR KEY, f BOOLEAN, n BIGINT, w BIGINT) WITH (max_stall = '%d us');"
)
# Readings of one shard: with those of two shards all digits fit into 64 bits.
MOST = 12


@dataclass(frozen=True)
class Count:
    """A definition, made by plan `version`: `each` gives a row for each tuple, `sum` one for each change of a
    key's sum.
    """

    name: str
    version: int
    kind: str
    filtered: bool

    @staticmethod
    def draw(r: random.Random, name: str, version: int) -> Count:
        return Count(name, version, r.choice(("each", "sum")), r.random() < 0.5)

    def wants(self, reading: Reading) -> bool:
        """True if it counts the reading."""
        return reading.k is not None and (reading.f or not self.filtered)

    def sql(self, replace: bool) -> str:
        """The statement that makes it."""
        create = (
            f"CREATE {'OR REPLACE ' if replace else ''}ALERT {self.name} WITH (severity = 'v{self.version}')"
        )
        where = "k IN ('a', 'b', 'e', 'f')" + (" AND f" if self.filtered else "")
        if self.kind == "each":
            return f"{create} AS SELECT n FROM {STREAM} WHERE {where};"
        return (
            f"{create} AS SELECT k, sum(w) AS total, max(n) AS latest FROM {STREAM} WHERE {where} GROUP BY k;"
        )


def digit(shard: str, offset: int, shards: list[str]) -> int:
    """The power of 4 that stands for a reading; 0 for those that come behind all that is counted."""
    return 4 ** (shards.index(shard) * MOST + offset) if offset < MOST else 0


def judge_counts(world: World) -> list[tuple[str, str]]:
    """What is wrong with the rows."""
    bad: list[tuple[str, str]] = []
    counted: dict[Key, set[int]] = {}
    for key, count in world.counts.items():
        times = _counted(world, count, list(world.rows[key].values()))
        counted[key] = set(times)
        doubled = {number for number, often in times.items() if often > 1}
        if doubled:
            bad.append(("DOUBLED", f"{key} {doubled}"))
    for count in world.counts.values():
        bad += _gaps(world, count, counted)
    world.seen["counted"] += sum(map(len, counted.values()))
    return bad


def _counted(world: World, count: Count, rows: list[dict[str, Any]]) -> Counter[int]:
    """How often each reading was counted, by number."""
    if count.kind == "each":
        return Counter(row["row"]["n"] for row in rows)
    last: dict[str, dict[str, Any]] = {}
    for row in sorted(rows, key=lambda row: row["number"]):
        last[row["row"]["k"]] = row["row"]
    found: Counter[int] = Counter()
    readings = {r.w: r for s in world.shards.values() if s.stream == STREAM for r in s.log if r.w}
    for row in last.values():
        total, power = row["total"], 1
        while total:
            total, often = divmod(total, 4)
            if often:
                found[readings[power].number] += often
            power *= 4
    return found


def _gaps(world: World, count: Count, counted: dict[Key, set[int]]) -> list[tuple[str, str]]:
    """Of each shard and output partition a definition counts all from some place on, at the latest from its
    activation; where it was replaced, its successors count the rest. What was dropped may stop anywhere.
    """
    bad: list[tuple[str, str]] = []
    own = count.name, count.version
    mine = counted[own]
    first, sent = _sent(world, count)
    if extra := {number for number in mine if sent.get(number, 0) < count.version}:
        bad.append(("EXTRA", f"{count}: {extra} was never sent for it"))
    ended, followed = False, set(mine)
    successor = world.recounted.get(own)
    key: Key | None = own
    while key is not None:
        followed |= counted[key]
        ended |= key in world.uncounted
        key = world.recounted.get(key)
    for shard in world.shards.values():
        if shard.stream != STREAM:
            continue
        begins = world.begins(shard.name, count.name, count.version)
        dead = world.owner[shard.name].dead
        done = 0 if dead else world.durable[shard.name].commit.done
        by_partition: dict[int, list[Reading]] = defaultdict(list)
        for reading in shard.log:
            if count.wants(reading):
                by_partition[world.inputs.partition(reading.k)].append(reading)
        for readings in by_partition.values():
            at = [i for i, reading in enumerate(readings) if reading.number in mine]
            if at and at != list(range(at[0], at[-1] + 1)):
                bad.append(("GAP", f"{count} of {shard.name}: {[readings[i].offset for i in at]}"))
            lost = [
                reading.offset
                for reading in readings
                if reading.offset >= begins
                and (reading.offset < done or sent.get(reading.number, 0) >= count.version)
                # What comes first under its successor is for that to count, or not.
                and (successor is None or first.get(reading.number, math.inf) < successor[1])
                and reading.number not in followed
            ]
            if lost and not ended:
                bad.append(("LOST", f"{count} of {shard.name} from {begins}: {lost}"))
    return bad


def _sent(world: World, count: Count) -> tuple[dict[int, int], dict[int, int]]:
    """The readings that came on the definition's topics, with the first plan version that is
    its own or later, and the greatest.
    """
    first: dict[int, int] = {}
    sent: dict[int, int] = {}
    topics = world.topics_of.get((count.name, count.version, STREAM), set())
    for (topic, _), log in world.topics.items():
        if topic in topics:
            for heard in log.heard:
                if heard.kind == "tuple":
                    if heard.version >= count.version:
                        first.setdefault(heard.number, heard.version)
                    sent[heard.number] = max(heard.version, sent.get(heard.number, 0))
    return first, sent
