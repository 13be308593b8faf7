"""Reader of the tables in documents of rows of partial aggregates (`pane_documents`).

A document comes from the network, so everything is checked.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.errors import InputError
from tamis.expressions.exact.sums import SCALE, squares_of_doubles, squares_of_whole, units
from tamis.expressions.nodes import Column, Type
from tamis.expressions.vectors import Vector
from tamis.operators.aggregates.accumulators import EXACT_SUMS, Measure
from tamis.operators.windows.partials import Partial
from tamis.operators.windows.table import Array, PartialTable, Places

# No row has so many readings: at a million a second that would take 12 days, in one pane of one group.
_MOST = 1 << 40
# The greatest sum of so many whole numbers, and of so many of their squares.
_MOST_TOTAL, _MOST_SQUARES = _MOST << 63, _MOST << 126
# DOUBLEs are below 2^1024, and multiples of 2^-1074.
_HIGHEST, _LOWEST = 1024, -1074


Document = dict[str, Any]


def unit_of(measure: Measure) -> int:
    """Sums of DOUBLEs are in units of 2 to the power of minus this."""
    return 2 * SCALE if measure == "squares" else SCALE


class TableReader:
    """Reads and checks one table of a document; raises InputError for what doesn't fit."""

    def __init__(self, partial: Partial, document: object, where: str, counts: Places) -> None:
        assert partial.column is not None
        self._partial, self._column = partial, partial.column
        self._fields, self._where = fields_of(document, where), where
        self._counts = counts  # the readings of each row

    def table(self) -> PartialTable:
        """The table."""
        if self._partial.each:
            return self._separate()
        rows = self._present()
        keys = (rows, np.zeros(len(rows), np.int64))
        order = self._partial.order
        if order is not None:
            return PartialTable(
                keys,
                (self._values("order", order, len(rows)), self._values("values", self._column, len(rows))),
            )
        counts = self._counts[rows]
        if "counts" in self._fields:
            own = counts_of(self._fields, len(rows), self._where)
            if (own > counts).any():
                raise self._wrong("counts", "more values than readings")
            counts = own
        if self._partial.measures == ("count",):
            return PartialTable(keys, (counts,))
        return PartialTable(keys, self._measures(counts))

    def _present(self) -> Places:
        """The rows that have values."""
        if "absent" not in self._fields:
            return np.arange(len(self._counts))
        absent = whole_numbers(list_of(self._fields, "absent", None, self._where), f"{self._where}, absent")
        present = np.ones(len(self._counts), np.bool_)
        if (absent < 0).any() or (absent >= len(present)).any():
            raise self._wrong("absent", "a row that isn't there")
        present[absent] = False
        return np.flatnonzero(present)

    def _separate(self) -> PartialTable:
        size = len(self._counts)
        lengths = whole_numbers(
            list_of(self._fields, "lengths", size, self._where), f"{self._where}, lengths"
        )
        # A row has no more values than readings, and these are so few that no sum of lengths overflows.
        if (lengths < 0).any() or (lengths > self._counts).any():
            raise self._wrong("lengths", "more values than readings, or less than none")
        total = sum(lengths.tolist())
        values = self._values("values", self._column, total)
        rows = np.repeat(np.arange(size), lengths)
        counts = counts_of(self._fields, total, self._where)
        if (np.bincount(rows, counts, size) > self._counts).any():
            raise self._wrong("counts", "more values than readings")
        return PartialTable((rows, np.zeros(total, np.int64), values), (counts,))

    def _measures(self, counts: Places) -> tuple[Array, ...]:
        single = counts == 1
        alone = int(np.count_nonzero(single))
        values = self._values("values", self._column, alone)
        several = counts[~single]
        read: dict[Measure, Array] = {
            one: (
                self._sums(one, len(several))
                if one in EXACT_SUMS
                else self._values(one, self._column, len(several))
            )
            for one in self._partial.measures
            if one != "count"
        }
        self._check(read, several)
        measures = []
        for measure in self._partial.measures:
            if measure == "count":
                measures.append(counts)
                continue
            whole = np.empty(len(counts), read[measure].dtype)
            whole[single], whole[~single] = self._of_one(measure, values), read[measure]
            measures.append(whole)
        return tuple(measures)

    def _of_one(self, measure: Measure, values: Array) -> Array:
        """A measure of rows with one value."""
        double, starts = self._column.type is Type.DOUBLE, np.arange(len(values))
        if measure not in EXACT_SUMS or not len(values):
            return values
        if measure == "total":
            return units(values) if double else values.astype(np.object_)
        return squares_of_doubles(values, starts) if double else squares_of_whole(values, starts)

    def _sums(self, measure: Measure, size: int) -> Array:
        where = f"{self._where}, {measure}"
        sums = np.empty(size, np.object_)
        squares = measure == "squares"
        if self._column.type is not Type.DOUBLE:
            most = _MOST_SQUARES if squares else _MOST_TOTAL
            sums[:] = [_parsed(one, most, where) for one in self._optional(measure, size)]
            return sums
        numbers, powers = self._halves(measure, size)
        unit, twice = unit_of(measure), 2 if squares else 1
        most = _MOST << twice * (_HIGHEST - _LOWEST)
        exponents = whole_numbers(powers, where)
        if (exponents < twice * _LOWEST).any() or (exponents > twice * _HIGHEST + 40).any():
            raise self._wrong(measure, "a power of 2 out of range")
        limits = (_MOST << twice * _HIGHEST + unit) if size else 0
        for place, (number, power) in enumerate(zip(numbers, exponents.tolist(), strict=True)):
            total = _parsed(number, most, where) << (power + unit)
            if abs(total) > limits:
                raise self._wrong(measure, "a sum out of range")
            sums[place] = total
        return sums

    def _halves(self, measure: Measure, size: int) -> tuple[list[Any], list[Any]]:
        if not size and measure not in self._fields:
            return [], []
        numbers, powers = list_of(self._fields, measure, 2, self._where)
        where = f"{self._where}, {measure}"
        return sized(numbers, size, where), sized(powers, size, where)

    def _optional(self, name: str, size: int) -> list[Any]:
        """A list that is left out if it is empty."""
        return [] if not size and name not in self._fields else list_of(self._fields, name, size, self._where)

    def _values(self, name: str, column: Column, size: int) -> Array:
        vector = vector_of(self._optional(name, size), column.type, f"{self._where}, {name}", null=False)
        return vector.data + 0.0 if column.type is Type.DOUBLE else vector.data

    def _check(self, read: dict[Measure, Array], counts: Places) -> None:
        """Check that there are values with these sums and extremes. Else a variance could be negative."""
        if "squares" in read:
            pairs = zip(counts.tolist(), read["total"].tolist(), read["squares"].tolist(), strict=True)
            if any(count * squares < total * total for count, total, squares in pairs):
                raise self._wrong("squares", "less than the sum allows")
        if "least" in read and "greatest" in read and (read["least"] > read["greatest"]).any():
            raise self._wrong("least", "a least value above the greatest")

    def _wrong(self, field: str, what: str) -> InputError:
        return InputError(what, where=f"{self._where}, {field}")


