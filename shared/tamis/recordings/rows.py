"""Rows of a file in its own format, so that retained rows are written unchanged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tamis.errors import InputError
from tamis.query.names import suggest


class Rows(Protocol):
    """Rows in the order of the file. `textual`: cells are text, which the reader converts."""

    textual: bool
    where: str

    @property
    def names(self) -> Sequence[str]:
        """The columns."""

    def __len__(self) -> int: ...

    def place(self, column: str, row: int) -> str:
        """The position of a value, for messages; `row` counts from 0."""

    def column(self, name: str) -> pa.ChunkedArray:
        """One column. Raises InputError if it doesn't exist, or its values are of several types."""

    def take(self, numbers: NDArray[np.int64]) -> Rows:
        """The rows with these numbers (from 0), in this order."""

    def table(self) -> pa.Table:
        """All columns."""


class ArrowRows:
    """Rows of a CSV or Parquet file."""

    def __init__(self, table: pa.Table, where: str, textual: bool) -> None:
        self.where, self.textual = where, textual
        self._table = table

    @property
    def names(self) -> Sequence[str]:
        return list(self._table.column_names)

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def place(self, column: str, row: int) -> str:
        return f"{self.where}, column {column}, row {row + 1}"

    def column(self, name: str) -> pa.ChunkedArray:
        check_column(self, name)
        return self._table[name]

    def take(self, numbers: NDArray[np.int64]) -> ArrowRows:
        return ArrowRows(self._table.take(pa.array(numbers)), self.where, self.textual)

    def table(self) -> pa.Table:
        return self._table


class JsonRows:
    """Objects of an NDJSON file, each with its line and the number of the line, from 1."""

    textual = False

    def __init__(
        self,
        objects: Sequence[Mapping[str, Any]],
        lines: Sequence[bytes],
        numbers: Sequence[int],
        where: str,
    ) -> None:
        self.where, self.lines = where, lines
        self._objects, self._numbers = objects, numbers
        self._names = list(dict.fromkeys(name for one in objects for name in one))

    @property
    def names(self) -> Sequence[str]:
        return self._names

    def __len__(self) -> int:
        return len(self.lines)

    def place(self, column: str, row: int) -> str:
        return f"{self.where}, line {self._numbers[row]}, field {column}"

    def values(self, name: str) -> list[Any]:
        """One column of JSON values. Raises InputError if it doesn't exist."""
        if self._objects:  # without objects there are no names either
            check_column(self, name)
        return [one.get(name) for one in self._objects]

    def column(self, name: str) -> pa.ChunkedArray:
        values = self.values(name)
        kinds = [_KINDS.get(type(value), type(value)) for value in values]
        first = next((kind for kind in kinds if kind is not None), None)
        other = next((i for i, kind in enumerate(kinds) if kind not in (None, first)), None)
        if other is not None:
            raise InputError(
                f"{_excerpt(values[other])} is of another type than the values before it",
                where=self.place(name, other),
                hint="correct it or leave the row out",
            )
        try:
            return pa.chunked_array([pa.array(values)])
        except (pa.ArrowException, OverflowError) as error:
            raise InputError(str(error), where=f"{self.where}, field {name}") from error

    def take(self, numbers: NDArray[np.int64]) -> JsonRows:
        picked = numbers.tolist()
        return JsonRows(
            [self._objects[i] for i in picked],
            [self.lines[i] for i in picked],
            [self._numbers[i] for i in picked],
            self.where,
        )

    def table(self) -> pa.Table:
        return pa.table({name: self.column(name) for name in self._names})


_KINDS: Mapping[type, type | None] = {type(None): None, int: float}  # JSON has one kind of number


def check_column(rows: Rows, name: str) -> None:
    """Raise InputError where the rows have no such column, or two of this name."""
    if name not in rows.names:
        raise InputError(
            f"no column {name}",
            where=rows.where,
            hint=suggest(name, rows.names, f"it has {', '.join(rows.names) or 'no columns'}"),
        )
    if list(rows.names).count(name) > 1:
        raise InputError(f"two columns {name}", where=rows.where, hint="rename one of them")


def _excerpt(value: object) -> str:
    return f"{value!r:.60}"
