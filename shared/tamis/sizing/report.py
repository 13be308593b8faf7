"""The sizing as text for people and as JSON."""

from __future__ import annotations

from typing import Any

from tamis.sizing.estimate import Sizing
from tamis.sizing.figures import Figure

_LARGE = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def document(sizing: Sizing) -> dict[str, Any]:
    """The JSON document: one object for each part, with its figures."""
    return {
        "parts": [
            {"part": part.title, "name": part.name}
            | {"figures": {name: figure.document() for name, figure in part.figures.items()}}
            for part in sizing.parts
        ],
        "notes": list(sizing.notes),
        "costs_measured_on": sizing.machine,
    }


def text(sizing: Sizing) -> str:
    """A table of name, number, basis and source for each part, with the notes below."""
    lines = []
    for part in sizing.parts:
        lines.append(" ".join(filter(None, (part.title, part.name))))
        for name, figure in part.figures.items():
            lines.append(f"  {name:<22}{number(figure):>16}  {figure.basis:<9} {figure.source}")
    lines += ["", *sizing.notes, f"CPU time, memory and overheads were measured on: {sizing.machine}"]
    return "\n".join(lines)


def number(figure: Figure) -> str:
    """The number of a figure with its unit.

    >>> number(Figure(19_860_000, "tuples", "proven", "")), number(Figure(0.123, "share", "given", ""))
    ('19.9 M tuples', '12.3 %')
    >>> number(Figure(2_048, "B", "given", "")), number(Figure(0.4, "cores", "given", ""))
    ('2.05 kB', '0.4 cores')
    """
    value, unit = figure.value, figure.unit
    if unit == "share":
        return f"{100 * value:.3g} %"
    if unit == "count":
        return f"{value:,.0f}"
    size, prefix = next(((size, prefix) for size, prefix in _LARGE if value >= size), (1.0, ""))
    shown = f"{value / size:.3g}" if value / size < 1000 else f"{value / size:.0f}"
    if unit.startswith("B"):
        return f"{shown} {prefix}{unit}"
    return f"{shown}{' ' + prefix if prefix else ''} {unit}"
