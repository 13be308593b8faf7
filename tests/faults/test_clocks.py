"""Fault 7: sensors whose clocks are years ahead, years behind or jump, and steps of the machine's clock.

libfaketime shifts the clock of all processes of the fleet, the broker's too, while they run. Monotonic
clocks go on, as they do when NTP steps the clock.
"""

from __future__ import annotations

import time
from pathlib import Path

import orjson
import pytest
from tests.faults.load import SECOND
from tests.faults.loaded_fleet import LoadedFleet, loaded_fleet

from tamis.messaging.topic_reader import TopicReader
from tamis.messaging.topics import DEAD_LETTERS

FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")
STEPS = ("+3h", "-3h", "+0")  # of the clock, from the true time
YEAR = 365 * 86_400 * SECOND
# Times of the wrong readings, from the true time.
AHEAD = (80 * YEAR // 2, 2 * YEAR, YEAR // 100)
BEHIND = (-30 * YEAR, -YEAR, -3_600 * SECOND)
pytestmark = [
    pytest.mark.faults,
    pytest.mark.timeout(2400),
    pytest.mark.skipif(not FAKETIME.exists(), reason="needs libfaketime (apt-get install libfaketime)"),
]


def test_wrong_clocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = tmp_path / "clock"
    _step(clock, "+0")
    for name, value in {
        "LD_PRELOAD": str(FAKETIME),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_CACHE_DURATION": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "NO_FAKE_STAT": "1",
    }.items():
        monkeypatch.setenv(name, value)
    start = time.time_ns() // 1000 // SECOND * SECOND
    with loaded_fleet(tmp_path, seed=7, start=start) as fed:
        wrong: list[bytes] = []
        fed.load.until(20)
        fed.wait("the first event seconds", lambda: fed.passed(10))
        for step in STEPS:
            _step(clock, step)
            for _ in range(15):
                wrong += _wrong_readings(fed)
                fed.load.until(fed.load.second + 2, pause=0.2)
            fed.wait(f"the joiner after a step of {step}", lambda: fed.passed(fed.load.second - 10))
        found = fed.check()
        with TopicReader(fed.fleet.kafka_settings().client_config(), [DEAD_LETTERS]) as reader:
            letters = [record.value or b"" for record in reader.snapshot()]
        assert sorted(letters) == sorted(wrong), "exactly the readings from the future are dead letters"
        fed.said(f"clock steps {STEPS}, {len(wrong)} readings from the future, as many from the past", found)


def _step(clock: Path, offset: str) -> None:
    new = clock.with_suffix(".new")
    new.write_text(f"{offset}\n")
    new.replace(clock)


def _wrong_readings(fed: LoadedFleet) -> list[bytes]:
    """Post readings of sensors with wrong clocks, one of which jumps; returns those that are too far ahead.
    Their temperature raises no alarm, in whatever way late readings are joined.
    """
    now = fed.load.start + fed.load.second * SECOND
    lines = {
        offset: orjson.dumps({"station": number, "ts": now + offset, "temp": 0.0})
        for number, offset in enumerate((*AHEAD, *BEHIND))
    }
    for stream in fed.load.posted:
        assert fed.load.offer(stream, b"\n".join(lines.values()))
    return [lines[offset] for offset in AHEAD for _ in fed.load.posted]
