"""Random readings of three streams: several shards each, disorder, duplicates, NULLs, and shards that end.

Readings keep to the declared `keys`, `rate` and `max_stall`. None of them is late, unless that is asked for.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

SECOND = 1_000_000
TICK = SECOND // 2
START = 1_700_000_040 * SECOND
STREAMS = ("s", "t", "u")
Row = tuple[str | None, int, float | None, int | None, bool | None, str | None]

TABLE = "key,region,low,factor\np,north,0,1.5\nq,north,1,\nq,south,2,0.5\n,west,0,1\nother,west,2,-2\n"
_RATE = 6  # of a key in any second
_SCHEMA = {
    "k": pa.string(),
    "ts": pa.int64(),
    "x": pa.float64(),
    "n": pa.int64(),
    "ok": pa.bool_(),
    "w": pa.string(),
}
NAMES = tuple(_SCHEMA)


@dataclass
class Shard:
    """One shard: its rows in order of arrival, the tick in which each arrives, and the tick of its end."""

    name: str
    stream: str
    rows: list[Row] = field(default_factory=list)
    arrivals: list[int] = field(default_factory=list)
    end: int = 0


@dataclass(frozen=True)
class _Declared:
    """The options of a stream, in ticks."""

    delay: int
    stall: int
    rate: bool


class RandomReadings:
    """Readings of some streams. `steady`: the readings of a key come through one shard. `apart`: no two
    readings of a key have the same time. `late`: some readings are late.
    """

    def __init__(
        self,
        r: random.Random,
        streams: Sequence[str],
        *,
        steady: bool,
        apart: bool,
        late: bool = False,
    ) -> None:
        self.random, self.steady, self.apart, self.late = r, steady, apart, late
        self.ticks = r.choice((16, 30, 50))
        rate = r.random() < 0.75
        self.declared = {
            name: _Declared(r.choice((0, 1, 4)), r.choice((4, 4, 8, 20)), rate) for name in streams
        }
        self.shards = [shard for name in streams for shard in self._shards(name)]

    @property
    def statements(self) -> str:
        """CREATE STREAM of all streams."""
        made = []
        for name, one in self.declared.items():
            options = [f"max_stall = '{one.stall * TICK} us'", "max_ahead = '0'"]
            if one.rate:
                keys, most = self._densest(self.rows[name])
                options += [f"keys = {keys}", f"rate = '{most}/s'"]
            made.append(
                f"CREATE STREAM {name} (k VARCHAR KEY, ts TIMESTAMP NOT NULL,"
                " x DOUBLE CHECK (x BETWEEN -8 AND 8), n INT CHECK (n BETWEEN 0 AND 3),"
                " ok BOOLEAN, w VARCHAR,"
                f" WATERMARK FOR ts AS ts - INTERVAL '{one.delay * TICK} us') WITH ({', '.join(options)});"
            )
        return "\n".join(made)

    @cached_property
    def rows(self) -> dict[str, list[Row]]:
        """All rows of each stream, shard by shard."""
        return {
            name: [row for shard in self.shards if shard.stream == name for row in shard.rows]
            for name in self.declared
        }

    @staticmethod
    def _densest(rows: list[Row]) -> tuple[int, int]:
        """The number of keys, and the most readings of one key in a second."""
        at = Counter((row[0], row[1]) for row in rows)
        spans = (sum(at[key, ts + i * TICK] for i in range(SECOND // TICK)) for key, ts in at)
        return max(1, len({row[0] for row in rows})), max(spans, default=1)

    def tables(self) -> dict[str, pa.Table]:
        """The rows of each stream for DuckDB, with their numbers as `_row`."""
        made = {}
        for name, rows in self.rows.items():
            columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in NAMES]
            arrays = [pa.array(one, kind) for one, kind in zip(columns, _SCHEMA.values(), strict=True)]
            made[name] = pa.table([*arrays, pa.array(range(len(rows)), pa.int64())], [*NAMES, "_row"])
        return made

    def _shards(self, stream: str) -> list[Shard]:
        r, declared = self.random, self.declared[stream]
        count = r.choice((1, 1, 2, 3))
        keys: list[str | None] = ["p", "q", None] if r.random() < 0.3 else ["p", "q"]
        made = [Shard(f"{stream}:e/{number}", stream) for number in range(count)]
        own = [keys[number::count] if self.steady else keys for number in range(count)]
        taken: Counter[tuple[str | None, int]] = Counter()
        often = r.choice((0.3, 0.6, 0.9))
        for shard, mine in zip(made, own, strict=True):
            shard.end = self.ticks if r.random() < 0.7 else r.randint(1, self.ticks)
            silent = 0
            for tick in range(shard.end):
                silent += 1
                # Batches may reach the joiner late by as much again.
                due = silent >= declared.stall // 2 - 1
                if not mine or (r.random() > often and not due):
                    continue
                for _ in range(r.choice((1, 1, 1, 2))):
                    row = self._row(shard, tick, mine, taken, declared.delay)
                    if row is not None:
                        shard.rows.append(row)
                        shard.arrivals.append(tick)
                        silent = 0
                if due and silent:
                    shard.end = tick  # no key has room for another reading
                    break
            shard.end = shard.end if mine else 0
        return made

    def _row(
        self,
        shard: Shard,
        tick: int,
        keys: list[str | None],
        taken: Counter[tuple[str | None, int]],
        delay: int,
    ) -> Row | None:
        """A row that arrives in this tick; None if its key has no room for it in the declared rate."""
        r = self.random
        behind = tick - (r.randint(0, delay) if r.random() < 0.4 else 0)
        if self.late and r.random() < 0.1:
            behind -= delay + r.randint(1, 6)
        key = r.choice(keys)
        spans = ((behind - 1, behind), (behind, behind + 1))
        if any(sum(taken[key, at] for at in span) >= _RATE for span in spans):
            return None
        if self.apart and taken[key, behind]:
            return None
        taken[key, behind] += 1
        if not self.apart and shard.rows and r.random() < 0.05:
            again = shard.rows[-1]
            if again[:2] == (key, START + behind * TICK):
                return again
        return (
            key,
            START + behind * TICK,
            r.choice((None, *(r.randint(-32, 32) / 4 for _ in range(12)))),
            r.choice((None, 0, 1, 1, 2, 2, 3, 3)),
            r.choice((None, True, True, True, False, False)),
            r.choice((None, "a", "B", "", "it's", "ab")),
        )
