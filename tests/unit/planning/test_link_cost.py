"""The estimated bytes of both forms in which edges send readings are those of records of a real edge."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tamis.expressions.vectors import Vector
from tamis.plan.model import Plan, partial_topics
from tamis.planning.build import first_plan
from tamis.planning.link.bound import PARTITIONS
from tamis.planning.queries.standing_queries import judged
from tamis.query.model import Catalog
from tamis.query.parse import catalog_of
from tamis_edge.core.commit import Commit
from tamis_edge.core.rows import Batch
from tamis_edge.core.shard_run import ShardRun

SECOND = 1_000_000
BORN = 1_760_000_000 * SECOND
MINUTES = 3
STREAM = (
    "CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)"
)
FIVE = "count(*) AS n, sum(x) AS s, min(x) AS l, max(x) AS m, stddev(x) AS d"


def _catalog(select: str, pane: int, stream: str = "", alert: str = "") -> Catalog:
    return catalog_of(
        f"{STREAM} {stream}; CREATE ALERT q {alert} AS SELECT window_end, k, {select}"
        f" FROM TUMBLE(air, ts, INTERVAL '{pane}' SECOND) GROUP BY window_end, k;"
    )


def _plan(catalog: Catalog) -> Plan:
    return first_plan(catalog, shards={"air:edge-00/source": "air"}, partitions=PARTITIONS)


def _bytes(plan: Plan, keys: int, rate: int) -> float:
    """Bytes of tuples or rows that the shard sends in a minute, where each key has `rate` readings."""
    run, size = ShardRun("air:edge-00/source", "air", Commit(), plan, now=BORN), 0
    values = np.random.default_rng(7)
    for number in range(MINUTES * 120):  # each half of a second
        at = number * SECOND // 2
        due = [key for key in range(keys) if (number * rate + key * 120 // keys) % 120 < rate]
        if due:
            first = run.next_offset
            columns = {
                "k": Vector(np.array([f"station-{key:04}" for key in due], np.object_)),
                "ts": Vector(np.full(len(due), BORN + at)),
                "x": Vector(values.uniform(10, 99, len(due)).round(2)),
            }
            offsets = np.arange(first, first + len(due))
            run.take(Batch(columns, columns["ts"].data, offsets, columns["ts"].data), BORN + at)
        if run.commit() is not None:
            run.committed(BORN + at)
        for record in run.out:
            if b'"kind":"progress"' not in record.value:
                size += len(record.value) + len(record.key or b"")
            run.safe(record.token)
        run.out.clear()
    return size / MINUTES


@pytest.mark.parametrize("select", ["avg(x) AS m", FIVE, "median(x) AS m"])
@pytest.mark.parametrize(
    ("keys", "rate", "pane"), [(1, 60, 1), (1, 120, 2), (1, 60, 60), (10, 1, 60), (10, 3, 60), (200, 1, 60)]
)
def test_the_estimate_is_near_and_decides_rightly(keys: int, rate: int, pane: int, select: str) -> None:
    catalog = _catalog(select, pane, f"WITH (keys = {keys}, rate = '{rate}/60s')")
    cost = judged(catalog.alerts["q"], catalog).cost
    assert cost is not None
    as_tuples = _bytes(_plan(_catalog(select, pane, alert="WITH (edge = 'raw')")), keys, rate)
    # Where nothing is declared, nothing speaks against partial aggregates.
    as_partials = _bytes(_plan(_catalog(select, pane)), keys, rate)
    assert math.isclose(cost.tuples, as_tuples, rel_tol=0.2)
    assert math.isclose(cost.partials, as_partials, rel_tol=0.35)
    if not 0.7 < as_tuples / as_partials < 1.4:
        assert bool(partial_topics(_plan(catalog))) is (as_partials < as_tuples)


@pytest.mark.parametrize(("rate", "a_minute"), [("1/1h", 1 / 60), ("1/5min", 1 / 5), ("1/60s", 1)])
def test_rates_are_those_of_a_long_time(rate: str, a_minute: float) -> None:
    """A minute may have one reading of a key that has one an hour."""
    catalog = _catalog("max(x) AS m", 3600, f"WITH (keys = 3, rate = '{rate}')")
    cost = judged(catalog.alerts["q"], catalog).cost
    assert cost is not None
    assert 100 < cost.tuples / (3 * a_minute) < 300
    # A full cut comes each 10 minutes, whatever the length of panes is.
    assert bool(partial_topics(_plan(catalog))) is (a_minute == 1)


def test_more_readings_than_anybody_has_are_no_limit() -> None:
    # As many groups as a machine may have room for, and more readings of each than a day has.
    catalog = _catalog("max(x) AS m", 60, f"WITH (keys = {10**7}, rate = '1000000000000/s')")
    assert judged(catalog.alerts["q"], catalog).cost is None
