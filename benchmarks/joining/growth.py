"""Batches of the joiner's core as keys, alerts, tuples that it holds, and batches grow."""

from __future__ import annotations

import time
import uuid
from statistics import median

from tests.fixtures.dict_state import DictState

from benchmarks.harness import Cell, Goal, Result, Say
from benchmarks.joining.workload import Size, Source, plan
from tamis.compile_kernels import warm
from tamis.garbage_collection import collect_seldom
from tamis_joiner.core.group import Group
from tamis_joiner.core.records.envelopes import Records

NAME = "joining.growth"
BATCHES = 5
# A tuple meets about two partners of its key, up to 100,000 held tuples.
SERIES = {
    "keys": [
        Size(keys, 1, 20_000, min(100_000, 4 * keys)) for keys in (10, 1_000, 10_000, 100_000, 1_000_000)
    ],
    "alerts": [Size(1_000, alerts, 1_000, 100_000) for alerts in (1, 10, 100, 1_000, 10_000)],
    "held tuples": [Size(1_000, 2_000, 1_000, live) for live in (10_000, 100_000, 1_000_000)],
    "batch": [Size(1_000, 10, batch, 100_000) for batch in (100, 1_000, 10_000, 50_000)],
}
COLUMNS = (
    "grows",
    "keys",
    "alerts",
    "tuples held",
    "tuples a batch",
    "batch, ms",
    "µs a tuple",
    "all filters again, ms",
    "times",
    "alarms",
)
# The alerts and held tuples at which a batch took 2 s while it evaluated all filters again.
MANY = SERIES["held tuples"][-1]
QUICK = Size(100, 10, 1_000, 2_000)


def run(quick: bool, say: Say) -> Result:
    """Run the benchmark. A quick run only shows that it works: its sizes are too small for figures."""
    collect_seldom()
    warm()
    rows: list[dict[str, Cell]] = []
    for what, sizes in {"quick": [QUICK]}.items() if quick else SERIES.items():
        for size in sizes:
            rows.append({"grows": what, **_measured(size)})
            say(f"{what}: {size}")
    last = rows[-1] if quick else next(row for row in rows if row["tuples held"] == max(map(_held, rows)))
    return Result(
        NAME,
        "Batches of the joiner's core",
        COLUMNS,
        rows,
        {"batches": BATCHES, "quick": quick},
        (
            f"CPU time of one core, median of {BATCHES} batches; without Kafka and Spark, from JSON to alarms"
            " and changed state",
            "all filters again: the same with the filters evaluated for all held tuples, in each third batch"
            " of the same run",
            "times: all filters again / batch",
        ),
        (
            Goal(
                f"joiner, batch with {last['alerts']:,} alerts over {last['tuples held']:,} held tuples",
                float(last["times"] or 0),
                "all filters again, times faster",
                least=2.0,
            ),
        ),
    )


def _held(row: dict[str, Cell]) -> int:
    return int(row["tuples held"] or 0)


def _measured(size: Size) -> dict[str, Cell]:
    source, state, group = Source(size), DictState(), Group(0, 1)
    group.process([plan(size)], [], state, now=0, token="plan")
    for records in source.fill():
        group = _batch(group, records, state)[0]
    kept: list[float] = []
    again: list[float] = []
    alarms = 0
    for number in range(3 * (BATCHES + 1)):
        records = source.batch(size.batch)
        if number % 3 == 0:
            group._store._bitmaps.clear()
        group, seconds, raised = _batch(group, records, state)
        # Bitmaps that were just made for all held tuples have no room for more. The next batch makes it,
        # which is seldom needed where bitmaps are kept, so that batch isn't measured.
        if number % 3 != 1:
            (kept if number % 3 else again).append(seconds)
        alarms += raised
    # The first batch of each kind warms up.
    one, other = median(kept[1:]), median(again[1:])
    return {
        "keys": size.keys,
        "alerts": size.alerts,
        "tuples held": sum(map(len, group._store.tuples.values())),
        "tuples a batch": size.batch,
        "batch, ms": 1000 * one,
        "µs a tuple": 1e6 * one / size.batch,
        "all filters again, ms": 1000 * other,
        "times": other / one,
        "alarms": alarms,
    }


def _batch(group: Group, records: list[Records], state: DictState) -> tuple[Group, float, int]:
    """The group after a batch, the CPU seconds of the batch, and its alarms."""
    began = time.process_time()
    group = Group.load(0, 1, state, group)
    output = group.process([], records, state, now=0, token=uuid.uuid4().hex)
    return group, time.process_time() - began, len(output.alarms)
