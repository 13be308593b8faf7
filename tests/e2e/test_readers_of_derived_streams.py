"""Alerts in a running fleet that read the topic of a derived stream: their alarms, and what edges publish."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.e2e.fed_fleet import FedFleet, judge, until
from tests.e2e.feeder import SECOND, Feeder

WARM = "CREATE STREAM warm AS SELECT ts AS at, temp AS celsius, station FROM air WHERE temp > 0;"
HOT = "CREATE ALERT hot AS SELECT station, temp FROM air WHERE temp > 1;"
APART = """
CREATE ALERT apart AS SELECT a.station, a.temp AS air, s.temp AS surface FROM air a JOIN surface s
  ON a.station = s.station AND s.ts BETWEEN a.ts - INTERVAL '5' SECOND AND a.ts + INTERVAL '5' SECOND
WHERE a.temp > 1 AND (a.temp - s.temp) * (a.temp - s.temp) BETWEEN 9 AND 100;
"""
TOPIC = "tamis.stream.warm.1"


@pytest.mark.timeout(900)  # several minutes where others want the cores too
def test_alerts_read_a_derived_stream_and_tuples_are_published_once(tmp_path: Path) -> None:
    fed = FedFleet(tmp_path / "fleet")
    feeder = Feeder(seed=11)
    try:
        feeder.url = fed.start(WARM + HOT)
        feeder.until(60)
        fed.apply(APART)
        added = fed.running("apart")
        feeder.until(160)
        feeder.close(4_000)
        until(lambda: fed.passed(3_900), 90)
        alarms, records = fed.alarms(), fed.records(TOPIC)
        explained: dict[str, Any] = fed.alert("hot")
    finally:
        feeder.end()
        codes = fed.fleet.stop()
    assert codes == dict.fromkeys(codes, 0)
    assert explained["state"] == "running"
    recordings = feeder.recordings(tmp_path)
    readings = [row for row in feeder.posted["air"] if row["temp"] > 0]
    documents = [document for value in records if "kind" not in (document := orjson.loads(value))["_"]]
    published = Counter((d["station"], d["at"], d["celsius"]) for d in documents)
    assert published == Counter((row["station"], row["ts"], row["temp"]) for row in readings)
    hot = {(a["tuples"]["air"]["station"], a["tuples"]["air"]["ts"]) for a in alarms["hot"]}
    assert hot == {(row["station"], row["ts"]) for row in readings if row["temp"] > 1}
    found = judge(
        WARM + APART,
        "apart",
        recordings,
        alarms["apart"],
        lambda a, s: (a >= added["air"]) & (s >= added["surface"]) & (a < 155 * SECOND) & (s < 155 * SECOND),
    )
    assert found.extra == 0
    assert all(set(alarm["tuples"]["a"]) == {"station", "ts", "temp"} for alarm in alarms["apart"])
