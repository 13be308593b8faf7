"""Delay of rows after the end of their window, of partial aggregates beside every reading."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import orjson

from benchmarks.edge_aggregates.ways import ALERT, MEAN
from benchmarks.harness import Cell, Goal, Result, Say
from benchmarks.latency import TUPLES_A_SECOND, Feeder, running, wait
from benchmarks.readings import SECOND, stream
from tamis.local.fleet import EdgeSpec, Fleet, FleetSpec
from tamis.messaging.topic_reader import TopicReader
from tamis.messaging.topics import ALARMS
from tamis.settings import KafkaSettings

NAME = "edge_aggregates.delay"
STREAMS = {"means": "partial aggregates", "raw_means": "every reading"}
KEYS = 200
WINDOW = "TUMBLE({0}, ts, INTERVAL '2' SECOND)"
# The delay of the watermark, as `readings.STREAM` declares it: no row can be given before.
WATERMARK = 2 * SECOND


def run(quick: bool, say: Say) -> Result:
    """Run the benchmark. A quick run only shows that it works: its sizes are too small for figures."""
    warm_up, seconds = (5.0, 6.0) if quick else (15.0, 60.0)
    sql = "".join(
        stream(name, KEYS, TUPLES_A_SECOND // KEYS)
        + ALERT.format(
            name=name,
            edge="raw" if name.startswith("raw") else "auto",
            select=MEAN,
            window=WINDOW.format(name),
        )
        for name in STREAMS
    )
    with tempfile.TemporaryDirectory(prefix="tamis-bench-delay-") as directory:
        fleet = Fleet(FleetSpec(Path(directory), [EdgeSpec("edge")]), say)
        try:
            fleet.start({"means.sql": sql})
            waits = _measured(fleet, warm_up, seconds, say)
        finally:
            fleet.stop()
    quantiles = {name: np.quantile(waits[name], (0.5, 0.99)).tolist() for name in STREAMS}
    rows: list[dict[str, Cell]] = [
        {
            "what": what,
            "p50 s": round(quantiles[name][0], 3),
            "p99 s": round(quantiles[name][1], 3),
            "rows": len(waits[name]),
        }
        for name, what in STREAMS.items()
    ]
    return Result(
        NAME,
        f"Delay of rows of windows at {TUPLES_A_SECOND:,} readings/s",
        tuple(rows[0]),
        rows,
        {"seconds": seconds, "warm_up": warm_up, "keys": KEYS, "quick": quick},
        (
            "from the end of the window and the delay of the watermark (2 s) to the timestamp of the row in"
            " Kafka; both streams get half of the readings, over HTTP, at the same time",
        ),
        [
            Goal(
                f"delay of rows, {name}",
                quantiles["means"][number] / quantiles["raw_means"][number],
                "times that with every reading",
                most=1.1,
            )
            for number, name in enumerate(("p50", "p99"))
        ],
    )


def _measured(fleet: Fleet, warm_up: float, seconds: float, say: Say) -> dict[str, list[float]]:
    """Seconds of each row by stream."""
    for name in STREAMS:
        wait(f"{name} runs", partial(running, fleet, name))
    feeder = Feeder(fleet.http_sources["edge"], tuple(STREAMS))
    say("warming up")
    feeder.start()
    try:
        time.sleep(warm_up)
        say(f"measuring for {seconds:.0f} s")
        began = time.time()
        time.sleep(seconds)
        ended = time.time()
        # Readings go on arriving, so that the last windows end as the others did.
        time.sleep(10)
    finally:
        feeder.stop()
    return _waits(fleet, began * SECOND, ended * SECOND)


def _waits(fleet: Fleet, began: float, ended: float) -> dict[str, list[float]]:
    """Of the rows whose windows ended within the time."""
    waits: dict[str, dict[Sequence[object], float]] = {name: {} for name in STREAMS}
    with TopicReader(KafkaSettings(bootstrap=fleet.bootstrap).client_config(), [ALARMS]) as reader:
        for record in reader.snapshot():
            alarm = orjson.loads(record.value or b"{}")
            end = alarm["row"]["window_end"]
            if began <= end < ended:
                delay = record.timestamp / 1e3 - (end + WATERMARK) / SECOND
                waits[alarm["alert"]].setdefault(alarm["id"], delay)
    return {name: list(delays.values()) for name, delays in waits.items()}
