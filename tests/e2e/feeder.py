"""Synthetic stations that post readings to an edge over HTTP, with a record of what they posted."""

from __future__ import annotations

import csv
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import orjson

from tamis.query.parse import catalog_of
from tamis.recordings.typed import Recording, read_recording

SECOND = 1_000_000
STATIONS = 8

STREAMS = """
CREATE STREAM air (
  station VARCHAR KEY, ts TIMESTAMP,
  temp DOUBLE CHECK (temp BETWEEN -60 AND 70), rh DOUBLE CHECK (rh BETWEEN 1 AND 100),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH (keys = 8, rate = '2/s');
CREATE STREAM surface (
  station VARCHAR KEY, ts TIMESTAMP, temp DOUBLE CHECK (temp BETWEEN -60 AND 70),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH (keys = 8, rate = '2/s');
"""


def close_alert(name: str, threshold: float, *, replace: bool = False) -> str:
    """An alert on air that is warmer than the surface by more than `threshold` within five seconds."""
    return f"""
    CREATE {"OR REPLACE " if replace else ""}ALERT {name} WITH (gap = '10 seconds') AS
    SELECT a.station, a.ts, a.temp - s.temp AS difference FROM air a JOIN surface s
      ON a.station = s.station AND ABS(a.ts - s.ts) <= INTERVAL '5' SECOND
    WHERE a.temp - s.temp > {threshold};"""


def swell_alert(name: str, threshold: float) -> str:
    """An alert on air that is warmer than the surface by more than `threshold` within one of the windows of
    twenty seconds that start every ten."""
    windows = "INTERVAL '10' SECOND, INTERVAL '20' SECOND"
    return f"""
    CREATE ALERT {name} AS
    SELECT a.station, a.window_start, a.ts, a.temp - s.temp AS difference
    FROM HOP(air, ts, {windows}) a JOIN HOP(surface, ts, {windows}) s
      ON a.station = s.station AND a.window_start = s.window_start
    WHERE a.temp - s.temp > {threshold};"""


def hot_alert(name: str, above: float, *, replace: bool = False) -> str:
    """An alert on air that is warmer than `above`."""
    return f"""
    CREATE {"OR REPLACE " if replace else ""}ALERT {name} AS
    SELECT station, ts, temp FROM air WHERE temp > {above};"""


class Feeder:
    """Random walks of temperature, one reading a second, station and stream, from an event second on.

    `lifetime`: event seconds after which stations are replaced by others; 0: never.
    """

    def __init__(self, seed: int, lifetime: int = 0, start: int = 0) -> None:
        self.url = ""  # the edge's
        self._random = random.Random(seed)
        self._lifetime = lifetime
        self._levels = {(stream, n): 0.0 for stream in ("air", "surface") for n in range(STATIONS)}
        self._client = httpx.Client(timeout=10)
        self.posted: dict[str, list[dict[str, Any]]] = {"air": [], "surface": []}
        # Those of each post without an answer, which an edge may have accepted; they are posted again.
        self.unsure: dict[str, list[dict[str, Any]]] = {"air": [], "surface": []}
        self.second = start

    def until(self, second: int, pause: float = 0.02) -> None:
        """Post up to that event second, with `pause` seconds of wall time between two seconds."""
        while self.second < second:
            self.second += 1
            for stream in self.posted:
                self._post(stream, [self._reading(stream, n) for n in range(STATIONS)])
            time.sleep(pause)

    def close(self, second: int) -> None:
        """Post readings far behind all others, so that watermarks pass them; they raise no alarm."""
        for stream in self.posted:
            for n in range(STATIONS):
                self._levels[stream, n] = 0.0
        for extra in range(3):
            self.second = second + 20 * extra
            for stream in self.posted:
                self._post(stream, [self._reading(stream, n) | {"temp": 0.0} for n in range(STATIONS)])

    def post_lines(self, stream: str, lines: list[bytes]) -> None:
        """Post lines without recording them as readings."""
        kind = {"content-type": "application/x-ndjson"}
        url = f"{self.url}/v1/streams/{stream}"
        self._client.post(url, content=b"\n".join(lines), headers=kind).raise_for_status()

    def end(self) -> None:
        """Close the connection."""
        self._client.close()

    def recordings(self, directory: Path, streams: str = STREAMS) -> dict[str, Recording]:
        """All posted readings by stream, as recordings read from files."""
        catalog = catalog_of(streams)
        read = {}
        for stream, rows in self.posted.items():
            path = directory / f"{stream}.csv"
            with path.open("w", newline="") as file:
                writer = csv.DictWriter(file, list(dict.fromkeys(name for row in rows for name in row)))
                writer.writeheader()
                writer.writerows(rows)
            read[stream] = read_recording(catalog.streams[stream], [str(path)], as_arrived=True)
        return read

    def _reading(self, stream: str, station: int) -> dict[str, Any]:
        level = self._levels[stream, station] = self._levels[stream, station] * 0.9 + self._random.gauss(0, 2)
        time_ = self.second * SECOND + self._random.randrange(SECOND)
        born = self.second // self._lifetime if self._lifetime else 0
        row = {"station": f"k{station + STATIONS * born}", "ts": time_, "temp": round(level, 2)}
        return row | {"rh": 50.0} if stream == "air" else row

    def _post(self, stream: str, rows: list[dict[str, Any]]) -> None:
        self.post_lines(stream, [orjson.dumps(row) for row in rows])
        self.posted[stream] += rows


class PatientFeeder(Feeder):
    """A feeder that posts readings again while the edge is away. `posted_again`: how many."""

    posted_again = 0

    def post_lines(self, stream: str, lines: list[bytes]) -> None:
        deadline = time.monotonic() + 300
        while True:
            try:
                super().post_lines(stream, lines)
                return
            except (httpx.TransportError, httpx.HTTPStatusError) as error:
                if not isinstance(error, httpx.ConnectError | httpx.HTTPStatusError):
                    self.unsure[stream] += map(orjson.loads, lines)
                assert time.monotonic() < deadline
                self.posted_again += len(lines)
                time.sleep(0.1)


@contextmanager
def feeding(feeder: Feeder, pause: float = 0.06) -> Iterator[None]:
    """Readings in the background, some fifteen event seconds a second, with `pause` seconds between two."""
    stopping = threading.Event()

    def feed() -> None:
        while not stopping.is_set():
            feeder.until(feeder.second + 1, pause)

    thread = threading.Thread(target=feed)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join(330)
        assert not thread.is_alive()
