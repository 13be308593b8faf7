"""Inputs and expected outputs of the model: readings, shards, and alerts with their meaning.

The alerts are also written as SQL. Times are microseconds. This module uses no code of the product.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

# Two keys for each of two partitions: what Kafka's partitioner makes of `["a"]` and so on.
PARTITION_OF_TWO = {"a": 1, "b": 1, "e": 0, "f": 0}

# The event time of a reading from the future, which no clock allows: the year 2100.
FAR = 4_102_444_800_000_000

# The CHECK of `v` and `u` at first: from 0 to this.
WIDEST = 9

UNITS = {1: "MICROSECOND", 1_000_000: "SECOND"}


@dataclass(eq=False, slots=True)
class Reading:
    """One reading. `k` and `h` may each be a partition key, `g` a further equality, `f` a filter; `number` is
    its own in the whole run; `late`: behind its shard's watermark, or from the future; `w`: its digit where
    it is counted.
    """

    shard: str
    offset: int
    number: int
    t: int
    k: str | None
    h: str | None
    v: int
    u: int
    f: bool
    g: int
    late: bool
    w: int = 0

    def __repr__(self) -> str:
        return f"{self.shard}#{self.offset}({self.number}: t={self.t} k={self.k} v={self.v})"


@dataclass(eq=False)
class Shard:
    """A source's shard: its log, of which `available` can be read. Kinds: `kafka` can move between edges,
    `journal` belongs to one, `file` as well and ends.
    """

    name: str
    stream: str
    kind: str
    log: list[Reading]
    available: int = 0
    swallows: bool = False  # its edges are of a release that takes readings from the future


@dataclass(frozen=True)
class Alert:
    """A definition of an alert, made by plan `version`: lo <= a.t - b.t <= hi, the same key `by`, and
    a + b > theta (`sum`) or |a - b| > theta (`diff`).
    """

    name: str
    version: int
    left: str
    right: str
    lo: int
    hi: int
    filtered: tuple[bool, bool]
    values: tuple[str, str]
    kind: str
    theta: int
    grouped: bool
    by: str
    max_delay: int | None
    unit: int
    limits: tuple[tuple[str, int], ...] = ()  # the greatest `v` of its streams, by stream

    @property
    def interval(self) -> int:
        """How far apart two readings may be of which one stands for the other."""
        return self.hi - self.lo

    @property
    def streams(self) -> tuple[str, str]:
        return self.left, self.right

    def raises(self, a: Reading, b: Reading) -> bool:
        """True if the two raise an alarm."""
        if getattr(a, self.by) != getattr(b, self.by) or (self.grouped and a.g != b.g):
            return False
        if not self.lo <= a.t - b.t <= self.hi:
            return False
        if (self.filtered[0] and not a.f) or (self.filtered[1] and not b.f):
            return False
        if a.v > self.limit(0) or b.v > self.limit(1):
            return False
        x, y = getattr(a, self.values[0]), getattr(b, self.values[1])
        return bool(x + y > self.theta if self.kind == "sum" else abs(x - y) > self.theta)

    def limit(self, side: int) -> int:
        """The greatest `v` of one side: the definition ignores readings outside of the CHECK that was in
        force when it was made, if it reads the column.
        """
        known = dict(self.limits).get(self.streams[side], WIDEST)
        return known if self.values[side] == "v" else WIDEST

    def sql(self, replace: bool) -> str:
        """The statement that makes it."""
        x, y = f"a.{self.values[0]}", f"b.{self.values[1]}"
        parts = [f"{x} + {y} > {self.theta}" if self.kind == "sum" else f"ABS({x} - {y}) > {self.theta}"]
        parts += [f"{alias}.f" for alias, wanted in zip("ab", self.filtered, strict=True) if wanted]
        parts += ["a.g = b.g"] if self.grouped else []
        low, high = (f"INTERVAL '{at // self.unit}' {UNITS[self.unit]}" for at in (self.lo, self.hi))
        options = "" if self.max_delay is None else f"WITH (max_delay = '{self.max_delay} us') "
        return (
            f"CREATE {'OR REPLACE ' if replace else ''}ALERT {self.name} {options}AS "
            f"SELECT a.n AS an, b.n AS bn FROM {self.left} a JOIN {self.right} b "
            f"ON a.{self.by} = b.{self.by} AND a.ts - b.ts BETWEEN {low} AND {high} "
            f"WHERE {' AND '.join(parts)};"
        )


@dataclass
class Inputs:
    """What one schedule is played on."""

    r: random.Random
    partitions: int
    streams: list[str]
    unit: int
    delay: int  # of every stream's watermark
    top: int  # greatest value
    keys: list[str]
    plain: bool  # no filters, further values or keys
    two_keys: bool  # alerts by either of two keys: a stream has two topics
    max_delay: int | None
    by_number: dict[int, Reading] = field(default_factory=dict)

    @staticmethod
    def draw(r: random.Random) -> Inputs:
        partitions = r.choice((1, 1, 2))
        unit = r.choice(list(UNITS))
        keys = r.choice((["a"], ["a", "b"])) if partitions == 1 else r.choice((["a", "e"], ["a", "e", "f"]))
        plain = r.random() < 0.5
        return Inputs(
            r,
            partitions,
            ["s0", "s1", "s2"][: r.choice((2, 2, 3))],
            unit,
            r.randint(0, 3) * unit,
            r.choice((3, 9)),
            keys,
            plain,
            not plain and r.random() < 0.4,
            r.choice((None, None, r.randint(0, 30))),
        )

    def partition(self, key: str | None) -> int:
        """The output partition of a key."""
        return PARTITION_OF_TWO[key] if key is not None and self.partitions == 2 else 0

    def log(self, shard: str) -> list[Reading]:
        """A shard's readings: some out of order, a few late."""
        r, out, latest, base = self.r, [], -1, self.r.randint(0, 4)
        slack = self.delay // self.unit
        for offset in range(r.randint(4, 20)):
            base += r.choice((0, 1, 1, 1, 2, 3))
            late = r.random() < 0.05
            at = max(0, base - r.randint(0, slack) - (slack + r.randint(1, 6) if late else 0))
            behind = at * self.unit < latest - self.delay
            out.append(self.reading(shard, offset, at * self.unit, r.choice(self.keys), behind))
            latest = max(latest, at * self.unit)
        return out

    def add_future(self, r: random.Random, shard: Shard) -> None:
        """Put a reading from the future, drawn from `r`, among those of a shard."""
        at, others = r.randint(0, len(shard.log) // 2), self.r
        self.r = r
        shard.log.insert(at, self.reading(shard.name, at, FAR, r.choice(self.keys), late=True))
        self.r = others
        for offset, reading in enumerate(shard.log):
            reading.offset = offset

    def reading(self, shard: str, offset: int, t: int, key: str | None, late: bool = False) -> Reading:
        """One more reading. Without a key it raises nothing, and only moves the watermark."""
        r = self.r
        other = None if key is None else r.choice(self.keys)
        v, u = r.randint(0, self.top), r.randint(0, self.top)
        made = Reading(
            shard, offset, len(self.by_number), t, key, other, v, u, r.random() < 0.6, r.randint(0, 1), late
        )
        self.by_number[made.number] = made
        return made

    def alert(self, name: str, version: int, old: Alert | None) -> Alert:
        """A new alert, or a new definition of an old one on the same streams."""
        r, top = self.r, self.top
        rich = not self.plain and r.random() < 0.5
        lo = r.randint(-6, 2)
        kind = r.choice(("sum", "sum", "diff"))
        if old is not None:
            left, right = old.streams
        elif not self.plain and r.random() < 0.1:
            left = right = r.choice(self.streams)
        else:
            left, right = r.sample(self.streams, 2)
        return Alert(
            name,
            version,
            left,
            right,
            lo * self.unit,
            (lo + r.choice((0, 1, 2, 3, 4, 6, 8))) * self.unit,
            (rich and r.random() < 0.4, rich and r.random() < 0.4),
            (r.choice("vvu"), r.choice("vvu")) if rich else ("v", "v"),
            kind,
            # Few, since each condition is proved anew.
            top * r.choice((4, 5, 6)) // 4 if kind == "sum" else top * r.choice((2, 3)) // 3 - 1,
            rich and r.random() < 0.3,
            r.choice("kh") if self.two_keys else "k",
            self.max_delay,
            self.unit,
        )

    def streams_sql(self, max_stall: int, limits: Mapping[str, int]) -> str:
        """The statements that declare the streams. `limits`: the greatest `v` of each."""
        return "".join(
            f"CREATE STREAM {name} (k VARCHAR KEY, ts TIMESTAMP, h VARCHAR,"
            f" v DOUBLE CHECK (v BETWEEN 0 AND {limits[name]}), u DOUBLE CHECK (u BETWEEN 0 AND 9),"
            " f BOOLEAN, g BIGINT,"
            f" n BIGINT, WATERMARK FOR ts AS ts - INTERVAL '{self.delay}' MICROSECOND)"
            f" WITH (keys = 10, rate = '1000/s', max_stall = '{max_stall} us');"
            for name in self.streams
        )
