"""Synthetic weather stations: random walks, as realistic JSON of about 120 bytes a reading."""

from __future__ import annotations

from collections.abc import Iterator
from time import time_ns
from typing import Any

import numpy as np
import orjson

SECOND = 1_000_000

# Readings of a station in a second of event time, and the greatest deviation from an even rate.
RATE = 10
_JITTER = SECOND // (4 * RATE)

STREAM = """
CREATE STREAM {name} (
  station VARCHAR KEY, ts TIMESTAMP,
  temp DOUBLE CHECK (temp BETWEEN -60 AND 70), rh DOUBLE CHECK (rh BETWEEN 1 AND 100),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH (keys = {keys}, rate = '{rate}/s');
"""

DEW_POINT = """
CREATE FUNCTION dew_point(t DOUBLE, h DOUBLE) RETURNS DOUBLE AS
  243.04 * (ln(h / 100) + 17.625 * t / (243.04 + t)) / (17.625 - ln(h / 100) - 17.625 * t / (243.04 + t));
"""


def stream(name: str, keys: int, rate: int = RATE) -> str:
    """The CREATE STREAM statement."""
    return STREAM.format(name=name, keys=keys, rate=rate)


def station(number: int) -> str:
    """The name of a station."""
    return f"station-{number:05d}"


def weather(count: int, keys: int, start: int, seed: int) -> Iterator[tuple[bytes, bytes]]:
    """Message key and value of at least `count` readings, from event time `start` (microseconds) on: every
    station in turn, temperature and humidity each a random walk within its domain.
    """
    random = np.random.default_rng(seed)
    names = [station(number) for number in range(keys)]
    temp, rh = random.normal(15, 8, keys), random.normal(60, 15, keys)
    for step in range(-(-count // keys)):
        temp = np.clip(temp + random.normal(0, 0.2, keys), -40, 50)
        rh = np.clip(rh + random.normal(0, 0.5, keys), 5, 99)
        beat = start + step * SECOND // RATE
        times = beat + random.integers(-_JITTER, _JITTER, keys)
        columns = zip(names, times.tolist(), temp.round(2).tolist(), rh.round(1).tolist(), strict=True)
        for name, time, t, h in columns:
            value = {
                "station": name,
                "ts": time,
                "temp": t,
                "rh": h,
                "battery": 3.61,
                "firmware": "2.4.1",
                "seq": step,
            }
            yield name.encode(), orjson.dumps(value)


def readings_of_now(count: int, keys: int, random: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Readings of this moment, of random stations."""
    now = time_ns() // 1000
    numbers = random.integers(0, keys, count).tolist()
    temps = (15 + random.normal(size=count)).round(2).tolist()
    for number, temp in zip(numbers, temps, strict=True):
        yield {"station": station(number), "ts": now, "temp": temp, "rh": 60.0}
