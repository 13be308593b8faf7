"""Standing queries in a fleet whose edge and joiner are killed: the rows are those of DuckDB.

The rows of `tamis.alarms` are compared, each identity once.
"""

from __future__ import annotations

import csv
import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import orjson
import pytest
from confluent_kafka import Producer
from tests.e2e.one_fleet.conftest import OneFleet
from tests.rows_for_duckdb import insert

from tamis.local.scrape import Scrape
from tamis.messaging.topic_reader import TopicReader
from tamis.messaging.topics import ALARMS
from tamis.settings import KafkaSettings

SECONDS = 120.0
READINGS = "readings.bids"
WINDOW = 10_000_000
GAP = 1_000_000
START = 1_700_000_000_000_000
STREAMS = """
CREATE STREAM bids (item INT KEY, price BIGINT, lot BIGINT);
CREATE STREAM asks (item INT KEY, price BIGINT);
CREATE STREAM quotes (
  item INT KEY, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH (keys = 11, rate = '1000/s', max_stall = '1 hour');
CREATE STREAM levels (
  item INT KEY, level BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH (keys = 11, rate = '1000/s', max_stall = '1 hour');
CREATE STREAM visitors (
  item INT KEY, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH (keys = 11, rate = '1000/s', max_stall = '1 hour');
CREATE TABLE lots (id INT, grade BIGINT) WITH (path = '{lots}');
"""
QUERIES = {
    # A join with DISTINCT, partitioned by item.
    "crossed": """SELECT DISTINCT b.item, a.price AS ask FROM bids b, asks a
        WHERE a.price <= b.price AND a.item = b.item
        AND b.item BETWEEN 1 AND 8 AND a.price BETWEEN 1 AND 40""",
    # Of each stream the tuple with the greatest price of each item stands for all others.
    "outweighed": """SELECT DISTINCT b.item FROM bids b, asks a
        WHERE a.item = b.item AND b.item BETWEEN 1 AND 8 AND b.price BETWEEN 0 AND 100
        AND a.price BETWEEN 0 AND 100 AND b.price + a.price > 119""",
    # Groups: the last row of each.
    "traded": """SELECT item, count(*) AS n, sum(price) AS total, max(price) AS dearest,
        count(*) FILTER (WHERE price > 30) AS dear, avg(2 * price + 1) AS mean FROM bids
        WHERE item BETWEEN 1 AND 8 GROUP BY item""",
    # Groups over event time without windows: late tuples count, too.
    "visited": """SELECT item, count(*) AS n, sum(v) AS total, max(ts) AS latest FROM visitors
        WHERE v > 20 GROUP BY item HAVING count(*) > 5""",
    # A self-join that counts: each row as often as it arises.
    "outbid": """SELECT x.item, y.price FROM bids x, bids y
        WHERE x.item = y.item AND x.price = y.price + 30 AND x.item BETWEEN 1 AND 3
        AND x.price BETWEEN 31 AND 50 AND y.price BETWEEN 1 AND 20""",
    # In application time, with a static relation.
    "graded": "SELECT q.v, l.grade FROM quotes q, lots l WHERE q.item = l.id AND q.v > 90",
    # Aggregates of windows.
    "busy": f"""WITH few AS (SELECT item, v, ts FROM quotes WHERE item BETWEEN 1 AND 5)
        SELECT item, window_start, count(*) AS n, max(v) AS most, last(v) AS latest, v > 50 AS high,
        percentile_disc(0.9) WITHIN GROUP (ORDER BY v) AS ninth,
        bool_or(v = 100) FILTER (WHERE v > 20) AS top,
        1000000 * var_pop(v) > 70000000 AS wide
        FROM TUMBLE(few, ts, INTERVAL '{WINDOW} MICROSECONDS') GROUP BY item, window_start, high""",
    # The latest tuple of another stream, and the one before in the same stream.
    "levelled": """SELECT q.item, q.v, l.level, p.v AS before FROM quotes q
        LEFT ASOF JOIN levels l ON q.item = l.item AND q.ts >= l.ts AND l.ts >= q.ts - INTERVAL '20' SECOND
        ASOF JOIN quotes p ON q.item = p.item AND q.ts > p.ts AND p.v > 2
        WHERE q.v > 90 OR q.v > 10 * l.level""",
    # Aggregates of sessions, which are cut if they are too long.
    "visits": f"""SELECT item, window_start, window_end, count(*) AS n, max(v) AS most, median(v) AS middle
        FROM SESSION(quotes, ts, INTERVAL '{GAP} MICROSECONDS', INTERVAL '{WINDOW} MICROSECONDS')
        GROUP BY item, window_start, window_end""",
    # A threshold that is an average, and windows of a stream with a table, whose rows are put in windows.
    "above": f"""WITH means AS (SELECT item, window_end, avg(v) AS mean
        FROM TUMBLE(quotes, ts, INTERVAL '{WINDOW} MICROSECONDS') WHERE item < 6 GROUP BY item, window_end)
        SELECT q.item, q.v, m.mean FROM quotes q JOIN means m ON q.item = m.item
        AND q.ts BETWEEN m.window_end AND m.window_end + INTERVAL '1' SECOND WHERE q.v > m.mean + 40""",
    "steady": f"""WITH grades AS (SELECT l.grade, window_end, max(q.v - l.grade) AS most
        FROM TUMBLE(quotes, ts, INTERVAL '{WINDOW} MICROSECONDS') q JOIN lots l ON q.item = l.id
        GROUP BY l.grade, window_end)
        SELECT grade, window_end, min(most) AS least, count(*) AS n
        FROM TUMBLE(grades, window_end, INTERVAL '{3 * WINDOW} MICROSECONDS') GROUP BY grade, window_end""",
    # A join by time, in windows over the event time of one of its streams.
    "paired": f"""WITH pairs AS (SELECT q.item, l.ts, q.v - l.level AS over
        FROM quotes q JOIN levels l ON q.item = l.item
        AND q.ts BETWEEN l.ts - INTERVAL '1' SECOND AND l.ts + INTERVAL '2' SECOND WHERE l.level > 3)
        SELECT item, window_end, count(*) AS n, max(over) AS most, sum(over) AS total
        FROM HOP(pairs, ts, INTERVAL '{WINDOW // 2} MICROSECONDS', INTERVAL '{WINDOW} MICROSECONDS')
        WHERE over > 10 GROUP BY item, window_end HAVING count(*) > 3""",
    # Nothing bounds its times, and the keys its memory.
    "followed": """SELECT x.v, y.v AS before FROM quotes x, quotes y
        WHERE x.item = y.item AND x.ts > y.ts AND x.v > 98 AND y.v < 2 AND y.v >= 0""",
    # Nothing bounds their memory, with event time and without.
    "hoarded": """SELECT x.ts AS later, y.ts AS earlier FROM quotes x, quotes y
        WHERE x.item = y.item AND x.ts > y.ts AND x.v = 98 AND y.v = 2""",
    "stocked": """SELECT b.lot, a.price FROM bids b, asks a
        WHERE a.item = b.item AND b.item BETWEEN 1 AND 3 AND b.price = 60 AND a.price < 1""",
}
GROUPED = {"traded", "visited"}  # the last row of each group counts
ALLOWED = {"hoarded", "stocked"}
ALERTS = "".join(
    f"CREATE ALERT {name} {'WITH (allow_unbounded = true) ' if name in ALLOWED else ''}AS {sql};"
    for name, sql in QUERIES.items()
)
REFERENCE = QUERIES | {
    "busy": f"""SELECT item, ts // {WINDOW} * {WINDOW} AS window_start, count(*) AS n, max(v) AS most,
        arg_max(v, {{'ts': ts, 'v': v}}) AS latest, v > 50 AS high,
        percentile_disc(0.9) WITHIN GROUP (ORDER BY v) AS ninth,
        bool_or(v = 100) FILTER (WHERE v > 20) AS top,
        1000000 * var_pop(v) > 70000000 AS wide
        FROM quotes WHERE item BETWEEN 1 AND 5 GROUP BY ALL""",
    # Of equal times, the greatest value is the latest.
    "levelled": """SELECT q.item, q.v, CASE WHEN l.ts >= q.ts - 20000000 THEN l.level END AS near, p.v
        FROM quotes q
        ASOF LEFT JOIN (SELECT item, ts, max(level) AS level FROM levels GROUP BY ALL) l
        ON q.item = l.item AND q.ts >= l.ts
        ASOF JOIN (SELECT item, ts, max(v) AS v FROM quotes WHERE v > 2 GROUP BY ALL) p
        ON q.item = p.item AND q.ts > p.ts
        WHERE q.v > 90 OR coalesce(q.v > 10 * near, FALSE)""",
    "visits": f"""WITH timed AS (
            SELECT *, lag(ts) OVER (PARTITION BY item ORDER BY ts) AS before FROM quotes),
        runs AS (SELECT *, max(CASE WHEN before IS NULL OR ts - before > {GAP} THEN ts END)
            OVER (PARTITION BY item ORDER BY ts) AS first FROM timed),
        cut AS (SELECT *, first + (ts - first) // {WINDOW} * {WINDOW} AS window_start FROM runs)
        SELECT item, window_start, least(max(ts) + {GAP}, window_start + {WINDOW}) AS window_end,
        count(*) AS n, max(v) AS most, median(v) AS middle FROM cut GROUP BY item, window_start""",
    "paired": f"""SELECT q.item, (l.ts // {WINDOW // 2} + ahead) * {WINDOW // 2} AS window_end,
        count(*) AS n, max(q.v - l.level) AS most, sum(q.v - l.level) AS total
        FROM quotes q, levels l, range(1, 3) later(ahead)
        WHERE q.item = l.item AND q.ts BETWEEN l.ts - 1000000 AND l.ts + 2000000
        AND l.level > 3 AND q.v - l.level > 10 GROUP BY ALL HAVING count(*) > 3""",
    "above": f"""WITH means AS (
        SELECT item, ts // {WINDOW} * {WINDOW} + {WINDOW} AS window_end, avg(v) AS mean
        FROM quotes WHERE item < 6 GROUP BY ALL)
        SELECT q.item, q.v, m.mean FROM quotes q JOIN means m ON q.item = m.item
        AND q.ts BETWEEN m.window_end AND m.window_end + 1000000 WHERE q.v > m.mean + 40""",
    "steady": f"""WITH grades AS (SELECT l.grade, ts // {WINDOW} AS pane, max(q.v - l.grade) AS most
        FROM quotes q JOIN lots l ON q.item = l.id GROUP BY ALL)
        SELECT grade, (pane // 3 + 1) * {3 * WINDOW} AS window_end, min(most) AS least, count(*) AS n
        FROM grades GROUP BY ALL""",
}
Row = tuple[Any, ...]


