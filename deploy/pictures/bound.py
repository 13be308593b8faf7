"""The picture of a memory bound: the tuples that a join keeps, beside the number that was proved."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from deploy.pictures.cores import SECOND, Columns, Edge, Joiner, plan_of
from deploy.pictures.look import AMBER, BLUE, GREY, PALE_RED, RED, panels, save, styled

KEYS = 100
STEP = 5  # seconds of a batch
BEFORE, STALL, AFTER = 120, 300, 180  # seconds: the partner is silent for its whole max_stall
# The join of the tutorial, with a threshold that is never reached: only the memory is of interest.
SQL = """
CREATE STREAM air (
  station VARCHAR KEY, ts TIMESTAMP,
  temp DOUBLE CHECK (temp BETWEEN -60 AND 70), rh DOUBLE CHECK (rh BETWEEN 1 AND 100),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH (keys = 100, rate = '1/s', max_stall = '5 minutes', max_ahead = '10 seconds');
CREATE STREAM surface (
  station VARCHAR KEY, ts TIMESTAMP, temp DOUBLE CHECK (temp BETWEEN -60 AND 70),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH (keys = 100, rate = '1/s', max_stall = '5 minutes', max_ahead = '10 seconds');
CREATE FUNCTION dew_point(t DOUBLE, h DOUBLE) RETURNS DOUBLE AS
  243.04 * (ln(h/100) + 17.625*t/(243.04+t)) / (17.625 - ln(h/100) - 17.625*t/(243.04+t));
CREATE ALERT wet {} AS SELECT a.station, a.ts FROM air a JOIN surface s
  ON a.station = s.station AND s.ts BETWEEN a.ts - INTERVAL '30' SECOND AND a.ts + INTERVAL '30' SECOND
WHERE dew_point(a.temp, a.rh) - s.temp > 100;
"""
WAYS = {"every reading is kept": "WITH (max_delay = '0 seconds')", "edges omit": ""}

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Memory:
    """Seconds, the number of tuples that the join keeps at each, and the bound that was proved before."""

    seconds: list[int]
    tuples: dict[str, list[int]]
    bounds: dict[str, int]


def computed(keys: int = KEYS) -> Memory:
    """Run edges and joiner. The readings of the surface stop for max_stall and then all come at once."""
    tuples: dict[str, list[int]] = {}
    bounds: dict[str, int] = {}
    for way, options in WAYS.items():
        plan = plan_of(SQL.format(options).replace("keys = 100", f"keys = {keys}"), ["air", "surface"])
        (definition,) = plan.definitions
        assert definition.bound is not None
        bounds[way] = definition.bound
        edges = {name: Edge(plan, name) for name in ("air", "surface")}
        joiner = Joiner(plan)
        walks = {name: _walk(number, keys) for number, name in enumerate(edges)}
        tuples[way] = []
        for number in range((BEFORE + STALL + AFTER) // STEP):
            begin = number * STEP
            stalled = BEFORE <= begin < BEFORE + STALL
            sent = {"air": edges["air"].take(_readings(walks["air"], begin, begin + STEP), begin * SECOND)}
            if not stalled:
                since = BEFORE if begin == BEFORE + STALL else begin
                sent["surface"] = edges["surface"].take(
                    _readings(walks["surface"], since, begin + STEP), begin * SECOND
                )
            tuples[way].append(joiner.take({"surface": [], **sent}, begin * SECOND, number))
    seconds = [(number + 1) * STEP for number in range(len(tuples[way]))]
    return Memory(seconds, tuples, bounds)


def _walk(seed: int, keys: int) -> Floats:
    """Temperatures by second and key: random walks that are turned back at both ends of a range."""
    random = np.random.default_rng(seed)
    walk = random.normal(15, 5, keys) + random.normal(0, 0.2, (BEFORE + STALL + AFTER, keys)).cumsum(axis=0)
    return np.asarray((40 - np.abs((walk + 10) % 100 - 50)).round(2))


def _readings(walk: Floats, begin: int, end: int) -> Columns:
    """One reading of each key a second."""
    keys = walk.shape[1]
    seconds = np.repeat(np.arange(begin, end), keys)
    return {
        "station": [f"k{key}" for key in range(keys)] * (end - begin),
        "ts": (seconds * SECOND).tolist(),
        "temp": walk[begin:end].ravel().tolist(),
        "rh": [60.0] * len(seconds),
    }


@styled
def draw() -> Path:
    """Draw docs/images/bound.svg."""
    found = computed()
    figure, (axes,) = panels([8.4], 4.2)
    axes.axvspan(BEFORE, BEFORE + STALL, color=PALE_RED)
    axes.text(BEFORE + STALL / 2, max(found.bounds.values()) * 0.9, "no reading of the partner comes",
              ha="center", color=RED)  # fmt: skip
    top = (BEFORE + STALL) // STEP - 1
    for (way, counts), colour in zip(found.tuples.items(), (AMBER, BLUE), strict=True):
        axes.plot(found.seconds, counts, color=colour, linewidth=2)
        axes.annotate(f"{way}: {max(counts):,}", (found.seconds[top], counts[top]), (-8, 6),
                      textcoords="offset points", ha="right", color=colour)  # fmt: skip
    bound = max(found.bounds.values())
    axes.axhline(bound, color=GREY, linestyle="--")
    axes.text(4, bound * 1.02, f"proved before the alert runs: at most {bound:,} tuples", color=GREY)
    axes.set(
        xlabel="seconds of event time",
        ylabel="tuples in memory",
        xlim=(0, found.seconds[-1]),
        ylim=(0, bound * 1.14),
    )
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    return save(figure, "bound.svg", "Tuples in the joiner's memory while a stream stalls, beside the bound")
