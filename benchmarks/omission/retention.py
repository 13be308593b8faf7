"""Figure 10 of cai-2021: retained tuples by the length of the omission interval."""

from __future__ import annotations

import numpy as np

from benchmarks import plots
from benchmarks.harness import Cell, Result, Say
from benchmarks.omission.streams import Stream, gamma_wiener, of_one_key, readings
from tamis.omission import Ties, retained_by_key

NAME = "omission.retention"
POWERS = range(15)
# Microseconds between two tuples on average: so long that hardly two have the same time.
GAP = 1_000
TIES: tuple[Ties, ...] = ("strict", "fewest")
COLUMNS = (
    "stream",
    "tuples per interval",
    *(f"{what}, {ties}" for what in ("retained", "per interval") for ties in TIES),
)


def run(quick: bool, say: Say) -> Result:
    """Measure. A quick run has fewer tuples, and only intervals that they fill."""
    tuples = 50_000 if quick else 10_000_000
    random = np.random.default_rng(1)
    wiener = gamma_wiener(tuples, GAP, random)
    streams = {
        "Gamma-Wiener": (wiener, GAP),
        "independent": (of_one_key(wiener.times, random.normal(size=tuples)), GAP),
        **{name: (stream, 1) for name, stream in readings().items()},
    }
    rows: list[dict[str, Cell]] = []
    for name, (stream, gap) in streams.items():
        say(name)
        for power in POWERS:
            # With fewer than eight intervals a key, the recording's ends would affect the result too much.
            if 8 * 2**power <= len(stream.times) / len(np.unique(stream.codes)):
                rows.append(_row(name, stream, 2**power, gap))
    return Result(
        NAME,
        "Figure 10: tuples retained, both sides",
        COLUMNS,
        rows,
        {"tuples": tuples, "tuples of the readings": len(readings()["humidity"].times), "quick": quick},
        (
            "retained: share of all tuples; per interval: retained tuples of a key in an omission interval",
            "strict: the paper's rule; fewest: of tuples with the same extreme value, only as many as are"
            " needed",
            "humidity, temperature: readings of four real sensors, one reading in five seconds each",
        ),
        publish=lambda: plots.retention(rows),
    )


def _row(name: str, stream: Stream, per_interval: int, gap: int) -> dict[str, Cell]:
    row: dict[str, Cell] = {"stream": name, "tuples per interval": per_interval}
    for ties in TIES:
        keep = retained_by_key(stream.codes, stream.times, stream.values, per_interval * gap, ties=ties)
        row[f"retained, {ties}"] = float(keep.mean())
        row[f"per interval, {ties}"] = float(keep.mean()) * per_interval
    return row