def fields_of(document: object, where: str) -> Document:
    """A JSON object."""
    if not isinstance(document, dict):
        raise InputError("this is no JSON object", where=where)
    return document


def list_of(fields: Document, name: str, size: int | None, where: str) -> list[Any]:
    """A field that is a list, perhaps of a certain length."""
    return sized(fields.get(name), size, f"{where}, {name}")


def sized(values: object, size: int | None, where: str) -> list[Any]:
    """A list, perhaps of a certain length."""
    if not isinstance(values, list):
        raise InputError("this is no list", where=where)
    if size is not None and len(values) != size:
        raise InputError(f"{len(values)} values, not {size}", where=where)
    return values


def vector_of(values: list[Any], type_: Type, where: str, *, null: bool) -> Vector:
    """The values of a column."""
    try:
        vector = Vector.from_list(values, type_)
    except InputError as error:
        raise InputError(error.what, where=f"{where}, {error.where}") from None
    if vector.null is not None and not null:
        raise InputError("NULL is no value here", where=where)
    return vector


def whole_numbers(values: list[Any], where: str) -> Places:
    """Whole numbers of 64 bits."""
    return np.asarray(vector_of(values, Type.BIGINT, where, null=False).data, np.int64)


def counts_of(fields: Document, size: int, where: str) -> Places:
    """Counts of readings or of values; all are 1 if the field is left out."""
    if "counts" not in fields:
        return np.ones(size, np.int64)
    counts = whole_numbers(list_of(fields, "counts", size, where), f"{where}, counts")
    if (counts < 1).any() or (counts > _MOST).any():
        raise InputError(f"a count that isn't between 1 and {_MOST}", where=f"{where}, counts")
    return counts


def _parsed(number: object, most: int, where: str) -> int:
    """A whole number, which may be text."""
    value = number
    if isinstance(number, str) and len(number) <= most.bit_length() // 4 + 2:
        try:
            value = int(number, 16)
        except ValueError:
            raise InputError(f"{number[:40]!r} is no hexadecimal number", where=where) from None
    if type(value) is not int:
        raise InputError("this is no whole number, or one of too many digits", where=where)
    if abs(value) > most:
        raise InputError("a number out of range", where=where)
    return value
