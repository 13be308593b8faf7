"""Codes of values: whole numbers, so that joins and tables sort and compare keys as integers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, repeat
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from tamis.expressions.vectors import NumberedTexts, Vector

Codes = NDArray[np.int64]

# A dictionary is rebuilt once it has this many unused values, and more unused values than used ones.
_SPARE = 1_000

NO_KEY = -1
# A table of texts may have those of many partitions, and these codes are of one. An array of all numbers is
# made if there are at most so many for each key: then it takes about as much memory as the keys.
_MOST_NUMBERS = 16


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
        codes = self.find(values)
        new = np.flatnonzero(codes < 0)
        if len(new):
            known = self._codes
            unknown = [values[row] for row in new.tolist()]
            for value in dict.fromkeys(unknown):
                known[value] = len(known)
            codes[new] = self.find(unknown)
        return codes

    def find(self, values: Sequence[Any]) -> Codes:
        """The codes of hashable values, -1 for values that have none.

        >>> DictionaryEncoder(["x"]).find(["y", "x"]).tolist()
        [-1, 0]
        """
        return np.fromiter(map(self._codes.get, values, repeat(-1)), np.int64, len(values))

    def values(self) -> list[Any]:
        """All values, in the order of their codes."""
        return list(self._codes)

    def newest(self, count: int) -> list[Any]:
        """The values with the `count` greatest codes, the greatest first."""
        return list(islice(reversed(self._codes), count))

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


class KeyCodes:
    """Gives equal keys the same code, over all calls of `encode`.

    Numbers are equal by value (1 = 1.0), as in SQL; text is never equal to a number. A key that contains NULL
    has the code `NO_KEY`. Codes may have gaps.
    """

    def __init__(self) -> None:
        self._codes = DictionaryEncoder()
        # By table of texts: the code of each number, -1 if it has none yet.
        self._numbered: WeakKeyDictionary[object, NDArray[np.int64]] = WeakKeyDictionary()

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
            return np.full(size, self._codes.encode([()])[0], np.int64)
        if len(key) == 1 and isinstance(key[0], NumberedTexts):
            most = int(key[0].numbers.max(initial=0))
            if most <= _MOST_NUMBERS * len(self):
                return self._of_numbers(key[0], most)
        columns = [vector.data.tolist() for vector in key]
        # A single column needs no tuples; one-tuples and plain values never meet, since all inputs of a query
        # have keys of the same length.
        values = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
        codes = self._codes.encode(values)
        for vector in key:
            if vector.null is not None:
                codes[vector.null] = NO_KEY
        return codes

    def _of_numbers(self, key: NumberedTexts, most: int) -> NDArray[np.int64]:
        """As `encode`; `most` is the greatest number. Only texts whose numbers are new are looked up."""
        known = self._numbered.get(key.table, np.empty(0, np.int64))
        if len(known) <= most:
            more = np.full(max(most + 1 - len(known), len(known)), -1, np.int64)
            known = self._numbered[key.table] = np.concatenate((known, more))
        codes = known[key.numbers]
        new = np.flatnonzero(codes < 0)
        if len(new):
            codes[new] = self._codes.encode(key.data[new].tolist())
            known[key.numbers[new]] = codes[new]
        if key.null is not None:
            codes[key.null] = NO_KEY
        return codes
