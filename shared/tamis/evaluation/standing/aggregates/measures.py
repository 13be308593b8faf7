"""Partial aggregates from which the aggregates of SQL are computed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

# `squares` is the sum of the squares.
Measure = Literal["count", "total", "squares", "least", "greatest"]
EXACT_SUMS: tuple[Measure, ...] = ("total", "squares")

_SPREAD: tuple[Measure, ...] = ("count", "total", "squares")
# `median`, percentiles and `count(DISTINCT)` need the values themselves.
MADE_OF: Mapping[str, tuple[Measure, ...]] = {
    "count": ("count",),
    "sum": ("total",),
    "avg": ("count", "total"),
    "var_pop": _SPREAD,
    "var_samp": _SPREAD,
    "stddev_pop": _SPREAD,
    "stddev_samp": _SPREAD,
    "min": ("least",),
    "max": ("greatest",),
}
