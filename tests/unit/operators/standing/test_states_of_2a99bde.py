"""Saved states of standing queries that the commit 2a99bde wrote: queries continue from them.

`tests/fixtures/standing_states/2a99bde.json` has by alert what `dump` of that commit's evaluator returned
after the first half of `batches`.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from tests.operators import standing_evaluator

from tamis.expressions.vectors import Vector
from tamis.operators.contract import Rows, StandingEvaluator

STATES = orjson.loads((Path(__file__).parents[3] / "fixtures/standing_states/2a99bde.json").read_bytes())
STREAMS = """
CREATE STREAM bids (item INT KEY, price BIGINT, lot BIGINT, who VARCHAR, weight DOUBLE);
CREATE STREAM asks (item INT KEY, price BIGINT);
CREATE STREAM quotes (item INT KEY, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
  WITH (keys = 11, rate = '1000/s', max_stall = '1 hour');
CREATE TABLE lots (id INT, grade BIGINT) WITH (path = '{lots}');
"""
QUERIES = {
    # DISTINCT.
    "crossed": """SELECT DISTINCT b.item, a.price AS ask FROM bids b, asks a
        WHERE a.price <= b.price AND a.item = b.item
        AND b.item BETWEEN 1 AND 8 AND a.price BETWEEN 1 AND 40""",
    # Groups with numbers, and with texts and NULL.
    "traded": """SELECT item, count(*) AS n, sum(price) AS total, max(price) AS dearest, avg(weight) AS mean,
        median(price) AS middle FROM bids
        WHERE item BETWEEN 1 AND 8 AND price BETWEEN 0 AND 60 GROUP BY item HAVING count(*) > 3""",
    "named": """SELECT who, count(DISTINCT price) AS n, min(weight) AS lightest FROM bids
        WHERE price BETWEEN 0 AND 60 AND who IN ('a', 'b') GROUP BY who""",
    # A self-join that counts, and a union.
    "outbid": """SELECT x.item, y.price FROM bids x, bids y WHERE x.item = y.item AND x.price = y.price + 30
        AND x.item BETWEEN 1 AND 3 AND x.price BETWEEN 31 AND 50 AND y.price BETWEEN 1 AND 20""",
    "either": """SELECT item, price FROM bids WHERE item BETWEEN 1 AND 4 AND price BETWEEN 1 AND 9
        UNION SELECT item, price FROM asks WHERE item BETWEEN 1 AND 4 AND price BETWEEN 5 AND 12""",
    # In application time, with a table and with a self-join.
    "graded": "SELECT DISTINCT q.v, l.grade FROM quotes q, lots l WHERE q.item = l.id AND q.v > 40",
    "followed": """SELECT x.v, y.v AS before FROM quotes x, quotes y
        WHERE x.item = y.item AND x.ts > y.ts AND x.v > 80 AND y.v < 20 AND y.v >= 0""",
    # Aggregates of windows.
    "busy": """SELECT item, window_start, count(*) AS n, max(v) AS most, avg(v) AS mean
        FROM HOP(quotes, ts, INTERVAL '5' SECOND, INTERVAL '10' SECOND) WHERE item BETWEEN 1 AND 5
        GROUP BY item, window_start""",
    # Nothing bounds their memory.
    "hoarded": """SELECT x.ts AS later, y.ts AS earlier FROM quotes x, quotes y
        WHERE x.item = y.item AND x.ts > y.ts AND x.v > 90 AND y.v < 5""",
    "stocked": """SELECT b.lot, a.price FROM bids b, asks a
        WHERE a.item = b.item AND b.item BETWEEN 1 AND 3 AND b.price > 50 AND a.price < 5""",
}  # fmt: skip
START, SECOND = 1_700_000_000_000_000, 1_000_000
ROWS = 20

Batch = tuple[str, dict[str, Vector], int]  # a stream, its tuples, and the watermark after them


def query(alert: str, directory: Path) -> StandingEvaluator:
    """One of the queries, with empty state."""
    lots = directory / "lots.csv"
    lots.write_text("id,grade\n1,5\n2,7\n3,1\n3,2\n")
    options = "WITH (allow_unbounded = true) " if alert in ("hoarded", "stocked") else ""
    sql = STREAMS.replace("{lots}", str(lots)) + f"CREATE ALERT {alert} {options}AS {QUERIES[alert]};"
    return standing_evaluator(sql, alert)


def batches(alert: str, streams: frozenset[str]) -> Iterator[Batch]:
    """The same tuples for an alert each time."""
    rng = random.Random(alert)
    clock = START
    for _ in range(12):
        for stream in sorted(streams - {"lots"}):
            yield stream, _tuples(stream, rng, clock), clock - 2 * SECOND
            clock += 2 * SECOND


def _tuples(stream: str, rng: random.Random, clock: int) -> dict[str, Vector]:
    def numbers(low: int, high: int) -> Vector:
        return Vector(np.array([rng.randint(low, high) for _ in range(ROWS)], np.int64))

    columns = {"item": numbers(0, 6)}
    match stream:
        case "asks":
            columns["price"] = numbers(0, 60)
        case "bids":
            columns["price"] = numbers(0, 60)
            columns["lot"] = numbers(0, 10**6)
            columns["who"] = Vector(np.array([rng.choice("abc") for _ in range(ROWS)], np.object_))
            weights = [rng.choice([round(rng.uniform(0, 5), 3), None]) for _ in range(ROWS)]
            null = np.array([weight is None for weight in weights])
            columns["weight"] = Vector(np.array([weight or 0.0 for weight in weights]), null)
        case "quotes":
            columns["v"] = numbers(0, 100)
            columns["ts"] = numbers(clock - SECOND, clock + SECOND)
    return columns


def take(one: StandingEvaluator, batch: Batch) -> Counter[tuple[Any, ...]]:
    """The rows of a batch."""
    stream, columns, watermark = batch
    found = [one.take(stream, columns, ROWS)]
    if stream == "quotes":
        found.append(one.advance(stream, watermark))
    return Counter(row for rows in found for row in _listed(rows))


def _listed(rows: Rows) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_list() for column in rows.columns.values()), strict=True))


@pytest.mark.parametrize("alert", QUERIES)
def test_a_query_continues_from_the_state_of_2a99bde(alert: str, tmp_path: Path) -> None:
    whole, later = query(alert, tmp_path), query(alert, tmp_path)
    tuples = list(batches(alert, whole.streams))
    half = len(tuples) // 2
    for batch in tuples[:half]:
        take(whole, batch)
    later.load(STATES[alert].encode())
    assert later.entries() == whole.entries() > 0
    rows = [take(later, batch) for batch in tuples[half:]]
    assert rows == [take(whole, batch) for batch in tuples[half:]]
    assert sum(map(len, rows)) > 0
