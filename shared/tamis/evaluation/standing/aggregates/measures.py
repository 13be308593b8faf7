"""Partial aggregates from which the aggregates of SQL are computed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Measure = Literal["count", "total", "least", "greatest"]

# `median` and `count(DISTINCT)` need the values themselves.
MADE_OF: Mapping[str, tuple[Measure, ...]] = {
    "count": ("count",),
    "sum": ("total",),
    "avg": ("count", "total"),
    "min": ("least",),
    "max": ("greatest",),
}
