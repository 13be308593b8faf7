"""Bounds of the size of documents of rows of partial aggregates, by which an edge divides a cut."""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson

from tamis.difference_bounds import Bound
from tamis.expressions.exact.sums import SCALE
from tamis.expressions.nodes import Column, Type
from tamis.operators.aggregates.accumulators import EXACT_SUMS
from tamis.operators.windows.pane_rows import PaneRows
from tamis.operators.windows.partials import Partial, partials
from tamis.operators.windows.table import Array, PartialTable, Places
from tamis.plan.nodes import Grouping

# Bytes with the comma: of a whole number of 64 bits, of a DOUBLE, and of the power of 2 of a sum.
_WHOLE, _DOUBLE, _POWER = 22, 26, 7
# The names of fields: of a document, and of a table.
_DOCUMENT, _TABLE = 64, 128
# Of a text whose length nobody knows.
_TEXT = 180
# Of exact sums of any DOUBLEs: a hexadecimal digit has four bits.
_LONGEST = {"total": 2 * SCALE // 4 + 8 + _POWER, "squares": 4 * SCALE // 4 + 8 + _POWER}


def document_bytes(rows: PaneRows, grouping: Grouping) -> int:
    """A bound of the bytes that rows take up as a document."""
    return frame_bytes(grouping) + int(row_bytes(rows, grouping).sum())


def most_document_bytes(grouping: Grouping, rows: Bound, values: Bound) -> Bound:
    """A bound of the bytes of a document, for any rows with texts of up to 180 bytes. `rows`: their number;
    `values`: that of the values that are kept separately.
    """
    row = 2 * _WHOLE + sum(map(_type_bytes, grouping.by))
    value = 0
    for partial in partials(grouping.aggregates)[1:]:
        row += _WHOLE
        entry = _WHOLE + sum(_type_bytes(one) for one in (partial.column, partial.order) if one is not None)
        if partial.each:
            value += entry
        else:
            row += entry + sum(_LONGEST.get(name, _DOUBLE) for name in partial.measures)
    return frame_bytes(grouping) + rows * row + values * value


def _type_bytes(column: Column) -> int:
    return _TEXT if column.type is Type.VARCHAR else _DOUBLE


def frame_bytes(grouping: Grouping) -> int:
    """A bound of the bytes of a document without rows."""
    return _DOCUMENT + 3 * len(grouping.by) + _TABLE * len(partials(grouping.aggregates))


def row_bytes(rows: PaneRows, grouping: Grouping) -> Places:
    """A bound of the bytes by which each row makes a document larger."""
    bound = np.full(len(rows), 2 * _WHOLE)  # its pane and its count
    for column, vector in zip(grouping.by, rows.groups, strict=True):
        texts = column.type is Type.VARCHAR
        bound += _bytes(np.array(vector.to_list(), np.object_) if texts else vector.data)
    for partial, table in zip(partials(grouping.aggregates)[1:], rows.tables[1:], strict=True):
        bound += _WHOLE  # the number of its values, or that it has none
        at, entries = np.asarray(table.keys[0], np.int64), _entry_bytes(partial, table)
        bound += np.bincount(at, entries, len(rows)).astype(np.int64)
    return bound


def _entry_bytes(partial: Partial, table: PartialTable) -> Places:
    """The bytes of each entry of a table."""
    total: Places = np.full(len(table), _WHOLE)
    if partial.each:
        return total + _bytes(table.keys[2])
    if partial.order is not None:
        order, values = table.measures
        return total + _bytes(order) + _bytes(values)
    for name, measure in zip(partial.measures, table.measures, strict=True):
        total += _sum_bytes(measure) if name in EXACT_SUMS else _bytes(measure)
    # The value of a row of one reading is written in place of its sums.
    return total + _DOUBLE


def _sum_bytes(sums: Array) -> Places:
    totals: list[int] = sums.tolist()
    bits = np.array([total.bit_length() - (total & -total).bit_length() for total in totals], np.int64)
    return np.maximum(_WHOLE, bits // 4 + 8) + _POWER


def _bytes(values: Array) -> Places:
    """The bytes of values, with a comma each."""
    if values.dtype.kind != "O":
        return np.full(len(values), _DOUBLE if values.dtype.kind == "f" else _WHOLE)
    texts: list[Any] = values.tolist()
    return np.array([len(orjson.dumps(text)) + 1 for text in texts], np.int64)
