"""Aggregates of a column, as queries and plans have them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from tamis.expressions.nodes import Column, Type

_HOLISTIC = ("median", "percentile_cont", "percentile_disc")


@dataclass(frozen=True)
class Aggregate:
    """An aggregate of a column; `column` is None for COUNT(*). With `distinct`, each value counts once.

    The functions are count, sum, avg, min, max, median, stddev_pop, stddev_samp, var_pop, var_samp,
    percentile_cont and percentile_disc with a `fraction`, and arg_min and arg_max: the value of the tuple
    where the column `order` is least or greatest.
    """

    function: str
    column: Column | None
    distinct: bool
    type: Type
    fraction: Fraction | None = None
    order: Column | None = None


def needs_counts(aggregate: Aggregate) -> bool:
    """True if duplicates change the aggregate, or if it can only be computed from counts."""
    if aggregate.function in ("min", "max"):
        return aggregate.column is not None and aggregate.column.type is Type.VARCHAR
    return not aggregate.distinct


def needs_all_values(aggregate: Aggregate) -> bool:
    """True if the aggregate needs every value, as COUNT(DISTINCT), MEDIAN and percentiles do."""
    return aggregate.distinct or aggregate.function in _HOLISTIC
