"""Rows of a file in its own format, so that retained rows are written unchanged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tamis.errors import InputError
from tamis.recordings.field_paths import FieldPath, of_column
from tamis.wording.file_text import separator_hint
from tamis.wording.names import suggest


class Rows(Protocol):
    """Rows in the order of the file. `textual`: cells are text, which the reader converts."""

    textual: bool
    where: str

    @property
    def names(self) -> Sequence[str]:
        """The columns."""

    def __len__(self) -> int: ...

    def has(self, name: str) -> bool:
        """True if there is such a column; `name` may be a path."""

    def place(self, column: str, row: int) -> str:
        """The position of a value, for messages; `row` counts from 0."""

    def column(self, name: str) -> pa.ChunkedArray:
        """One column; `name` may be a path. Raises InputError if it doesn't exist, or its values are of
        several types.
        """

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

    def has(self, name: str) -> bool:
        return self._find(of_column(name)) is not None

    def place(self, column: str, row: int) -> str:
        return f"{self.where}, column {column}, row {row + 1}"

    def column(self, name: str) -> pa.ChunkedArray:
        check_column(self, name)
        found = self._find(of_column(name))
        assert found is not None
        return found

    def _find(self, path: FieldPath) -> pa.ChunkedArray | None:
        names = self._table.column_names
        first, steps = next(
            ((name, ()) for name in path.names if name in names), (path.steps[0], path.steps[1:])
        )
        if first not in names:
            return None
        kind = self._table.schema.types[names.index(first)]
        for step in steps:
            if not pa.types.is_struct(kind) or kind.get_field_index(step) < 0:
                return None
            kind = kind.field(step).type
        cells = self._table.column(names.index(first))
        return pc.struct_field(cells, list(steps)) if steps else cells

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
        self._names = dict.fromkeys(name for one in objects for name in one)

    @property
    def names(self) -> Sequence[str]:
        return list(self._names)

    def __len__(self) -> int:
        return len(self.lines)

    def has(self, name: str) -> bool:
        path = of_column(name)
        if any(one in self._names for one in path.names):
            return True
        return len(path.steps) > 1 and any(path.within(one) for one in self._objects)

    def place(self, column: str, row: int) -> str:
        return f"{self.where}, line {self._numbers[row]}, field {column}"

    def values(self, name: str) -> list[Any]:
        """One column of JSON values; `name` may be a path. Raises InputError if it doesn't exist."""
        if self._objects:  # without objects there are no names either
            check_column(self, name)
        return of_column(name).values(self._objects)

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


def check_column(rows: Rows, name: str, *, declared: bool = False) -> None:
    """Raise InputError where the rows have no such column, or two of this name. `declared`: the name stands
    in SQL.
    """
    if not rows.has(name):
        separated = separator_hint(rows.names) if rows.textual else None
        known = f"it has {', '.join(rows.names) or 'no columns'}"
        hint = separated or suggest(name, rows.names, known, quoted=declared)
        raise InputError(f"no column {name}", where=rows.where, hint=hint)
    if any(list(rows.names).count(one) > 1 for one in (name, *of_column(name).names)):
        raise InputError(f"two columns {name}", where=rows.where, hint="rename one of them")


def _excerpt(value: object) -> str:
    return f"{value!r:.60}"
