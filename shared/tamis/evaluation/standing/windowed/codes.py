"""Numbers for values of any type, so that tables have whole numbers only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int64]

# A dictionary this much larger than what is in use, and more than twice as large, is made anew.
_SPARE = 1_000


class Coded:
    """Gives equal values the same code; those that are used no longer can be forgotten."""

    def __init__(self, values: Sequence[Any] = ()) -> None:
        self._codes: dict[Any, int] = {value: code for code, value in enumerate(values)}

    def __len__(self) -> int:
        return len(self._codes)

    def encode(self, values: Sequence[Any]) -> Codes:
        """The codes of values that can be looked up.

        >>> Coded(["x"]).encode(["y", "x", None, "y"]).tolist()
        [1, 0, 2, 1]
        """
        known = self._codes
        for value in dict.fromkeys(values):
            if value not in known:
                known[value] = len(known)
        return np.fromiter(map(known.__getitem__, values), np.int64, len(values))

    def values(self) -> list[Any]:
        """All values, by their codes."""
        return list(self._codes)

    def crowded(self, used: int) -> bool:
        """Is most of it no longer in use, if `used` values are?"""
        return len(self._codes) > 2 * used + _SPARE

    def keep(self, used: Codes) -> Codes:
        """Forget all but the values with these codes; the new code of each old one, -1 where it is gone."""
        values = self.values()
        renamed = np.full(len(values), -1, np.int64)
        kept = np.unique(used)
        renamed[kept] = np.arange(len(kept))
        self._codes = {values[code]: place for place, code in enumerate(kept.tolist())}
        return renamed
