"""Boxes of domains: an interval for each column of a condition."""

from __future__ import annotations

from collections.abc import Mapping

from tamis.analysis.domains import ends
from tamis.certificates.interval_arithmetic.intervals import Interval, span
from tamis.expressions.nodes import Column, Expr, Type, columns
from tamis.query.model import ColumnDef, StreamDef


def domain(column: ColumnDef, alias: str = "", filters: tuple[Expr, ...] = ()) -> Interval:
    """An interval with every value of a numeric or TIMESTAMP column that edges accept and that passes
    `filters`, the predicates of its source `alias`.
    """
    return span(*ends(column, alias, filters))


def box_of(
    conditions: tuple[Expr, ...],
    streams: Mapping[str, StreamDef],
    filters: Mapping[str, tuple[Expr, ...]],
) -> dict[Column, Interval]:
    """The domains of the numbers and instants in `conditions`; streams and filters are by alias."""
    return {
        c: domain(definition, c.alias, filters.get(c.alias, ()))
        for c in dict.fromkeys(c for part in conditions for c in columns(part))
        if (definition := streams[c.alias].column(c.name)) and (c.type.numeric or c.type is Type.TIMESTAMP)
    }
