"""Alerts in a running fleet that read the topic of a derived stream: their alarms, and what edges publish."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import orjson
import pytest
from tests.e2e.fed_fleet import judge, until
from tests.e2e.feeder import SECOND, Feeder
from tests.e2e.one_fleet.conftest import OneFleet

from tamis.messaging.topics import PLANS
from tamis.plan.json_form import decode_plan

MILD = "CREATE STREAM mild AS SELECT ts AS at, temp AS celsius, station FROM air WHERE temp > 0;"
HEATED = "CREATE ALERT heated AS SELECT station, temp FROM air WHERE temp > 1;"
APART = """
CREATE ALERT apart AS SELECT a.station, a.temp AS air, s.temp AS surface FROM air a JOIN surface s
  ON a.station = s.station AND s.ts BETWEEN a.ts - INTERVAL '5' SECOND AND a.ts + INTERVAL '5' SECOND
WHERE a.temp > 1 AND (a.temp - s.temp) * (a.temp - s.temp) BETWEEN 9 AND 100;
"""
TOPIC = "tamis.stream.mild.1"
START = 30_000  # event seconds
LAST = (START + 155) * SECOND


@pytest.mark.timeout(900)  # several minutes where others want the cores too
def test_alerts_read_a_derived_stream_and_tuples_are_published_once(
    tmp_path: Path, one_fleet: OneFleet
) -> None:
    feeder = Feeder(seed=11, start=START)
    try:
        feeder.url = one_fleet.url
        one_fleet.apply(MILD + HEATED)
        one_fleet.running("heated")
        feeder.until(START + 60)
        one_fleet.apply(APART)
        added = one_fleet.running("apart")
        feeder.until(START + 160)
        feeder.close(START + 4_000)
        until(lambda: one_fleet.passed(START + 3_900), 90)
        alarms, records = one_fleet.alarms(), one_fleet.records(TOPIC)
    finally:
        feeder.end()
    assert one_fleet.alert("heated")["state"] == "running"
    newest = max(map(decode_plan, one_fleet.records(PLANS)), key=lambda plan: plan.version)
    (apart,) = (one for one in newest.definitions if one.alert == "apart")
    assert {one.topic for one in apart.inputs if one.stream != "surface"} == {TOPIC}
    recordings = feeder.recordings(tmp_path)
    readings = [row for row in feeder.posted["air"] if row["temp"] > 0]
    documents = [document for value in records if "kind" not in (document := orjson.loads(value))["_"]]
    published = Counter((d["station"], d["at"], d["celsius"]) for d in documents)
    assert published == Counter((row["station"], row["ts"], row["temp"]) for row in readings)
    heated = {(a["tuples"]["air"]["station"], a["tuples"]["air"]["ts"]) for a in alarms["heated"]}
    assert heated == {(row["station"], row["ts"]) for row in readings if row["temp"] > 1}
    found = judge(
        MILD + APART,
        "apart",
        recordings,
        alarms["apart"],
        lambda a, s: (a >= added["air"]) & (s >= added["surface"]) & (a < LAST) & (s < LAST),
    )
    assert found.extra == 0
    assert all(set(alarm["tuples"]["a"]) == {"station", "ts", "temp"} for alarm in alarms["apart"])
