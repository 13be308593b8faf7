"""Comparison of a fleet's alarms with DuckDB over the raw readings."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import duckdb
import numpy as np
import orjson
from tests.e2e.fed_fleet import FedFleet, judge, until
from tests.e2e.feeder import SECOND, STATIONS, Feeder, close_alert, hot_alert
from tests.faults.windows import count_cuts, judge_windows, window_alerts

from tamis.messaging.topics import ALARMS

HOT, WARM = hot_alert("hot", 3.0), close_alert("warm", 9.0)
# One alert that raises an alarm for each reading, one that joins what edges retain, and two that get partial
# aggregates.
ALERTS = HOT + WARM + window_alerts(f"station <> 'k{STATIONS}'")


def settle(fed: FedFleet, feeder: Feeder, seconds: float = 240) -> int:
    """End the streams, and wait until the joiner has decided all readings before the end. Returns the event
    time that it has passed, in microseconds.
    """
    last = feeder.second
    feeder.close(last + 60)
    until(lambda: fed.passed(last + 20), seconds)
    return (last + 20) * SECOND


def check_windows(fed: FedFleet, feeder: Feeder, passed: int) -> None:
    """Assert that each window until `passed` counts each reading of air as often as an edge got it."""
    accepted, unsure = (
        [(reading["station"], reading["ts"]) for reading in readings["air"]]
        for readings in (feeder.posted, feeder.unsure)
    )
    assert count_cuts(fed.fleet.kafka_settings().client_config()), "edges send partial aggregates"
    verdict = judge_windows(accepted, unsure, map(orjson.loads, fed.records(ALARMS)), passed)
    print(f"\n{verdict}")
    assert verdict.right and verdict.windows > 100, verdict


def check_alarms(fed: FedFleet, feeder: Feeder, directory: Path) -> int:
    """Assert that no alarm of `ALERTS` is missed, extra, or of two identities. Returns the number of those
    that aren't of windows.
    """
    recordings = feeder.recordings(directory)
    with duckdb.connect() as connection:
        path = str(directory / "air.csv")
        wanted = connection.execute("SELECT station, ts FROM read_csv(?) WHERE temp > 3", [path]).fetchall()
    expected = Counter((station, ts) for station, ts in wanted)
    assert len(expected) == len(wanted) > 100
    until(lambda: len(fed.alarms().get("hot", ())) >= len(wanted), 120)
    alarms = fed.alarms()
    raised = Counter((alarm["key"][0], alarm["event_time"]) for alarm in alarms["hot"])
    assert raised == expected, {"missed": expected - raised, "extra": raised - expected}
    verdict = judge(WARM, "warm", recordings, alarms["warm"], lambda a, s: np.ones(len(a), np.bool_))
    assert (verdict.missed, verdict.extra) == (0, 0), verdict
    return len(alarms["hot"]) + len(alarms["warm"])
