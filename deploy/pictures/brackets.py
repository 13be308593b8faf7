"""The picture of brackets: which readings of a recording edges omit, and why this is safe."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc
import pyarrow.csv
from deploy.pictures.look import AMBER, BLUE, GREY, INK, PALE_BLUE, RED, panels, save, styled

import tamis.omission

RECORDING = Path(__file__).resolve().parents[2] / "demo" / "first" / "air.csv"
STATION = "indoors"
HALF = 30  # seconds of the join's time range, before and after a reading
INTERVAL = 2 * HALF
FROM, TO = 430, 650  # seconds of the recording that are shown

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Brackets:
    """Dew points of the air by second, which of them are retained, and one reading with its two brackets."""

    seconds: Floats
    values: Floats
    retained: npt.NDArray[np.bool_]
    omitted: int
    before: int
    after: int


def dew_point(temp: Floats, humidity: Floats) -> Floats:
    """The formula of Magnus, as in the tutorial."""
    part = np.log(humidity / 100) + 17.625 * temp / (243.04 + temp)
    return np.asarray(243.04 * part / (17.625 - part))


def computed() -> Brackets:
    """Decide the recording, and choose the omitted reading whose nearer bracket is furthest away."""
    table = pyarrow.csv.read_csv(RECORDING)
    table = table.filter(pc.equal(table["station"], STATION)).sort_by("ts")
    seconds = table["ts"].to_numpy().astype("datetime64[s]").astype(np.int64)
    seconds -= seconds[0]
    values = dew_point(table["temp"].to_numpy(), table["rh"].to_numpy())
    retained = tamis.omission.retained(seconds, values, INTERVAL, sides="above")
    best = (-1, 0, 0, 0)
    for at in np.flatnonzero(~retained).tolist():
        if not FROM + HALF <= seconds[at] <= TO - HALF:
            continue
        higher = np.flatnonzero(retained & (values > values[at]))
        earlier, later = higher[higher < at], higher[higher > at]
        if len(earlier) and len(later):
            before, after = int(earlier[-1]), int(later[0])
            if seconds[after] - seconds[before] <= INTERVAL:
                nearer = int(min(seconds[at] - seconds[before], seconds[after] - seconds[at]))
                best = max(best, (nearer, at, before, after))
    _, at, before, after = best
    return Brackets(seconds.astype(np.float64), values, retained, at, before, after)


@styled
def draw() -> Path:
    """Draw docs/images/brackets.svg."""
    found = computed()
    figure, (left, right) = panels([6.4, 4.6], 4.0)
    shown = (found.seconds >= FROM) & (found.seconds <= TO)
    kept, dropped = shown & found.retained, shown & ~found.retained
    left.plot(found.seconds[shown], found.values[shown], color=GREY, linewidth=0.7)
    left.plot(found.seconds[kept], found.values[kept], "o", color=BLUE, label=f"published ({kept.sum()})")
    left.plot(
        found.seconds[dropped],
        found.values[dropped],
        "o",
        color=GREY,
        markerfacecolor="none",
        label=f"omitted ({dropped.sum()})",
    )
    chosen = [found.before, found.omitted, found.after]
    left.plot(found.seconds[chosen], found.values[chosen], color=RED, linewidth=1.6)
    for at, name in zip(chosen, ("L", "m", "R"), strict=True):
        left.annotate(
            name,
            (found.seconds[at], found.values[at]),
            (0, -16 if name == "m" else 8),
            textcoords="offset points",
            ha="center",
            color=RED,
            fontweight="bold",
        )
    left.set(xlabel="seconds", ylabel="dew point, °C", title=f"{shown.sum()} readings of one sensor")
    left.margins(y=0.15)
    left.legend(loc="best")

    rows = (
        ("L", found.before, BLUE, 2.0),
        ("m", found.omitted, AMBER, 1.0),
        ("R", found.after, BLUE, 0.0),
    )
    middle = found.seconds[found.omitted]
    right.axvspan(middle - HALF, middle + HALF, color=PALE_BLUE)
    for name, at, colour, height in rows:
        second = found.seconds[at]
        right.plot(
            [second - HALF, second + HALF], [height, height], color=colour, linewidth=7, solid_capstyle="butt"
        )
        right.plot([second], [height], "o", color=INK)
        right.annotate(
            f"{name}: {found.values[at]:.2f} °C",
            (second, height),
            (0, 11),
            textcoords="offset points",
            ha="center",
        )
    right.set(
        yticks=[],
        ylim=(-0.6, 2.8),
        xlabel="seconds",
        title=f"Times of the readings that each one joins (±{HALF} s)",
    )
    right.grid(axis="y", visible=False)
    return save(figure, "brackets.svg", "Readings that are omitted, and the two brackets of one of them")
