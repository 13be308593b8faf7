"""Fault 7: sensors whose clocks are years ahead, years behind or jump, and steps of the machine's clock.

`stepped_clock.c` shifts the wall clock of all processes of the fleet, the broker's too, while they run.
Monotonic clocks go on, as they do when NTP steps the clock.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
import time
from pathlib import Path

import orjson
import psutil
import pytest
from tests.faults.load import SECOND
from tests.faults.loaded_fleet import MARGIN, LoadedFleet, loaded_fleet
from tests.integration.edges import Reader, wait_for

from tamis.messaging.topic_reader import Record, TopicReader
from tamis.messaging.topics import ALARMS, DEAD_LETTERS, EPISODES

SOURCE = Path(__file__).with_name("stepped_clock.c")
STEPS = (3 * 3_600, -3 * 3_600, 0)  # seconds from the true time
YEAR = 365 * 86_400 * SECOND
# Times of the wrong readings, from the true time.
AHEAD = (80 * YEAR // 2, 2 * YEAR, YEAR // 100)
BEHIND = (-30 * YEAR, -YEAR, -3_600 * SECOND)
pytestmark = [
    pytest.mark.faults,
    pytest.mark.timeout(2400),
    pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler"),
]


def test_wrong_clocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, library = tmp_path / "clock", tmp_path / "stepped_clock.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(SOURCE)], check=True)
    clock.write_bytes(struct.pack("q", 0))
    monkeypatch.setenv("LD_PRELOAD", str(library))
    monkeypatch.setenv("STEPPED_CLOCK", str(clock))
    start = time.time_ns() // 1000 // SECOND * SECOND
    with loaded_fleet(tmp_path, seed=7, start=start) as fed:
        wrong: list[bytes] = []
        fed.begin()
        _shifted(fed, library)
        for step in STEPS:
            _step(clock, step)
            for _ in range(15):
                wrong += _wrong_readings(fed)
                fed.load.until(fed.load.second + 2, pause=0.2)
            fed.wait(f"the joiner after a step to {step} s", lambda: fed.passed(fed.load.second - MARGIN))
        found = fed.check()
        letters = _letters(fed)
        assert sorted(letters.values()) == sorted(wrong), "exactly the readings from the future"
        # Written by the joiner, by the alerts service and by the edge.
        for topic in (ALARMS, EPISODES, DEAD_LETTERS):
            times = [record.timestamp // 1000 for record in _records(fed, topic)]
            assert max(times) - min(times) > max(STEPS) - min(STEPS) - 60, f"no step in {topic}"
        fed.said(
            f"clock steps {STEPS} s, {len(wrong)} readings from the future, as many from the past", found
        )


def _shifted(fed: LoadedFleet, library: Path) -> None:
    """All processes of the fleet have the library that shifts their clock."""
    pids = [fed.fleet.broker.pid, *(process.pid for process in fed.fleet.processes.values())]
    for process in map(psutil.Process, pids):
        for one in (process, *process.children(recursive=True)):
            if one.status() != psutil.STATUS_ZOMBIE:
                assert str(library) in Path(f"/proc/{one.pid}/maps").read_text(), one


def _records(fed: LoadedFleet, topic: str) -> list[Record]:
    with TopicReader(fed.fleet.kafka_settings().client_config(), [topic]) as reader:
        return list(reader.snapshot())


def _letters(fed: LoadedFleet) -> dict[tuple[str, str], bytes]:
    """The dead letters by source and offset: a shard that was declared gone reads some readings again, whose
    dead letters come again.
    """
    count = len(_records(fed, DEAD_LETTERS))
    reader = Reader(fed.fleet.bootstrap, [DEAD_LETTERS])
    try:
        wait_for("all dead letters", lambda: len(reader.read()) >= count)
        return {
            (message.headers["source.topic"], message.headers["source.offset"]): message.value
            for message in reader.messages
        }
    finally:
        reader.close()


def _step(clock: Path, seconds: int) -> None:
    """Set the shift in place: processes have mapped the file."""
    with clock.open("r+b") as file:
        file.write(struct.pack("q", seconds))


def _wrong_readings(fed: LoadedFleet) -> list[bytes]:
    """Post readings of sensors with wrong clocks, one of which jumps; returns those that are too far ahead.
    Their temperature raises no alarm, in whatever way late readings are joined.
    """
    now = fed.load.start + fed.load.second * SECOND
    wrong = list(enumerate((*AHEAD, *BEHIND)))
    lines = {
        offset: orjson.dumps({"station": number, "ts": now + offset, "temp": 0.0}) for number, offset in wrong
    }
    for stream in fed.load.posted:
        assert fed.load.send(stream, b"\n".join(lines.values()))
        # Late readings: windows that have ended needn't count them.
        fed.load.unsure[stream] += [(number, now + offset, 0.0) for number, offset in wrong if offset < 0]
    return [lines[offset] for offset in AHEAD for _ in fed.load.posted]
