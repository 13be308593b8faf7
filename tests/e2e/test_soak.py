"""Soak test of a fleet with stations that come and go: no resource grows, and no alarm is missed."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from statistics import median

import numpy as np
import psutil
import pytest
from tests.e2e.fed_fleet import FedFleet, judge, until
from tests.e2e.feeder import Feeder, close_alert, swell_alert

MINUTES = float(os.environ.get("TAMIS_SOAK_MINUTES", "10"))
# Event seconds in a wall second, each with 16 readings. 24 hours at 50 take 29 minutes.
SPEED = float(os.environ.get("TAMIS_SOAK_SPEED", "20"))
SECONDS = round(60 * MINUTES * SPEED)  # of event time
SAMPLES = 20
# Event seconds that a station lives: within the soak thousands come and go, and unused keys are forgotten.
LIFETIME = 60
# Samples before these are not judged: allocators and JVMs take their time to settle.
SETTLED = SAMPLES // 4
# The growth from there to the end, by the slope, may be this share of the size, and so many megabytes or
# descriptors more.
SHARE, MORE = 0.1, 30.0

Sizes = Mapping[str, float]


def held(fed: FedFleet) -> Sizes:
    """Megabytes: resident memory of each service, its JVM apart, with its children, and the files of each.
    Also the number of open descriptors.
    """
    found: dict[str, float] = {}
    for name, process in fed.fleet.processes.items():
        whole = psutil.Process(process.pid)
        for one in (whole, *whole.children(recursive=True)):
            part = f"{name} JVM" if one.name() == "java" else name
            found[part] = found.get(part, 0.0) + one.memory_info().rss / 2**20
            opened = f"{part} descriptors"
            found[opened] = found.get(opened, 0.0) + one.num_fds()
        files = (fed.fleet.spec.directory / name).rglob("*")
        found[f"{name} files"] = sum(_size(path) for path in files) / 2**20
    return found


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0  # removed since it was listed


def slope(sizes: Sequence[float]) -> float:
    """The median of the slopes between any two samples (Sen 1968), per sample: one sample changes little."""
    return median((after - before) / (j - i) for (i, before), (j, after) in combinations(enumerate(sizes), 2))


def grown(sizes: Sequence[float]) -> float:
    """The growth from the first to the last sample: by the slope, or by a step in between that stays."""
    third = len(sizes) // 3
    return max(slope(sizes) * (len(sizes) - 1), median(sizes[-third:]) - median(sizes[:third]))


def growing(samples: Sequence[Sizes]) -> dict[str, tuple[float, float]]:
    """What grows by more than it may: its median size and its growth from SETTLED to the end."""
    found = {}
    for name in samples[0]:
        sizes = [sample[name] for sample in samples[SETTLED:]]
        if grown(sizes) > SHARE * median(sizes) + MORE:
            found[name] = (median(sizes), grown(sizes))
    return found


def test_a_leak_and_a_step_are_found_and_a_peak_is_none() -> None:
    flat = [500.0 + 20 * (at % 3) for at in range(SAMPLES)]
    leak = [size + 10 * at for at, size in enumerate(flat)]
    peak = [900.0 if at == SAMPLES - 3 else size for at, size in enumerate(flat)]
    step = [size + 126 * (at >= SAMPLES // 2) for at, size in enumerate(flat)]
    start = [size - 300 * (at < SETTLED) for at, size in enumerate(flat)]
    samples = [
        {"flat": f, "leak": k, "peak": p, "step": t, "start": s}
        for f, k, p, t, s in zip(flat, leak, peak, step, start, strict=True)
    ]
    assert growing(samples).keys() == {"leak", "step"}


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
            last = SECONDS * sample // SAMPLES
            while feeder.second < last:
                due = min(last, int((time.monotonic() - began) * SPEED))
                feeder.until(due, pause=0.0)
                time.sleep(0.05)
            samples.append(held(fed))
            shown = ", ".join(f"{name} {size:.0f}" for name, size in samples[-1].items())
            took = time.monotonic() - began
            print(f"{took:5.0f} s, {feeder.second} s of event time ({feeder.second / took:.0f}x): {shown}")
        end = feeder.second
        feeder.close(end + 4_000)
        until(lambda: fed.passed(end + 3_900), 600)
        alarms = fed.alarms()
    finally:
        feeder.end()
        codes = fed.fleet.stop()
    assert codes == dict.fromkeys(codes, 0)
    recordings = feeder.recordings(tmp_path)
    for name, sql in alerts.items():
        verdict = judge(sql, name, recordings, alarms[name], lambda a, s: np.ones(len(a), np.bool_))
        assert verdict.extra == 0
    for name in samples[0]:
        sizes = [sample[name] for sample in samples[SETTLED:]]
        print(f"{name}: {median(sizes):.0f}, {grown(sizes):+.1f} from sample {SETTLED} on")
    assert not growing(samples)