def expected(tables: Mapping[str, Sequence[Row]]) -> dict[str, Counter[Row]]:
    """The rows of each query by DuckDB, over all tuples."""
    with duckdb.connect() as base:
        base.execute("CREATE TABLE bids (item INT, price BIGINT, lot BIGINT)")
        base.execute("CREATE TABLE asks (item INT, price BIGINT)")
        base.execute("CREATE TABLE quotes (item INT, v BIGINT, ts BIGINT)")
        base.execute("CREATE TABLE levels (item INT, level BIGINT, ts BIGINT)")
        base.execute("CREATE TABLE visitors (item INT, v BIGINT, ts BIGINT)")
        base.execute("CREATE TABLE lots (id INT, grade BIGINT)")
        for name, rows in tables.items():
            insert(base, name, rows)
        return {name: Counter(map(tuple, base.execute(sql).fetchall())) for name, sql in REFERENCE.items()}


class Readings:
    """Bids come by a Kafka topic; the others are in files. Quotes and levels take half a minute."""

    def __init__(self, directory: Path, seed: int, size: int = 6_000) -> None:
        self._random = random.Random(seed)
        self.bids: list[Row] = []
        self.asks = [(self._random.randint(0, 10), self._random.randint(0, 60)) for _ in range(size)]
        _write(directory / "asks.csv", ("item", "price"), self.asks)
        # A second out of order, and never late.
        self.quotes = [
            (
                self._random.randint(0, 10),
                self._random.randint(0, 100),
                START + at * 25_000 + self._random.randint(0, 1_000_000),
            )
            for at in range(size)
        ]
        _write(directory / "quotes.csv", ("item", "v", "ts"), self.quotes)
        self.levels = [
            (self._random.randint(0, 10), self._random.randint(0, 30), START + at * 500_000)
            for at in range(size // 20)
        ]
        _write(directory / "levels.csv", ("item", "level", "ts"), self.levels)
        # Every third one is up to a minute late.
        self.visitors = [
            (
                self._random.randint(0, 10),
                self._random.randint(0, 100),
                START + at * 25_000 - (0 if at % 3 else self._random.randint(0, 60_000_000)),
            )
            for at in range(size)
        ]
        _write(directory / "visitors.csv", ("item", "v", "ts"), self.visitors)
        self.lots = [(self._random.randint(0, 10), grade) for grade in range(12)]
        _write(directory / "lots.csv", ("id", "grade"), self.lots)

    def send(self, bootstrap: str, count: int) -> None:
        """More bids."""
        producer = Producer({"bootstrap.servers": bootstrap})
        for _ in range(count):
            row = (self._random.randint(0, 10), self._random.randint(0, 60), len(self.bids))
            self.bids.append(row)
            value = orjson.dumps(dict(zip(("item", "price", "lot"), row, strict=True)))
            producer.produce(READINGS, value, partition=self._random.randrange(2))
        producer.flush()


def _write(path: Path, names: Row, rows: Sequence[Row]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([names, *rows])


def alarms(bootstrap: str) -> tuple[dict[str, Counter[Row]], int]:
    """The rows of each query, each identity once, of groups the last; and how many records there were."""
    config = KafkaSettings(bootstrap=bootstrap).client_config()
    with TopicReader(config, [ALARMS]) as reader:
        records = [orjson.loads(r.value) for r in reader.snapshot() if r.value is not None]
    return rows_of(records), len(records)


def rows_of(records: Sequence[dict[str, Any]]) -> dict[str, Counter[Row]]:
    """The rows of each query, each identity once, of groups the last."""
    once = {record["id"]: record for record in records}
    found: dict[str, Counter[Row]] = {name: Counter() for name in QUERIES}
    last: dict[Row, dict[str, Any]] = {}
    for record in once.values():
        if record["alert"] not in QUERIES:
            continue
        if record["alert"] in GROUPED:
            group = record["alert"], *record["key"]
            if group not in last or last[group]["number"] < record["number"]:
                last[group] = record
        else:
            found[record["alert"]][tuple(record["row"].values())] += 1
    for (name, *_), record in last.items():
        found[name][tuple(record["row"].values())] += 1
    return found


@pytest.mark.timeout(600)
def test_rows_are_neither_doubled_nor_lost_over_kills(tmp_path: Path, one_fleet: OneFleet) -> None:
    (tmp_path / "edge.yaml").write_text(
        f"""
sources:
  - {{name: bids, kind: kafka, topic: {READINGS}, stream: bids}}
  - {{name: asks, kind: file, path: asks.csv, stream: asks}}
  - {{name: quotes, kind: file, path: quotes.csv, stream: quotes, speed: 5}}
  - {{name: levels, kind: file, path: levels.csv, stream: levels, speed: 5}}
  - {{name: visitors, kind: file, path: visitors.csv, stream: visitors, speed: 5}}
batch: {{rows: 200}}
"""
    )
    readings = Readings(tmp_path, seed=3)
    fleet, bootstrap = one_fleet.fleet, one_fleet.bootstrap
    one_fleet.create(READINGS)
    readings.send(bootstrap, 2_000)
    one_fleet.apply(STREAMS.format(lots=tmp_path / "lots.csv"))
    one_fleet.apply(ALERTS)
    with one_fleet.edge("bids", tmp_path / "edge.yaml") as edge:
        joiner = fleet.processes["joiner"]
        for killed in (edge, joiner, edge):
            for _ in range(4):
                readings.send(bootstrap, 500)
                time.sleep(0.3)
            killed.kill()
            readings.send(bootstrap, 500)
            killed.start()
        readings.send(bootstrap, 500)
        tables = {
            name: getattr(readings, name) for name in ("bids", "asks", "quotes", "levels", "visitors", "lots")
        }
        wanted = expected(tables)
        deadline = time.monotonic() + SECONDS
        found, records = alarms(bootstrap)
        levelled = 0.0  # the most that it has kept: nothing once its sources have ended
        while found != wanted and time.monotonic() < deadline:
            time.sleep(2.0)
            found, records = alarms(bootstrap)
            kept = Scrape.of(fleet.telemetry["joiner"]).by("tamis_query_state_tuples", "query")
            levelled = max(levelled, kept.get("levelled", 0.0))
        for name in QUERIES:
            missing, extra = wanted[name] - found[name], found[name] - wanted[name]
            assert not missing and not extra, f"{name} of {records}: missing {missing}, extra {extra}"
        assert all(process.exit_code() is None for process in fleet.processes.values())
        marked = Scrape.of(fleet.telemetry["registry"]).by("tamis_registry_unproven_queries", "query")
        assert marked == dict.fromkeys(ALLOWED, 1.0)
        joined = Scrape.of(fleet.telemetry["joiner"])
        bounds = joined.by("tamis_query_bound_tuples", "query")
        assert ALLOWED & bounds.keys() == set()
        kept = joined.by("tamis_query_state_tuples", "query")
        assert 0 < levelled <= bounds["levelled"]
        assert kept["paired"] <= bounds["paired"]
        assert 0 < kept["visited"] <= bounds["visited"] == 11
        assert 0 < kept["outweighed"] <= bounds["outweighed"] == 24
        # What queries keep is reported with the frontiers, one batch behind the alarms.
        deadline = time.monotonic() + SECONDS
        while not Scrape.of(fleet.telemetry["joiner"]).by("tamis_query_state_tuples", "query").get("stocked"):
            assert time.monotonic() < deadline
            time.sleep(0.2)
