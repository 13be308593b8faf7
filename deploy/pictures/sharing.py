"""The picture of sharing: alerts over one stream need overlapping readings, which are published once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from deploy.pictures.cores import SECOND, Columns, Edge, plan_of
from deploy.pictures.look import AMBER, BLUE, GREEN, GREY, INK, panels, save, styled
from matplotlib.patches import Rectangle

READINGS = 800
KEYS = 10
# Alert: its condition, and the box of it in the picture: temperature and humidity, from and to.
ALERTS = {
    "hot": ("temp > 30", (30.0, 40.0, 0.0, 100.0)),
    "damp": ("rh > 75", (0.0, 40.0, 75.0, 100.0)),
    "mould": ("temp > 22 AND rh > 65", (22.0, 40.0, 65.0, 100.0)),
}
_COLOURS = (BLUE, GREEN, AMBER)
_STREAM = """
CREATE STREAM air (
  station VARCHAR KEY, ts TIMESTAMP,
  temp DOUBLE CHECK (temp BETWEEN -60 AND 70), rh DOUBLE CHECK (rh BETWEEN 0 AND 100),
  WATERMARK FOR ts AS ts - INTERVAL '1' SECOND
);
"""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Sharing:
    """The readings, and the numbers that an edge publishes: for each alert alone, and for all together."""

    temp: Floats
    humidity: Floats
    alone: dict[str, int]
    together: int


def computed() -> Sharing:
    """Publish the same readings by plans of one alert each, and by the plan of all alerts."""
    random = np.random.default_rng(7)
    temp = random.normal(24, 6, READINGS).clip(0, 40).round(2)
    humidity = (60 - 0.8 * (temp - 24) + random.normal(0, 14, READINGS)).clip(0, 100).round(2)
    columns = {
        "station": [f"k{row % KEYS}" for row in range(READINGS)],
        "ts": [row // KEYS * SECOND for row in range(READINGS)],
        "temp": temp.tolist(),
        "rh": humidity.tolist(),
    }
    alone = {name: published([name], columns) for name in ALERTS}
    return Sharing(temp, humidity, alone, published(list(ALERTS), columns))


def published(alerts: list[str], columns: Columns) -> int:
    """The number of readings that an edge with these alerts publishes."""
    queries = (
        f"CREATE ALERT {name} AS SELECT station, ts FROM air WHERE {ALERTS[name][0]};" for name in alerts
    )
    edge = Edge(plan_of(_STREAM + "\n".join(queries), ["air"]), "air")
    edge.take(columns, columns["ts"][-1])
    return edge.published


@styled
def draw() -> Path:
    """Draw docs/images/sharing.svg."""
    found = computed()
    figure, (left, right) = panels([5.2, 5.4], 4.0)
    needed = np.zeros(READINGS, np.bool_)
    for _, (low, high, dry, wet) in ALERTS.values():
        needed |= (found.temp > low) & (found.temp <= high) & (found.humidity > dry) & (found.humidity <= wet)
    left.plot(found.temp[~needed], found.humidity[~needed], ".", color=GREY, markersize=2, alpha=0.6)
    left.plot(found.temp[needed], found.humidity[needed], ".", color=INK, markersize=3)
    for (name, (condition, (low, high, dry, wet))), colour in zip(ALERTS.items(), _COLOURS, strict=True):
        box = Rectangle((low, dry), high - low, wet - dry, fill=False, edgecolor=colour, linewidth=2)
        left.add_patch(box)
        box.set_label(f"{name}: {condition}")
    left.set(
        xlabel="temp",
        ylabel="rh",
        xlim=(-1, 41),
        ylim=(-2, 102),
        title=f"{READINGS:,} readings, three alerts",
    )
    left.legend(loc="lower left", fontsize=9)
    begin = 0
    for (name, count), colour in zip(found.alone.items(), _COLOURS, strict=True):
        right.barh(1, count, left=begin, color=colour, height=0.5)
        right.text(begin + count / 2, 1.32, f"{name}\n{count:,}", ha="center", va="bottom", fontsize=9)
        begin += count
    right.barh(0, found.together, color=INK, height=0.5)
    right.text(found.together / 2, 0.32, f"all readings that any alert needs\n{found.together:,}",
               ha="center", va="bottom", fontsize=9)  # fmt: skip
    right.text(begin * 1.02, 1, f"{begin:,}", va="center")
    right.set(
        yticks=[1, 0],
        yticklabels=["a topic\nfor each", "one shared\ntopic"],
        ylim=(-0.5, 2),
        xlim=(0, begin * 1.15),
        xlabel="readings written to Kafka",
        title="The same alerts, published by an edge",
    )
    right.grid(axis="y", visible=False)
    return save(figure, "sharing.svg", "Three alerts over one stream, and the readings that they share")
