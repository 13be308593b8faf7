"""Dense codes of keys, so that all work for each key is done on integers.

Keys that are no longer used are forgotten, and their codes are given to other keys. So a key that a sender
invented, or that never comes again, doesn't take up memory for long.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.expressions.vectors import Vector

Int64s = npt.NDArray[np.int64]

# Fewer keys than these are never searched for unused ones.
MANY = 4096


class KeyTable:
    """Codes of the values of some columns. NULL is treated as a value."""

    def __init__(self) -> None:
        self._codes: dict[Any, int] = {}
        self._end = 0  # every code is below
        self._free: list[int] = []
        self._many = MANY

    def __len__(self) -> int:
        return len(self._codes)

    @property
    def grown(self) -> bool:
        """True if `forget` is worth its cost: the table has twice as many keys as were needed at the last
        call.
        """
        return len(self._codes) >= self._many

    def forget(self, live: Sequence[Int64s]) -> None:
        """Forget all keys but those of the codes in `live`, which keep their codes."""
        alive = np.zeros(self._end, np.bool_)
        for codes in live:
            alive[codes] = True
        self._end = int(np.flatnonzero(alive)[-1]) + 1 if alive.any() else 0
        self._codes = {key: code for key, code in self._codes.items() if alive[code]}
        self._free = np.flatnonzero(~alive[: self._end]).tolist()
        self._many = max(MANY, 2 * len(self._codes))

    def codes(self, columns: Sequence[Vector], rows: int) -> Int64s:
        """The code of each of `rows` rows. Without columns all rows have the same key.

        >>> from tamis.expressions.nodes import Type
        >>> KeyTable().codes([Vector.from_list([7, None, 7], Type.INT)], 3).tolist()
        [0, 1, 0]
        """
        if not columns:
            if not self._codes:
                self._add((), ())
            return np.full(rows, self._codes[()])
        keys: Sequence[Any] = (
            columns[0].to_list()
            if len(columns) == 1
            else list(zip(*(column.to_list() for column in columns), strict=True))
        )
        known = self._codes
        codes = list(map(known.get, keys))
        if None in codes:
            for key in dict.fromkeys(keys):
                if key not in known:
                    self._add(key, (key,) if len(columns) == 1 else key)
            codes = list(map(known.get, keys))
        return np.array(codes, np.int64)

    def _add(self, key: Any, values: tuple[Any, ...]) -> int:
        code = self._free.pop() if self._free else self._end
        self._end = max(self._end, code + 1)
        self._codes[key] = code
        return code
