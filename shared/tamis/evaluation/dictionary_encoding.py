"""Dictionary encoding: values of any type become whole numbers, for tables and joins."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int64]

# A dictionary is rebuilt once it has this many unused values, and more unused values than used ones.
_SPARE = 1_000


class DictionaryEncoder:
    """Gives equal values the same code, and can forget the values that are no longer used."""

    def __init__(self, values: Sequence[Any] = ()) -> None:
        self._codes: dict[Any, int] = {value: code for code, value in enumerate(values)}

    def __len__(self) -> int:
        return len(self._codes)

    def encode(self, values: Sequence[Any]) -> Codes:
        """The codes of hashable values.

        >>> DictionaryEncoder(["x"]).encode(["y", "x", None, "y"]).tolist()
        [1, 0, 2, 1]
        """
        found = self.find(values)
        new = np.flatnonzero(found < 0)
        if len(new):
            known = self._codes
            unknown = [values[row] for row in new.tolist()]
            for value in dict.fromkeys(unknown):
                known[value] = len(known)
            found[new] = self.find(unknown)
        return found

    def find(self, values: Sequence[Any]) -> Codes:
        """The codes of hashable values, -1 for values that have none.

        >>> DictionaryEncoder(["x"]).find(["y", "x"]).tolist()
        [-1, 0]
        """
        return np.fromiter(map(self._codes.get, values, repeat(-1)), np.int64, len(values))

    def values(self) -> list[Any]:
        """All values, in the order of their codes."""
        return list(self._codes)

    def sparse(self, used: int) -> bool:
        """True if most values are no longer used; `used` is the number of values in use."""
        return len(self._codes) > 2 * used + _SPARE

    def keep(self, used: Codes) -> Codes:
        """Forget the values without these codes; returns the new code of each old one, -1 for none."""
        values = self.values()
        renamed = np.full(len(values), -1, np.int64)
        kept = np.unique(used)
        renamed[kept] = np.arange(len(kept))
        self._codes = {values[code]: place for place, code in enumerate(kept.tolist())}
        return renamed
