"""Picture of docs/similarity.md: a pattern found in real readings.

`python -m benchmarks.similarity.example` draws it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from tamis.similarity import Pattern, Patterns

REPOSITORY = Path(__file__).resolve().parents[2]
READINGS = REPOSITORY / "demo" / "data" / "suthaharan-single-hop.csv"
PICTURE = REPOSITORY / "docs" / "images" / "similarity-matches.png"
# Steam was introduced beside mote 1 indoors from reading 2344 on.
FIRST, LENGTH = 2335, 130
AROUND = 300


def draw() -> None:
    """Search the temperature of mote 4 for the shape of mote 1's, and draw the best match."""
    rows = np.loadtxt(READINGS, delimiter=",", skiprows=1)
    indoors, outdoors = (rows[rows[:, 1] == mote, 4] for mote in (1, 4))
    values = indoors[FIRST : FIRST + LENGTH]
    pattern = Pattern("steam", values, epsilon=0.5 * float(values.std()), scale=(0.2, 8))
    match = min(Patterns([pattern]).push(outdoors), key=lambda match: match.distance)
    start = match.end + 1 - LENGTH
    window = outdoors[start : match.end + 1]
    figure = Figure(figsize=(13, 3.6), layout="constrained")
    first, second, third = figure.subplots(1, 3)
    first.plot(values, color="C0")
    first.set_title("pattern: temperature of mote 1")
    shown = slice(max(start - AROUND, 0), match.end + AROUND)
    second.plot(np.arange(len(outdoors))[shown], outdoors[shown], color="0.6")
    second.plot(np.arange(start, match.end + 1), window, color="C1")
    second.set_title("series: temperature of mote 4")
    third.plot(values, color="C0", label="pattern")
    label = f"{match.scale:.2f} * window {match.shift:+.2f}"
    third.plot(match.scale * window + match.shift, color="C1", label=label)
    third.set_title(f"distance {match.distance:.2f} °C, epsilon {pattern.epsilon:.2f} °C")
    third.legend()
    for axes in (first, second, third):
        axes.set(xlabel="reading", ylabel="°C")
        axes.grid(color="0.9")
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(PICTURE, dpi=100)


if __name__ == "__main__":
    draw()
