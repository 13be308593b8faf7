"""Window aggregates in the schedules: what they ask, and which readings their rows must have.

A reading of the stream is a digit: `w` is 4 to the power of its index, so that each sum says of each reading
how often the row has it. Nothing here is the product's. The rules are those of the protocol of cuts:

(a) of each shard a query counts each reading from its activation on once;
(b) a reading is at most once in a row, and only in rows of its key and of windows that have its time;
(c) a reading that isn't late is in all of its windows.
"""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.model.readings import UNITS, Reading, Shard

if TYPE_CHECKING:
    from tests.model.world import Key, World

STREAM = "w0"
# Readings of one shard: with those of two shards all digits fit into 64 bits.
MOST = 14


@dataclass(frozen=True)
class WindowSum:
    """A definition, made by plan `version`: sums over windows of `width` slides, in units of time."""

    name: str
    version: int
    slide: int
    width: int
    filtered: bool
    unit: int

    @staticmethod
    def draw(r: random.Random, name: str, version: int, unit: int) -> WindowSum:
        return WindowSum(name, version, r.choice((4, 6, 10)), r.choice((1, 1, 2)), r.random() < 0.5, unit)

    def wants(self, reading: Reading) -> bool:
        """True if it counts the reading."""
        return bool(reading.w) and reading.k is not None and (reading.f or not self.filtered)

    def ends(self, time: int) -> list[int]:
        """The ends of all windows that have an event time, microseconds."""
        slide = self.slide * self.unit
        last = time // slide * slide + self.width * slide
        return [last - i * slide for i in range(self.width)]

    def sql(self, replace: bool) -> str:
        """The statement that makes it."""
        create = f"CREATE {'OR REPLACE ' if replace else ''}ALERT {self.name}"
        unit = UNITS[self.unit]
        slide, size = (f"INTERVAL '{n}' {unit}" for n in (self.slide, self.slide * self.width))
        window = (
            f"TUMBLE({STREAM}, ts, {slide})" if self.width == 1 else f"HOP({STREAM}, ts, {slide}, {size})"
        )
        where = "k IN ('a', 'b', 'e', 'f')" + (" AND f" if self.filtered else "")
        return (
            f"{create} WITH (severity = 'v{self.version}') AS SELECT k, window_end, sum(w) AS total "
            f"FROM {window} WHERE {where} GROUP BY k, window_end;"
        )


def stream_sql(delay: int, max_stall: int) -> str:
    """The statement that declares the stream; times are microseconds."""
    return (
        f"CREATE STREAM {STREAM} (k VARCHAR KEY, ts TIMESTAMP, f BOOLEAN, n BIGINT, w BIGINT, "
        f"WATERMARK FOR ts AS ts - INTERVAL '{delay}' MICROSECOND) WITH (max_stall = '{max_stall} us');"
    )


def add_digits(shards: list[Shard]) -> None:
    """Give the first readings of each shard their powers of 4."""
    for i, shard in enumerate(shards):
        for reading in shard.log[:MOST]:
            reading.w = 4 ** (i * MOST + reading.offset)


def judge_windows(world: World) -> list[tuple[str, str]]:
    """What is wrong with the rows."""
    bad: list[tuple[str, str]] = []
    readings = {
        reading.w: reading
        for shard in world.shards.values()
        if shard.stream == STREAM
        for reading in shard.log
        if reading.w
    }
    for key, query in world.window_sums.items():
        bad += _judge(world, key, query, readings)
    return bad


def _judge(
    world: World, key: Key, query: WindowSum, readings: dict[int, Reading]
) -> Iterator[tuple[str, str]]:
    """What is wrong with the rows of one definition."""
    rows: defaultdict[tuple[int, str], Counter[int]] = defaultdict(Counter)
    for alarm in world.rows[key].values():
        row: dict[str, Any] = alarm["row"]
        place = row["window_end"], row["k"]
        if place in rows:
            yield "TWICE", f"{query}: {place} has two rows"
        rows[place] = _digits(row["total"])
    counted: set[int] = set()
    for (end, k), digits in rows.items():
        for digit, times in digits.items():
            reading = readings[digit]
            counted.add(reading.number)
            if times > 1:
                yield "DOUBLED", f"{query}: {reading} {times} times in the row of {end}"
            if reading.k != k or end not in query.ends(reading.t) or not query.wants(reading):
                yield "EXTRA", f"{query}: {reading} in the row of {end} and {k}"
    world.seen["window readings"] += len(counted)
    # A definition that was replaced ends without the rows of windows that are still open.
    last = {partition: math.inf for partition in range(world.inputs.partitions)}
    if key in world.resummed:
        last = dict.fromkeys(last, -math.inf)
        for end, k in rows:
            partition = world.inputs.partition(k)
            last[partition] = max(last[partition], end)
    for reading in _due(world, key, query, readings):
        found = _reached(world, reading)
        missing = [
            end
            for end in query.ends(reading.t)
            if found < end <= last[world.inputs.partition(reading.k)]
            and reading.w not in rows[end, str(reading.k)]
        ]
        if missing:
            yield "MISS", f"{query}: {reading} is not in the rows of {missing}"


def _due(world: World, key: Key, query: WindowSum, readings: dict[int, Reading]) -> Iterator[Reading]:
    """The readings that are in all of their windows: not late, from the activation of their shard on, and of
    shards that were never declared gone.
    """
    gone = {low.shard for low in world.lows}
    if key in world.unsummed:
        return
    successor = world.resummed.get(key)
    for reading in readings.values():
        first = world.taken_up(reading.shard, key)
        last = math.inf if successor is None else world.taken_up(reading.shard, successor)
        lost = reading.shard in gone or world.owner[reading.shard].dead
        if query.wants(reading) and not reading.late and first <= reading.offset < last and not lost:
            world.seen["window readings due"] += 1
            yield reading


def _reached(world: World, reading: Reading) -> float:
    """The frontier of the reading's partition when its shard was listed."""
    joiner = world.joiners[world.inputs.partition(reading.k)]
    times = [time for (shard, _, _), time in joiner.included.items() if shard == reading.shard]
    return max(times, default=-math.inf)


def _digits(total: int) -> Counter[int]:
    """How often each power of 4 is in a sum."""
    digits: Counter[int] = Counter()
    power = 1
    while total:
        total, times = divmod(total, 4)
        if times:
            digits[power] = times
        power *= 4
    return digits
