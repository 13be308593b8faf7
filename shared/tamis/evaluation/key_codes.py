"""Numbers for key values, so that the join sorts and compares keys as integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.expressions.vectors import Vector

NO_KEY = -1


class KeyCodes:
    """Gives equal keys the same code, over all columns that are ever shown to it.

    Numbers are equal by value (1 = 1.0), as SQL has it; text is never equal to a number. A key with NULL in
    it has the code `NO_KEY`. Codes may have gaps.
    """

    def __init__(self) -> None:
        self._codes: dict[Any, int] = {}

    def __len__(self) -> int:
        return len(self._codes)

    def encode(self, key: Sequence[Vector], size: int) -> NDArray[np.int64]:
        """The codes of `size` tuples whose key columns are `key` (none: all have the same, empty key).

        >>> from tamis.expressions.nodes import Type
        >>> codes = KeyCodes()
        >>> codes.encode([Vector.from_list([1, 2, None], Type.INT)], 3).tolist()
        [0, 1, -1]
        >>> codes.encode([Vector.from_list([2.0, 3.0], Type.DOUBLE)], 2).tolist()
        [1, 3]
        >>> codes.encode([Vector.from_list(["1"], Type.VARCHAR)], 1).tolist()
        [4]
        """
        if not key:
            return np.full(size, self._code(()), np.int64)
        columns = [vector.data.tolist() for vector in key]
        # A single column needs no tuples; one-tuples and plain values never meet, since all inputs of a query
        # have keys of the same length.
        values = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
        known = self._codes
        for value in dict.fromkeys(values):
            if value not in known:
                known[value] = len(known)
        codes = np.fromiter(map(known.__getitem__, values), np.int64, size)
        for vector in key:
            if vector.null is not None:
                codes[vector.null] = NO_KEY
        return codes

    def _code(self, value: Any) -> int:
        return self._codes.setdefault(value, len(self._codes))
