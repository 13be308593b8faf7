"""Rows of partial aggregates as JSON, as they travel from edges to joiners. All columns are lists.

| field | contents |
|---|---|
| `panes` | the beginning of the first row's pane in microseconds, then differences to the row before |
| `groups` | for each column of groups the values of the rows |
| `counts` | the numbers of readings of the rows; left out if all are 1 |
| `tables` | for each column with aggregates, in the order of `partials`, an object |

| field of a table | contents |
|---|---|
| `absent` | the numbers of the rows that have no values; left out if there are none |
| `counts` | the numbers of values of the other rows; left out if they are those of the readings |
| `values` | the value of each row that has one value; all of its aggregates follow from it |
| `total`, `squares` | sums of the rows with more values: whole numbers, or two lists for DOUBLEs, of odd numbers and of the powers of 2 that they are multiplied by |
| `least`, `greatest` | the extremes of the rows with more values |
| `order`, `values` | for `arg_min` and `arg_max`: the order and the value of each row |
| `lengths`, `values`, `counts` | for values kept separately: how many each row has, the values, and how often they came; left out if all are 1 |

Whole numbers of more than 64 bits are hexadecimal text. The document comes from the network: its types,
lengths and numbers are checked, and no number has more digits than sums can have.
"""  # noqa: E501 - rows of a table

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from tamis.errors import InputError
from tamis.expressions.exact.sums import SCALE
from tamis.expressions.nodes import Type
from tamis.operators.aggregates.accumulators import EXACT_SUMS, Measure
from tamis.operators.state import number_to_text
from tamis.operators.windows.pane_document_tables import (
    Document,
    TableReader,
    counts_of,
    fields_of,
    list_of,
    sized,
    unit_of,
    vector_of,
)
from tamis.operators.windows.pane_rows import PaneRows
from tamis.operators.windows.partials import Partial, partials
from tamis.operators.windows.table import Array, PartialTable, Places
from tamis.plan.nodes import Grouping

_LIMIT = 1 << 63


def to_document(rows: PaneRows, grouping: Grouping) -> Document:
    """The rows as JSON values."""
    panes, counts = rows.panes.tolist(), rows.counts
    document: Document = {
        "panes": [*panes[:1], *(b - a for a, b in pairwise(panes))],
        "groups": [vector.to_list() for vector in rows.groups],
        "tables": [
            _table(partial, table, counts)
            for partial, table in zip(partials(grouping.aggregates)[1:], rows.tables[1:], strict=True)
        ],
    }
    return document if (counts == 1).all() else {**document, "counts": counts.tolist()}


def _table(partial: Partial, table: PartialTable, counts: Places) -> Document:
    present = np.asarray(table.keys[0], np.int64)
    if partial.each:
        return _separate(table, present, len(counts))
    document: Document = {}
    if len(present) < len(counts):
        document["absent"] = np.setdiff1d(np.arange(len(counts)), present).tolist()
    if partial.order is not None:
        order, values = table.measures
        return {**document, "order": order.tolist(), "values": values.tolist()}
    own = counts[present]
    if "count" in partial.measures:
        found = partial.measure(table, "count")
        if (found != own).any():
            document["counts"] = found.tolist()
        own = found
    if partial.measures != ("count",):
        _add_measures(document, partial, table, own == 1)
    return document


def _separate(table: PartialTable, present: Places, rows: int) -> Document:
    lengths, (counts,) = np.bincount(present, minlength=rows), table.measures
    document: Document = {"lengths": lengths.tolist(), "values": table.keys[2].tolist()}
    return document if (counts == 1).all() else {**document, "counts": counts.tolist()}


def _add_measures(document: Document, partial: Partial, table: PartialTable, single: Array) -> None:
    column = partial.column
    assert column is not None
    double = column.type is Type.DOUBLE
    alone, others = table.take(single), table.take(~single)
    if len(alone):
        known: Measure = next(one for one in ("least", "greatest", "total") if one in partial.measures)
        values = partial.measure(alone, known).tolist()
        exact = known == "total" and double
        document["values"] = [one / (1 << SCALE) for one in values] if exact else values
    if not len(others):
        return
    for measure in partial.measures:
        if measure == "count":
            continue
        values = partial.measure(others, measure).tolist()
        if measure in EXACT_SUMS:
            values = _scaled(values, measure) if double else list(map(_number, values))
        document[measure] = values


def _scaled(totals: Sequence[int], measure: Measure) -> list[list[Any]]:
    """Sums of DOUBLEs as odd numbers and powers of 2."""
    powers = [(total & -total).bit_length() - 1 if total else 0 for total in totals]
    numbers = [_number(total >> power) for total, power in zip(totals, powers, strict=True)]
    unit = unit_of(measure)
    return [numbers, [power - unit if total else 0 for total, power in zip(totals, powers, strict=True)]]


def _number(number: int) -> int | str:
    return number if -_LIMIT <= number < _LIMIT else number_to_text(number)


def from_document(document: object, grouping: Grouping) -> PaneRows:
    """The rows whose JSON values a document has.

    Raises InputError for a document that doesn't fit the grouping, and says which field is wrong, and for a
    grouping that no query has.
    """
    fields = fields_of(document, "rows")
    panes = _panes(list_of(fields, "panes", None, "rows"))
    size = len(panes)
    by = list_of(fields, "groups", len(grouping.by), "rows")
    groups = tuple(
        vector_of(sized(values, size, "rows, groups"), column.type, "rows, groups", null=True)
        for values, column in zip(by, grouping.by, strict=True)
    )
    counts = counts_of(fields, size, "rows")
    others = _checked_partials(grouping)[1:]
    tables = list_of(fields, "tables", len(others), "rows")
    rows = np.arange(size)
    read = [
        TableReader(partial, table, f"table {number}", counts).table()
        for number, (partial, table) in enumerate(zip(others, tables, strict=True))
    ]
    return PaneRows(panes, groups, (PartialTable((rows, np.zeros(size, np.int64)), (counts,)), *read))


def _checked_partials(grouping: Grouping) -> tuple[Partial, ...]:
    """The partial aggregates of a grouping, which may come from the network, too."""
    try:
        made = partials(grouping.aggregates)
    except KeyError as error:
        raise InputError(f"there is no aggregate {error}", where="grouping") from None
    for partial in made:
        column, summed = partial.column, not set(EXACT_SUMS).isdisjoint(partial.measures)
        if summed and column is not None and column.type in (Type.BOOLEAN, Type.VARCHAR):
            raise InputError(f"there are no sums of {column.type}", where=f"grouping, {column.name}")
    return made


def _panes(differences: list[Any]) -> Places:
    panes: list[Any] = []
    if all(type(one) is int for one in differences):
        panes = list(accumulate(differences))
    if len(panes) < len(differences) or any(not -_LIMIT <= pane < _LIMIT for pane in panes):
        raise InputError("a time that isn't a whole number of 64 bits", where="rows, panes")
    return np.array(panes, np.int64)
