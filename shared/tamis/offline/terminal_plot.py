"""Plot of retained and omitted readings as text for a terminal, by plotext."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotext  # type: ignore[import-untyped]
from numpy.typing import NDArray

from tamis.offline.retained_series import RetainedSeries, shown_keys

# Bright colours of terminals, which are legible on dark and on light backgrounds.
_COLORS = (12, 9, 10, 13, 14, 11)
# Without colours, each key has a letter.
_LETTERS = "ABCDEF"
_RETAINED, _OMITTED = "●", "×"
# Heights from none to all.
_BLOCKS = "_▁▂▃▄▅▆▇█"
# A label of the axis of times needs about so many characters, with the space to the next one.
_LABEL = 16
_DAY = np.timedelta64(1, "D")


def terminal_plot(series: RetainedSeries, width: int, height: int, *, color: bool) -> str:
    """The plot in `width` columns and `height` rows, at most those of the terminal. Retained readings are
    dots (without `color` the letter of their key, if there are several), and omitted ones are crosses. Blocks
    below the plot show which share of the readings at that time is retained. A last line says how many rows
    of partial aggregates are sent of these, if they are.
    """
    shown, title = shown_keys(series)
    title = title.replace("(o)", f"({_RETAINED})").replace("(x)", f"({_OMITTED})")
    marks = [_RETAINED if color or len(shown) == 1 else letter for letter in _LETTERS]
    legend = _legend([key.label for key in shown], marks, color=color) if len(shown) > 1 else ""
    figure = plotext.figure
    figure.clear()
    figure.theme("simple")
    figure.canvas("default")  # the background of the terminal
    figure.plot_size(width, max(6, height - 1 - bool(legend) - bool(series.sent)))
    x = _numbers(series.times)
    # Points that are drawn later cover earlier ones. The retained readings must be seen.
    for retained in (False, True):
        for number, key in enumerate(shown):
            rows = key.retained if retained else key.omitted
            rows = rows[np.isfinite(series.values[rows])]
            if len(rows):
                pixel = _COLORS[number]
                marker = plotext.marker(marks[number] if retained else _OMITTED, pixel)
                points = x[rows].tolist(), series.values[rows].tolist()
                figure.draw(figure.signal(*points, marker=marker))
    figure.title(title)
    figure.label(series.value_label, axis="y")
    figure.label(series.time_label, axis="x")
    if series.times.dtype.kind == "M" and len(series.times):
        figure.label(_span(series), axis="x")
        places = np.linspace(x.min(), x.max(), max(2, width // _LABEL))
        figure.ruler("x").ticks(places.tolist(), _labels(series.times, places))
    built = figure.build()
    lines = str(built.string(colorless=not color)).rstrip("\n").split("\n")
    axis = next(line for line in str(built.string(colorless=True)).split("\n") if "└" in line)
    share = _shares(x, series.kept, axis.index("└") + 1, axis.rindex("┘"))
    return "\n".join(line.rstrip() for line in (*lines, share, legend, series.sent) if line).rstrip("\n")


def _shares(x: NDArray[np.float64], kept: NDArray[np.bool_], left: int, right: int) -> str:
    """A line of blocks between two columns, whose heights are the retained shares of the readings in them. It
    shows what the plot can't: a cell has one mark, even for many readings.
    """
    if not len(x):
        return ""
    span = float(x.max() - x.min()) or 1.0
    bins = np.minimum((x - x.min()) / span * (right - left), right - left - 1).astype(np.int64)
    total = np.bincount(bins, minlength=right - left)
    part = np.bincount(bins[kept], minlength=right - left)
    blocks = [
        " " if not count else _BLOCKS[int(np.ceil(retained / count * (len(_BLOCKS) - 1)))]
        for count, retained in zip(total.tolist(), part.tolist(), strict=True)
    ]
    return f"{'kept'[:left]:>{left}}{''.join(blocks)}"


def _numbers(times: NDArray[Any]) -> NDArray[np.float64]:
    """Times as numbers; dates as seconds since the first one, exact to the microsecond."""
    if times.dtype.kind != "M" or not len(times):
        return times.astype(np.float64)
    since: NDArray[np.float64] = (times - times.min()).astype(np.int64) / 1e6
    return since


def _span(series: RetainedSeries) -> str:
    first, last = (np.datetime_as_string(one, "s") for one in (series.times.min(), series.times.max()))
    return f"{series.time_label} from {first}Z to {last}Z"


def _labels(times: NDArray[Any], places: NDArray[np.float64]) -> list[str]:
    """Labels of places on the axis: the time of day, and the month and the day if there are several days."""
    first = times.min()
    long = times.max() - first > _DAY
    labels = []
    for place in places:
        text = str(np.datetime_as_string(first + np.timedelta64(int(place * 1e6), "us"), "s"))
        labels.append(text[5:16].replace("T", " ") if long else text[11:])
    return labels


def _legend(labels: list[str], marks: list[str], *, color: bool) -> str:
    parts = []
    for number, label in enumerate(labels):
        mark = f"\x1b[38;5;{_COLORS[number]}m{marks[number]}\x1b[0m" if color else marks[number]
        parts.append(f"{mark} {label}")
    return "  ".join(parts)
