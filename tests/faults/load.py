"""Load of fault tests: readings of two streams as NDJSON, posted to an edge that may be away."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import numpy as np
import orjson
from tests.faults.windows import window_alerts

SECOND = 1_000_000
STATIONS = 100
# Readings of one event second: one of each station and stream.
PER_SECOND = 2 * STATIONS
NEAR = 5 * SECOND
# Temperatures have two decimals, so that no difference is near it: one that DOUBLE rounds to the threshold
# raises an alarm (decision 38) which DuckDB doesn't find.
DIFFERENCE, HOT = 15.005, 12.0
GAP = 10 * SECOND
# Stations below this number are those of the window alerts, which raise an alarm for each window and station.
WINDOWED = 8

STREAMS = f"""
CREATE STREAM air (
  station INT KEY, ts TIMESTAMP, temp DOUBLE CHECK (temp BETWEEN -60 AND 70),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH (keys = {STATIONS}, rate = '{STATIONS}/s', max_ahead = '1 day', max_stall = '2 hours');
CREATE STREAM surface (
  station INT KEY, ts TIMESTAMP, temp DOUBLE CHECK (temp BETWEEN -60 AND 70),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH (keys = {STATIONS}, rate = '{STATIONS}/s', max_ahead = '1 day', max_stall = '2 hours');
"""
ALERTS = f"""
CREATE ALERT warm AS
SELECT a.station, a.ts, a.temp - s.temp AS difference FROM air a JOIN surface s
  ON a.station = s.station AND ABS(a.ts - s.ts) <= INTERVAL '{NEAR // SECOND}' SECOND
WHERE a.temp - s.temp > {DIFFERENCE};
CREATE ALERT hot WITH (gap = '{GAP // SECOND} seconds') AS
SELECT station, ts, temp FROM air WHERE temp > {HOT};
{window_alerts(f"station < {WINDOWED}")}"""

Row = tuple[int, int, float]  # station, event time in microseconds, temperature


class Load:
    """Random walks of temperature, one reading a second, station and stream, from event time `start` on.

    `posted` has each accepted reading once, by stream. A reading whose answer was lost is posted again, so
    that an edge may get it twice: `unsure` has it once for each such answer.
    """

    def __init__(self, seed: int, start: int = 0) -> None:
        """`start`: event time of second 0, in microseconds."""
        self.url = ""
        self.start = start
        self.second = 0
        self.posted: dict[str, list[Row]] = {"air": [], "surface": []}
        self.unsure: dict[str, list[Row]] = {"air": [], "surface": []}
        self.repeated = 0  # requests that were sent again
        self._random = np.random.default_rng(seed)
        self._levels = {stream: np.zeros(STATIONS) for stream in self.posted}
        self._client = httpx.Client(timeout=10)

    def authorize(self, token: str) -> None:
        """Send this token with each post."""
        self._client.headers["authorization"] = f"Bearer {token}"

    def until(self, second: int, pause: float = 0.0, only: str | None = None, step: int = 1) -> None:
        """Post the readings of every `step`th event second up to one, of one stream or of both, with `pause`
        seconds of wall time between two posts.
        """
        while self.second < second:
            self.second += step
            for stream in self.posted if only is None else (only,):
                self.post(stream, self.walk(stream, self.second))
            time.sleep(pause)

    def walk(self, stream: str, second: int) -> list[Row]:
        """The next readings of a stream, at random times within an event second."""
        levels = self._levels[stream] = self._levels[stream] * 0.9 + self._random.normal(0, 2, STATIONS)
        times = self.start + second * SECOND + np.sort(self._random.integers(0, SECOND, STATIONS))
        stations = self._random.permutation(STATIONS)
        return list(
            zip(stations.tolist(), times.tolist(), np.round(levels[stations], 2).tolist(), strict=True)
        )

    def close(self, second: int) -> None:
        """Post readings far behind all others, which raise no alarm: watermarks pass all earlier readings."""
        for extra in range(3):
            self.second = second + 60 * extra
            for stream in self.posted:
                at = self.start + self.second * SECOND
                self.post(stream, [(station, at, 0.0) for station in range(STATIONS)])

    def post(self, stream: str, rows: list[Row]) -> None:
        """Post readings until the edge accepts them, for at most five minutes."""
        deadline = time.monotonic() + 300
        while not self.offer(stream, rows):
            assert time.monotonic() < deadline, "the edge accepts nothing"
            self.repeated += 1
            time.sleep(0.2)

    def offer(self, stream: str, rows: list[Row]) -> bool:
        """True if the edge has accepted these readings."""
        lines = [orjson.dumps({"station": row[0], "ts": row[1], "temp": row[2]}) for row in rows]
        try:
            accepted = self.send(stream, b"\n".join(lines))
        except httpx.ConnectError:
            return False
        except httpx.TransportError:
            self.unsure[stream] += rows
            return False
        if accepted:
            self.posted[stream] += rows
        return accepted

    def send(self, stream: str, lines: bytes) -> bool:
        """True if the edge has accepted these lines. Nothing is noted of them."""
        answer = self._client.post(
            f"{self.url}/v1/streams/{stream}",
            content=lines,
            headers={"content-type": "application/x-ndjson"},
        )
        assert answer.status_code in (202, 503), answer.text
        return answer.status_code == 202

    def end(self) -> None:
        """Close the connection."""
        self._client.close()

    @contextmanager
    def running(self, pause: float, last: int | None = None) -> Iterator[None]:
        """Post in the background, event second by event second, until the block ends or to the last one."""
        stopping = threading.Event()
        failures: list[BaseException] = []

        def run() -> None:
            try:
                while not stopping.is_set() and (last is None or self.second < last):
                    self.until(self.second + 1, pause)
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            stopping.set()
            thread.join(330)
            assert not thread.is_alive()
        if failures:
            raise failures[0]
