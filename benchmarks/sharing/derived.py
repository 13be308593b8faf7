"""Traffic of alerts that read the topics of derived streams, and of the same alerts without them."""

from __future__ import annotations

import re

import numpy as np

from benchmarks.harness import Cell, Result, Say
from tamis.expressions.vectors import Vector
from tamis.messaging.topics import JOINER_PATTERN
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of
from tamis_edge.core.commit import Commit
from tamis_edge.core.rows import Batch
from tamis_edge.core.shard_run import ShardRun

NAME = "sharing.derived"
COLUMNS = ("alerts", "without, tuples", "with, tuples", "without, MB", "with, MB", "ratio", "joiner reads")
KEYS = 50
GAP = 1_000_000  # microseconds between two tuples of a key
SHARD = "air:edge/http"
STREAMS = (
    "CREATE STREAM air (k INT KEY, ts TIMESTAMP, v DOUBLE CHECK (v BETWEEN 0 AND 100), w DOUBLE,"
    " WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH (max_ahead = 'unlimited');"
    "CREATE STREAM cold AS SELECT k, ts, v, w FROM air WHERE v < 10;"
    "CREATE STREAM hot AS SELECT k, ts, v, w FROM air WHERE v > 90;"
    "CREATE STREAM odd AS SELECT k, ts, v, w FROM air WHERE v BETWEEN 40 AND 50 AND w > 60;"
)


def run(quick: bool, say: Say) -> Result:
    """Count the records that an edge publishes of the same readings, and their bytes."""
    tuples = 20_000 if quick else 300_000
    random = np.random.default_rng(1)
    values = {name: random.uniform(0, 100, tuples) for name in ("v", "w")}
    rows: list[dict[str, Cell]] = []
    for count in (0, 3, 30):
        say(f"{count} alerts")
        before, found = (_published(_alerts(count, flag), values) for flag in ("false", "true"))
        rows.append(
            {
                "alerts": count,
                "without, tuples": sum(n for n, _ in before.values()),
                "with, tuples": sum(n for n, _ in found.values()),
                "without, MB": sum(size for _, size in before.values()) / 1e6,
                "with, MB": sum(size for _, size in found.values()) / 1e6,
                "ratio": sum(size for _, size in found.values()) / sum(size for _, size in before.values()),
                "joiner reads": sum(
                    n for name, (n, _) in found.items() if re.fullmatch(JOINER_PATTERN, name)
                ),
            }
        )
    return Result(
        NAME,
        "Alerts that read the topics of derived streams",
        COLUMNS,
        rows,
        {"tuples": tuples, "quick": quick},
        (
            f"of {tuples:,} readings with two values, uniform in 0 to 100, {KEYS} keys",
            "three derived streams with 10 %, 10 % and 4 % of the readings; a third of the alerts is in each,"
            " narrower by up to a fifth; nothing is omitted",
            "without: with read_derived = false; MB: keys and values of all tuples; ratio: of MB",
            "joiner reads: tuples of all topics that the joiner reads, with derived streams as sources; it"
            " also reads the three derived topics without alerts",
        ),
    )


def _alerts(count: int, flag: str) -> str:
    """Statements of alerts, each within a derived stream."""
    regions = ("v < {:.2f}", "v > {:.2f}", "v BETWEEN 40 AND {:.2f} AND w > 60")
    ends = ((8.0, 10.0), (92.0, 90.0), (48.0, 50.0))
    found = [STREAMS]
    for at in range(count):
        first, last = ends[at % 3]
        region = regions[at % 3].format(first + (last - first) * (at // 3) / max(1, count // 3 - 1))
        found.append(
            f"CREATE ALERT q{at} WITH (read_derived = {flag}) AS SELECT k, v FROM air WHERE {region};"
        )
    return "".join(found)


def _published(
    sql: str, values: dict[str, np.ndarray[tuple[int], np.dtype[np.float64]]]
) -> dict[str, tuple[int, int]]:
    """The tuples that an edge publishes to each topic, and their bytes."""
    plan = first_plan(catalog_of(sql), partitions=4, shards={SHARD: "air"})
    run = ShardRun(SHARD, "air", Commit(), plan, now=0)
    found: dict[str, tuple[int, int]] = {}
    size = len(values["v"])
    place = np.arange(size)
    columns = {"k": place % KEYS, "ts": place // KEYS * GAP, **values}
    for first in range(0, size, 10_000):
        rows = np.arange(first, min(first + 10_000, size))
        taken = {name: Vector(column[rows]) for name, column in columns.items()}
        run.take(Batch(taken, taken["ts"].data, rows, np.zeros(len(rows), np.int64)), 0)
        run.settle(0)
        while run.out:
            record = run.out.popleft()
            run.safe(record.token)
            if b'"kind"' not in record.value:
                tuples, bytes_ = found.get(record.topic, (0, 0))
                more = len(record.value) + len(record.key or b"")
                found[record.topic] = tuples + 1, bytes_ + more
    return found
