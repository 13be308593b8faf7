"""Alerts of windows, each of partial aggregates and of every reading, on streams of their own."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.edge import SOURCE
from benchmarks.readings import stream

KEYS = 1_000

MEAN = "avg(temp) AS mean"
SEVERAL = (
    "count(*) AS n, sum(temp) AS total, min(temp) AS least, max(temp) AS most, stddev_samp(temp) AS spread"
)
TUMBLE = "TUMBLE({0}, ts, INTERVAL '{1}' MINUTE)"
HOP = "HOP({0}, ts, INTERVAL '1' MINUTE, INTERVAL '10' MINUTE)"
ALERT = """
CREATE ALERT {name} WITH (edge = '{edge}') AS
SELECT window_end, station, {select} FROM {window} GROUP BY window_end, station;
"""


@dataclass(frozen=True)
class Way:
    """A stream with its alerts; `raw`: edges publish every reading. `source`: the topic of its readings."""

    stream: str
    what: str
    windows: tuple[str, ...]
    select: str
    raw: bool
    source: str = SOURCE
    keys: int = KEYS

    @property
    def sql(self) -> str:
        """The stream and its alerts."""
        alerts = (
            ALERT.format(
                name=f"{self.stream}_{number}",
                edge="raw" if self.raw else "auto",
                select=self.select,
                window=window.format(self.stream, 1),
            )
            for number, window in enumerate(self.windows)
        )
        return stream(self.stream, self.keys) + "".join(alerts)


_SHARED = (TUMBLE, TUMBLE.replace("{1}", "15"), HOP)
WAYS = (
    Way("means", "avg by minute: partial aggregates", (TUMBLE,), MEAN, raw=False),
    Way("raw_means", "avg by minute: every reading", (TUMBLE,), MEAN, raw=True),
    Way("several", "5 aggregates, 3 windows: partial aggregates", _SHARED, SEVERAL, raw=False),
    Way("raw_several", "5 aggregates, 3 windows: every reading", _SHARED, SEVERAL, raw=True),
)
HOURS = Way(
    "hours",
    "5 aggregates by hour, 10,000 groups",
    (TUMBLE.replace("{1}", "60"),),
    SEVERAL,
    raw=False,
    source="manykeys",
    keys=10_000,
)
