"""Rows that a query with DISTINCT has already given."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tamis.expressions.vectors import Vector

Row = tuple[object, ...]


class DistinctRows:
    """The rows that a query with DISTINCT has already given, by their values in SELECT."""

    def __init__(self) -> None:
        self.rows: dict[Row, None] = {}

    def new(self, columns: Sequence[Vector]) -> np.ndarray:
        """The positions of rows that weren't given before, each once. From now on they count as given."""
        found = []
        for position, row in enumerate(zip(*(column.to_list() for column in columns), strict=True)):
            if row not in self.rows:
                self.rows[row] = None
                found.append(position)
        return np.array(found, np.int64)

    def dumped(self) -> list[Row]:
        """The rows as JSON."""
        return list(self.rows)

    def restore(self, dumped: Sequence[Sequence[object]]) -> None:
        """Restore dumped rows."""
        self.rows = dict.fromkeys(map(tuple, dumped))
