"""Refusals: the rows of a file that an edge would put to the dead letters, each with the true reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tamis.declarations.definitions import ColumnDef
from tamis.declarations.domains import DOUBLE_LIMIT, INT_LIMIT, domain_check
from tamis.declarations.streams import StreamDef
from tamis.expressions.evaluate import evaluate
from tamis.expressions.nodes import Type
from tamis.expressions.sql_text import to_sql
from tamis.expressions.vectors import Columns, Mask
from tamis.recordings.rows import JsonRows, Rows
from tamis.recordings.values import Values


@dataclass(frozen=True)
class Refusal:
    """A reason for which rows of one file can't be used, with the first such row and the number of rows."""

    reason: str
    where: str
    rows: int


def refusals(stream: StreamDef, rows: Rows, found: Mapping[str, Values]) -> tuple[Mask, tuple[Refusal, ...]]:
    """The mask of the rows of a file that an edge would refuse, and the reasons. A row counts for the first
    reason in the order of the columns.
    """
    refused = np.zeros(len(rows), np.bool_)
    reasons = []
    columns: Columns = {("", name): values.vector for name, values in found.items()}
    for column in stream.columns:
        for mask, reason in _reasons(stream, column, found[column.name], columns):
            new = mask & ~refused
            if not new.any():
                continue
            first = int(np.argmax(new))
            value = _cell(rows, column.name, first)
            reasons.append(
                Refusal(reason.format(value=value), rows.place(column.name, first), int(new.sum()))
            )
            refused |= new
    return refused, tuple(reasons)


def _reasons(
    stream: StreamDef, column: ColumnDef, values: Values, columns: Columns
) -> list[tuple[Mask, str]]:
    """The masks of unusable rows, and the reasons with `{value}` for the value."""
    name, null = column.name, values.vector.null
    found: list[tuple[Mask, str]] = []
    if values.not_finite is not None:
        found.append((values.not_finite, "{value} is not a finite number"))
    if values.unusable.any():
        beyond = "{value} is outside of the times that a TIMESTAMP has, 1684-07-28 to 2255-06-05"
        found.append((values.unusable, beyond))
    if null is not None and name == stream.time:
        found.append((null, "NULL in the event time"))
    elif null is not None and column.not_null:
        found.append((null, "NULL in a NOT NULL column"))
    check = domain_check(column)
    if check is None:
        return found
    size = len(values.unusable)
    failed = _false(check, columns, size)
    if failed.any() and column.check is not None:
        declared = _false(column.check, columns, size)
        braced = to_sql(column.check).replace("{", "{{").replace("}", "}}")
        found.append((declared, f"{{value}} is outside of CHECK ({braced})"))
    limits = (
        f"{{value}} is larger than {DOUBLE_LIMIT:g}, the greatest size of a DOUBLE in a stream"
        if column.type is Type.DOUBLE
        else f"{{value}} is outside of INT, {-INT_LIMIT} to {INT_LIMIT - 1}"
    )
    found.append((failed, limits))
    return found


def _false(check: Any, columns: Columns, rows: int) -> Mask:
    """The rows where a CHECK is false: NULL passes, as in SQL."""
    verdict = evaluate(check, columns, rows)
    failed = ~verdict.data
    return failed if verdict.null is None else failed & ~verdict.null


def _cell(rows: Rows, name: str, row: int) -> str:
    """A value as the file has it, in at most 60 characters."""
    value = rows.values(name)[row] if isinstance(rows, JsonRows) else rows.column(name)[row].as_py()
    return f"{value!s:.60}"
