"""Sizes of partial aggregates beside what a shard's run sends of the same readings, and beside its memory."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest
from tests.oracle.fleet.test_link_bound import BORN, MINUTE, SECOND, SHARD, Shard

from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of
from tamis.sizing.estimate import Sizing, estimate
from tamis.sizing.figures import Figure, unit_costs
from tamis.sizing.fleet import Operation
from tamis.sizing.load import Given, load_of

KEYS, MINUTES, PARTITIONS = 50, 12, 4
STREAM = f"""
CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, v DOUBLE, s VARCHAR,
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (keys = {KEYS}, rate = '1/s');
"""
EACH = "FROM TUMBLE(air, ts, INTERVAL '10' SECOND) GROUP BY window_end, k"


def sized(alert: str, options: str = "", edges: int = 1) -> Sizing:
    catalog = catalog_of(STREAM, f"CREATE ALERT q {options} AS {alert}")
    loads = {name: load_of(one, Given()) for name, one in catalog.streams.items()}
    return estimate(catalog, loads, Operation(edges=edges, partitions=PARTITIONS), unit_costs())


def figures(sizing: Sizing, part: str) -> Mapping[str, Figure]:
    return next(one.figures for one in sizing.parts if one.title == part and one.name != "tamis.alarms")


def overhead_of(rate: float) -> float:
    """The bytes that a log adds to a tuple: an edge writes a batch to each partition in 20 ms."""
    costs = unit_costs()
    shared = min(1.0, PARTITIONS / 0.02 / rate)
    return costs["kafka_record_overhead_bytes"] + shared * costs["kafka_batch_overhead_bytes"]


@pytest.mark.parametrize(
    "aggregates", ["max(v) AS most", "avg(v) AS mean, stddev_pop(v) AS spread, max(s) AS last"]
)
def test_rows_and_bytes_are_those_of_a_run(aggregates: str) -> None:
    alert = f"SELECT window_end, k, {aggregates} {EACH}"
    catalog = catalog_of(STREAM, f"CREATE ALERT q AS {alert}")
    plan = first_plan(catalog, partitions=PARTITIONS, shards={SHARD: "air"})
    readings = [
        (at := BORN + second * SECOND + 10_000 * number, at, f"sensor-{number:05}")
        for second in range(MINUTES * 60)
        for number in range(KEYS)
    ]
    shard = Shard(plan, random.Random(1), [])
    shard.read(readings, BORN + MINUTES * MINUTE)
    topic = figures(sized(alert), "topic")
    seconds = MINUTES * 60
    rows, size = (
        sum(of) / seconds for of in zip(*((cut.rows, cut.bytes) for cut in shard.cuts), strict=True)
    )
    assert topic["published"].value == pytest.approx(rows, rel=0.05)
    # The traffic also has what a log adds to records, and progress records.
    records = sum(cut.records for cut in shard.cuts) / seconds
    costs = unit_costs()
    log = records * (costs["kafka_record_overhead_bytes"] + costs["kafka_batch_overhead_bytes"])
    raw = figures(sized(alert, "WITH (edge = 'raw')"), "topic")
    progress = raw["traffic"].value - raw["published"].value * (
        raw["record"].value + overhead_of(raw["published"].value)
    )
    # Values of the run have fewer digits than the typical ones.
    assert size + log <= topic["traffic"].value - progress < 1.7 * (size + log)
    edge = figures(sized(alert), "edge")
    assert shard.memory <= edge["open panes"].value < 20 * shard.memory


def test_readings_wait_for_the_end_of_their_pane_in_the_journal() -> None:
    alert = f"SELECT window_end, k, max(v) AS most {EACH}"
    apart, partial = sized(alert, "WITH (edge = 'raw')"), sized(alert)
    journals = [figures(one, "edge")["journal"].value for one in (apart, partial)]
    # A second until a commit; with partial aggregates, also a pane, twice the delay and two seconds.
    assert journals[1] == pytest.approx(23 * journals[0])
    hour = sized(alert.replace("'10' SECOND", "'1' HOUR"))
    # A full cut comes after 10 minutes.
    assert figures(hour, "edge")["journal"].value == pytest.approx(603 * journals[0])
    (note,) = [one for one in hour.notes if "read again" in one]
    assert "up to 602 s" in note
    assert not [one for one in apart.notes if "read again" in one]


def test_values_that_are_kept_separately_take_no_more_than_full_cuts_leave() -> None:
    hour = EACH.replace("'10' SECOND", "'1' HOUR")
    median, most = (
        figures(sized(f"SELECT window_end, k, {one}(v) AS m {hour}"), "edge") for one in ("median", "max")
    )
    assert most["open panes"].value < median["open panes"].value < 20e6


def test_partial_aggregates_need_less_of_everything() -> None:
    alert = f"SELECT window_end, k, max(v) AS most {EACH}"
    apart, partial = sized(alert, "WITH (edge = 'raw')"), sized(alert)
    for name in ("published", "traffic", "disk"):
        assert figures(partial, "topic")[name].value < figures(apart, "topic")[name].value / 2
    assert figures(partial, "edge")["spool"].value < figures(apart, "edge")["spool"].value / 5


def test_each_edge_sends_a_row_for_groups_without_keys() -> None:
    alert = "SELECT window_end, count(*) AS n FROM TUMBLE(air, ts, INTERVAL '10' SECOND) GROUP BY window_end"
    one, ten = (figures(sized(alert, edges=edges), "topic")["published"].value for edges in (1, 10))
    assert ten == pytest.approx(10 * one)
    by_key = f"SELECT window_end, k, count(*) AS n {EACH}"
    one, ten = (figures(sized(by_key, edges=edges), "topic")["published"].value for edges in (1, 10))
    assert ten == pytest.approx(one)
