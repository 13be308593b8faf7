"""Plot of the readings that omission retains, beside those that it leaves out, by matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tamis.offline.retained_series import RetainedSeries, shown_keys

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(axes: Axes, series: RetainedSeries) -> None:
    """Draw the readings of each key as a thin line: retained ones as filled circles, omitted ones as small
    crosses. The title says how many are retained.
    """
    shown, title = shown_keys(series)
    times, values = series.times, series.values
    for number, key in enumerate(shown):
        color = f"C{number}"
        both = np.concatenate([key.retained, key.omitted])
        rows = both[np.argsort(times[both], kind="stable")]
        axes.plot(times[rows], values[rows], color=color, linewidth=0.6, alpha=0.4)
        on, off = key.retained, key.omitted
        axes.plot(times[on], values[on], "o", color=color, markersize=4, label=key.label or "retained")
        axes.plot(times[off], values[off], "x", color=color, markersize=3, alpha=0.6)
    # A $ in a key or a name is no formula of TeX.
    axes.set_title(title, parse_math=False)
    axes.set_xlabel(series.time_label, parse_math=False)
    axes.set_ylabel(series.value_label, parse_math=False)
    if len(shown) > 1:
        for text in axes.legend().get_texts():
            text.set_parse_math(False)
    if times.dtype.kind == "M":
        axes.figure.autofmt_xdate()
