"""Alerts that begin with the history of their streams, under random schedules: the rows are those of DuckDB.

The registry, a shard of each stream at an edge, and the joiner are the real ones. The shards read logs, from
their beginning for backfill streams. New readings, restarts of the edge and the announcements of the shards
come in any order.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import duckdb
import numpy as np
import orjson
import pytest
from tests.fixtures.in_process_fleet import InProcessFleet, InProcessRegistry
from tests.oracle.random_cases import SEED, also_long, cases
from tests.rows_for_duckdb import insert

from tamis.declarations.backfill import Backfill, shard_of
from tamis.messaging.records import Ack
from tamis.telemetry.metrics import Metrics
from tamis_edge.shards.intake import Intake
from tamis_edge.source_fields import FieldMap
from tamis_edge.sources.base import Payloads

SECOND = 1_000_000
START = 1_700_000_000 * SECOND
WINDOW = 10 * SECOND
STREAMS = "".join(
    f"CREATE STREAM {name} (k INT KEY, ts TIMESTAMP NOT NULL, v DOUBLE CHECK (v BETWEEN 0 AND 100), "
    "WATERMARK FOR ts AS ts - INTERVAL '2' SECOND) WITH (max_stall = '20 seconds');"
    for name in ("a", "b")
)
# No tuple is omitted, so that all rows can be compared.
JOIN = "FROM a JOIN b ON a.k = b.k AND a.ts BETWEEN b.ts - {0} AND b.ts + {0} WHERE MOD(a.v + b.v, 20) < 1"
NO_ANSWER = """FROM a WHERE a.v > 80 AND NOT EXISTS (
  SELECT 1 FROM b WHERE b.k = a.k AND b.v < 50 AND b.ts BETWEEN a.ts AND a.ts + {0})"""
COUNT = "SELECT k, count(*) AS n, max(v) AS most FROM {0} GROUP BY k, {1}"
Row = tuple[Any, ...]


@dataclass(frozen=True)
class Source:
    """What the intake must know of a shard's source."""

    stream: str
    topic: str = "log"
    partition: int = 0
    replayed: bool = False
    fields: FieldMap = field(default_factory=FieldMap)

    @property
    def name(self) -> str:
        return f"{self.stream}:e/http"


class Logs:
    """A log of readings for each stream; the times of each are at most two seconds out of order."""

    def __init__(self, rng: random.Random) -> None:
        self._random = rng
        self.rows: dict[str, list[Row]] = {"a": [], "b": []}

    def extend(self, stream: str, seconds: float) -> None:
        """Readings of so many further seconds."""
        rows, rng = self.rows[stream], self._random
        at = max((ts for _, ts, _ in rows), default=START)
        end = at + int(seconds * SECOND)
        while at < end:
            at += rng.randint(1, 2 * SECOND)
            rows.append(
                (rng.randint(0, 1), max(at - rng.randint(0, SECOND), START), float(rng.randint(0, 100)))
            )


class Fleet(InProcessFleet):
    """A fleet whose shards read logs."""

    def __init__(self, plan: Any, logs: Logs) -> None:
        super().__init__(plan)
        self.logs = logs
        self.intakes: dict[str, Intake] = {}

    def read(self, stream: str, limit: int, now: int) -> bool:
        """Read at most `limit` readings of a backfill stream's log; False if there are none."""
        found, run = Backfill.named(stream), self.run(stream, now)
        assert found is not None
        first = run.next_offset
        rows = self.logs.rows[found.stream][first : first + limit]
        if not rows:
            return False
        intake = self.intakes.setdefault(stream, Intake(Source(stream), "e", Metrics("edge")))  # type: ignore[arg-type]
        of = self.plan.stream(stream)
        assert of is not None
        intake.decode_for(self.plan, of, self.plan.version)
        payloads = [orjson.dumps(dict(zip(("k", "ts", "v"), row, strict=True))) for row in rows]
        offsets = np.arange(first, first + len(rows))
        intake.take(run, Payloads(offsets, np.full(len(rows), now), payloads), stream, now)
        self.settle(stream, now)
        return True


def rows_of(fleet: InProcessFleet) -> dict[str, Counter[Row]]:
    """The rows of the alarms by alert, each identity once."""
    found: dict[str, Counter[Row]] = {name: Counter() for name in ("apart", "unanswered", "counted")}
    for (alert, _), row in fleet.rows.items():
        found[alert][row] += 1
    return found


