"""Colours and files of the pictures: SVG that a browser shows light or dark, as the page around it."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"

# Each colour as it is drawn, and then in a dark page. The first one is the background.
INK, GREY, GRID = "#1b1f24", "#6a737d", "#d8dde3"
BLUE, RED, GREEN, AMBER = "#0b62c4", "#c62828", "#1a7f37", "#a15c00"
PALE_BLUE, PALE_RED = "#cfe2f7", "#f6d5d5"
_DARK = {
    "#fdfdfd": "#1f2229",
    INK: "#e8eaed",
    GREY: "#a3abb5",
    GRID: "#3a404a",
    BLUE: "#7ab5ff",
    RED: "#ff8a80",
    GREEN: "#6fd08c",
    AMBER: "#ffb74d",
    PALE_BLUE: "#24405f",
    PALE_RED: "#5a2b2e",
}
_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text: small files, and the reader's own font
    "svg.hashsalt": "tamis",  # the same names in the file each time
    "font.family": "sans-serif",
    "font.size": 11,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": GREY,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.titlesize": 12,
    "grid.color": GRID,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "figure.facecolor": "#fdfdfd",
    "axes.facecolor": "none",
    "legend.frameon": False,
    "savefig.facecolor": "#fdfdfd",
}
# Decorates functions that draw: what they draw has these settings.
styled = mpl.rc_context(_SETTINGS)


def panels(widths: list[float], height: float) -> tuple[Figure, list[Axes]]:
    """A figure with panels beside each other. Widths and height are in inches."""
    figure = Figure(figsize=(sum(widths), height), layout="constrained")
    axes = figure.subplots(1, len(widths), width_ratios=widths, squeeze=False)
    for axis in axes[0]:
        axis.set_axisbelow(True)
    return figure, list(axes[0])


def save(figure: Figure, name: str, title: str) -> Path:
    """Write a figure as SVG into docs/images. `title` is read out by programs that read pages aloud."""
    text = StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Title": title})
    path = IMAGES / name
    path.write_text(_with_dark_colours(text.getvalue()))
    return path


def _with_dark_colours(svg: str) -> str:
    """The picture with a variable for each colour, whose value depends on the colours of the page.

    >>> print(_with_dark_colours('<svg><path style="fill: #1b1f24"/></svg>').split("</style>")[1])
    <path style="fill: var(--c1)"/></svg>
    """
    light, dark = [], []
    for number, (colour, in_dark) in enumerate(_DARK.items()):
        svg = svg.replace(colour, f"var(--c{number})")
        light.append(f"--c{number}:{colour}")
        dark.append(f"--c{number}:{in_dark}")
    style = f":root{{{';'.join(light)}}}@media(prefers-color-scheme:dark){{:root{{{';'.join(dark)}}}}}"
    begin = svg.index(">", svg.index("<svg")) + 1
    return f"{svg[:begin]}<style>{style}</style>{svg[begin:]}"
