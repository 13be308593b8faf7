"""Soak test of a fleet with stations that come and go: no resource grows, and no alarm is missed."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

import numpy as np
import psutil
import pytest
from tests.e2e.fed_fleet import FedFleet, judge, until
from tests.e2e.feeder import Feeder, close_alert, swell_alert

MINUTES = float(os.environ.get("TAMIS_SOAK_MINUTES", "10"))
SAMPLES = 20
# Wall seconds for one event second of 16 readings: 320 of them a second, which leaves cores to spare.
PAUSE = 0.05
# Event seconds that a station lives: within the soak hundreds come and go.
LIFETIME = 300
# What may be added from the second quarter to the last: allocators and JVMs take their time to settle.
SHARE, MEGABYTES = 1.2, 30.0

Sizes = Mapping[str, float]


def held(fed: FedFleet) -> Sizes:
    """Megabytes: resident memory of each service with its children, and the files of each."""
    found = {}
    for name, process in fed.fleet.processes.items():
        whole = psutil.Process(process.pid)
        found[name] = sum(p.memory_info().rss for p in (whole, *whole.children(recursive=True))) / 2**20
        files = (fed.fleet.spec.directory / name).rglob("*")
        found[f"{name} files"] = sum(_size(path) for path in files) / 2**20
    return found


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0  # removed since it was listed


def growing(samples: Sequence[Sizes]) -> dict[str, tuple[float, float]]:
    """What was larger in the last quarter than in the second one by more than it may."""
    quarter = len(samples) // 4
    found = {}
    for name in samples[0]:
        before = median(sample[name] for sample in samples[quarter : 2 * quarter])
        after = median(sample[name] for sample in samples[-quarter:])
        if after > SHARE * before + MEGABYTES:
            found[name] = (before, after)
    return found


@pytest.mark.soak
@pytest.mark.timeout(600 + 120 * MINUTES)
def test_nothing_grows_and_nothing_is_missed(tmp_path: Path) -> None:
    fed = FedFleet(tmp_path / "fleet")
    feeder = Feeder(seed=11, lifetime=LIFETIME)
    alerts = {"warm": close_alert("warm", 9.0), "swell": swell_alert("swell", 10.0)}
    samples: list[Sizes] = []
    try:
        feeder.url = fed.start("".join(alerts.values()))
        began = time.monotonic()
        for sample in range(1, SAMPLES + 1):
            while time.monotonic() - began < sample * 60 * MINUTES / SAMPLES:
                feeder.until(feeder.second + 20, PAUSE)
            samples.append(held(fed))
            shown = ", ".join(f"{name} {size:.0f}" for name, size in samples[-1].items())
            print(f"{60 * MINUTES * sample / SAMPLES:5.0f} s, event second {feeder.second}, MB: {shown}")
        end = feeder.second
        feeder.close(end + 4_000)
        until(lambda: fed.passed(end + 3_900), 120)
        alarms = fed.alarms()
    finally:
        feeder.end()
        codes = fed.fleet.stop()
    assert codes == dict.fromkeys(codes, 0)
    recordings = feeder.recordings(tmp_path)
    for name, sql in alerts.items():
        verdict = judge(sql, name, recordings, alarms[name], lambda a, s: np.ones(len(a), np.bool_))
        assert verdict.extra == 0
    assert not growing(samples)