def wanted(logs: Logs, since: int) -> dict[str, Counter[Row]]:
    """The rows of each alert by DuckDB over the whole logs, as far as event time has decided them."""
    reached = {name: max(ts for _, ts, _ in rows) - 2 * SECOND for name, rows in logs.rows.items()}
    with duckdb.connect() as base:
        for name, rows in logs.rows.items():
            base.execute(f"CREATE TABLE {name} (k INT, ts BIGINT, v DOUBLE)")
            insert(base, name, rows)
        queries = {
            "apart": f"SELECT a.k, a.ts, b.ts AS other {JOIN.format(3 * SECOND)}",
            "unanswered": f"SELECT a.k, a.ts {NO_ANSWER.format(4 * SECOND)} "
            f"AND a.ts + {4 * SECOND} < {reached['b']}",
            "counted": COUNT.format(
                f"(FROM a WHERE ts >= {since} AND ts // {WINDOW} * {WINDOW} + {WINDOW} <= {reached['a']})",
                f"ts // {WINDOW}",
            ),
        }
        return {name: Counter(map(tuple, base.execute(sql).fetchall())) for name, sql in queries.items()}


def run_case(seed: int) -> None:
    rng = random.Random(seed)
    logs = Logs(rng)
    for name in logs.rows:
        logs.extend(name, rng.choice((0.5, 30, 90)))
    since = START + rng.randint(0, 60) * SECOND
    now = START + 10_000 * SECOND
    registry = InProcessRegistry(STREAMS, now - 60 * SECOND)
    for name in logs.rows:
        registry.registry.hear(
            Ack(f"{name}:e/http", name, "e", registry.plan.version, 0, "waiting", now), now
        )
    registry.tick(now)
    fleet = Fleet(registry.plan, logs)
    registry.apply(
        f"CREATE ALERT apart WITH (from = 'earliest') AS SELECT a.k, a.ts, b.ts AS other "
        f"{JOIN.format('''INTERVAL '3' SECOND''')};"
        f"CREATE ALERT unanswered WITH (from = 'earliest') AS SELECT a.k, a.ts "
        f"{NO_ANSWER.format('''INTERVAL '4' SECOND''')};"
        f"CREATE ALERT counted WITH (from = '{np.datetime64(since, 'us')}Z') AS "
        f"{COUNT.format('''TUMBLE(a, ts, INTERVAL '10' SECOND)''', 'window_start')};",
        now,
    )
    fleet.obey(registry.plan, now)
    streams = [stream.name for stream in registry.plan.streams if stream.origin]
    assert len(streams) == 3
    announce = rng.sample(streams, len(streams))
    listed = False
    for _ in range(40):
        now += rng.randint(1, 1000)
        match rng.randint(0, 5):
            case 0 if announce:
                name = announce.pop()
                shard = shard_of(name, f"{Backfill.named(name).stream}:e/http")  # type: ignore[union-attr]
                registry.registry.hear(Ack(shard, name, "e", registry.plan.version, 0, "waiting", now), now)
                if registry.tick(now) is not None:
                    fleet.obey(registry.plan, now)
            case 1:
                logs.extend(rng.choice(("a", "b")), rng.choice((1, 5, 20)))
            case 2:
                fleet.restart()
            case _:
                listed = set(streams) <= set(registry.plan.shard_streams.values())
                some = [name for name in streams if name in registry.plan.shard_streams.values()]
                if some:
                    fleet.read(rng.choice(some), rng.choice((3, 15, 40)), now)
    if not listed:
        return
    # Both streams end at about the same time, so that the one doesn't hold back much of the other.
    least = max(max(ts for _, ts, _ in rows) for rows in logs.rows.values()) + 20 * SECOND
    for name, rows in logs.rows.items():
        logs.extend(name, (least - max(ts for _, ts, _ in rows)) / SECOND)
    while any([fleet.read(name, 50, now) for name in rng.sample(streams, len(streams))]):
        now += 1
    for name in streams:
        fleet.settle(name, now)
    found, expected = rows_of(fleet), wanted(logs, since)
    for alert, counts in expected.items():
        assert found[alert] == counts, (seed, alert, counts - found[alert], found[alert] - counts)


@pytest.mark.parametrize("times", also_long(200))
def test_rows_of_history_and_new_readings(times: int) -> None:
    for case in range(cases(1 / 8000) * times):
        run_case(SEED * 1_000_003 + case)
