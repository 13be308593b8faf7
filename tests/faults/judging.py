"""Comparison of a fleet's alarms with DuckDB over the raw readings."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import duckdb
import numpy as np
from tests.e2e.fed_fleet import FedFleet, judge, until
from tests.e2e.feeder import Feeder, close_alert, hot_alert

HOT, WARM = hot_alert("hot", 3.0), close_alert("warm", 9.0)
# One alert that raises an alarm for each reading, and one that joins what edges retain.
ALERTS = HOT + WARM


def settle(fed: FedFleet, feeder: Feeder, seconds: float = 240) -> None:
    """End the streams, and wait until the joiner has decided all readings before the end."""
    last = feeder.second
    feeder.close(last + 60)
    until(lambda: fed.passed(last + 20), seconds)


def check_alarms(fed: FedFleet, feeder: Feeder, directory: Path) -> int:
    """Assert that no alarm of `ALERTS` is missed, extra, or of two identities; returns their number."""
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
