"""Topics of derived streams: an edge writes the rows that DuckDB selects from the raw readings."""

from __future__ import annotations

import os
import random
from typing import Any

import duckdb
import numpy as np
import orjson
import pytest
from tests.rows_for_duckdb import insert

from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of
from tamis_edge.core.commit import Commit
from tamis_edge.core.rows import Batch
from tamis_edge.core.shard_run import ShardRun

SEED = int(os.environ.get("TAMIS_SEED", "0"))
SHARD = "air:edge-a/http"
BASE = """
CREATE STREAM air (station VARCHAR KEY, ts TIMESTAMP, temp DOUBLE, rh DOUBLE, n INT, ok BOOLEAN,
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);
CREATE FUNCTION fahrenheit(c DOUBLE) RETURNS DOUBLE AS c * 1.8 + 32;
CREATE STREAM warm AS SELECT station AS place, ts AS at, temp * 2 AS twice, n FROM air WHERE temp > 0;
"""
TYPES = {
    "station": Type.VARCHAR, "ts": Type.TIMESTAMP, "temp": Type.DOUBLE, "rh": Type.DOUBLE, "n": Type.INT,
    "ok": Type.BOOLEAN,
}  # fmt: skip

# The derived stream's SELECT in Tamis, and the same question to DuckDB, where times are whole numbers.
CASES = [
    ("SELECT station, ts, temp FROM air WHERE temp > 5", "SELECT station, ts, temp FROM air WHERE temp > 5"),
    (
        "SELECT fahrenheit(temp) AS f, rh - temp AS gap FROM air WHERE rh > temp AND ok",
        "SELECT temp * 1.8 + 32 AS f, rh - temp AS gap FROM air WHERE rh > temp AND ok",
    ),
    (
        "SELECT ts + INTERVAL '1' SECOND AS later, n + 1 AS more, temp > 5 AS high FROM air",
        "SELECT ts + 1000000 AS later, n + 1 AS more, temp > 5 AS high FROM air",
    ),
    (
        "SELECT CASE WHEN temp > rh THEN station ELSE 'none' END AS who, temp / n AS share FROM air",
        "SELECT CASE WHEN temp > rh THEN station ELSE 'none' END AS who, temp / nullif(n, 0) AS share "
        "FROM air",
    ),
    (
        "SELECT place, at, twice + n AS sum, least(twice, n) AS low FROM warm WHERE twice < 15",
        "SELECT station AS place, ts AS at, temp * 2 + n AS sum, least(temp * 2, n) AS low "
        "FROM air WHERE temp > 0 AND temp * 2 < 15",
    ),
    (
        "SELECT 1 AS one, temp AS ts, station AS temp FROM air",
        "SELECT 1 AS one, temp AS ts, station AS temp FROM air",
    ),
]


def readings(source: random.Random, count: int) -> dict[str, list[Any]]:
    """Random columns with NULLs; times mostly ascend, and some are late."""
    rows = [
        (
            source.choice(["a", "b", 'é"', None]),
            max(0, 1_000_000 * at - source.choice([0, 0, 0, 5_000_000])),
            source.choice([None, *[source.randrange(-40, 40) / 4] * 9]),
            source.choice([None, *[source.uniform(-10, 10)] * 9]),
            source.choice([None, *range(-2, 4)]),
            source.choice([None, True, False]),
        )
        for at in range(count)
    ]
    return {name: list(values) for name, values in zip(TYPES, zip(*rows, strict=True), strict=True)}


def published(select: str, columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """The rows on the derived stream's topic, after the readings went through an edge in three batches."""
    catalog = catalog_of(f"{BASE}CREATE STREAM derived AS {select};")
    plan = first_plan(catalog, partitions=2, shards={SHARD: "air"})
    run = ShardRun(SHARD, "air", Commit(), plan)
    vectors = {name: Vector.from_list(values, TYPES[name]) for name, values in columns.items()}
    count = len(columns["ts"])
    for rows in np.array_split(np.arange(count), 3):
        taken = {name: vector.take(rows) for name, vector in vectors.items()}
        run.take(Batch(taken, taken["ts"].data, rows, np.zeros(len(rows), np.int64)), 0)
    run.finish()
    run.settle(0)
    found = [
        orjson.loads(record.value) for record in run.out if record.topic.startswith("tamis.stream.derived.")
    ]
    assert all(document.pop("_")["shard"] == SHARD for document in found)
    return found


def selected(select: str, columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """The rows that DuckDB selects from the readings."""
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE air (station VARCHAR, ts BIGINT, temp DOUBLE, rh DOUBLE, n INTEGER, ok BOOLEAN)"
        )
        insert(connection, "air", zip(*columns.values(), strict=True))
        result = connection.execute(select)
        names = [column[0] for column in result.description or ()]
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def in_order(rows: list[dict[str, Any]]) -> list[str]:
    """Rows as comparable texts: 9 digits of a number, since both may round the last ones differently."""
    return sorted(
        repr([(name, f"{value:.9g}" if type(value) is float else value) for name, value in row.items()])
        for row in rows
    )


@pytest.mark.parametrize(("ours", "theirs"), CASES, ids=[ours for ours, _ in CASES])
def test_a_derived_topic_carries_what_its_select_names(ours: str, theirs: str) -> None:
    for seed in range(SEED, SEED + 5):
        columns = readings(random.Random(seed), 120)
        expected = selected(theirs, columns)
        assert len(expected) > 10
        assert in_order(published(ours, columns)) == in_order(expected), f"seed {seed}"
