"""Keys as dense codes, so that all work per key is work on integers; each distinct key is encoded once.

Keys that nothing remembers are forgotten, and their codes given to others: a key that is made up, or gone for
good, costs nothing for long.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.expressions.vectors import Vector
from tamis.messaging.records import canonical_key
from tamis_edge.core.partitioner import partition_of

Int64s = npt.NDArray[np.int64]

# Keys that are known before the first look for those that may be forgotten.
MANY = 4096


class KeyTable:
    """Codes of the values of some columns."""

    def __init__(self) -> None:
        self._codes: dict[Any, int] = {}
        self._end = 0  # every code is below
        self._free: list[int] = []
        self._many = MANY

    def __len__(self) -> int:
        return len(self._codes)

    @property
    def grown(self) -> bool:
        """It is worth its while to look for keys to forget: there are twice as many as were needed last."""
        return len(self._codes) >= self._many

    def forget(self, live: Sequence[Int64s]) -> None:
        """Forget all keys but those of the codes in `live`, which stay as they are."""
        alive = np.zeros(self._end, np.bool_)
        for codes in live:
            alive[codes] = True
        self._end = int(np.flatnonzero(alive)[-1]) + 1 if alive.any() else 0
        self._codes = {key: code for key, code in self._codes.items() if alive[code]}
        self._free = np.flatnonzero(~alive[: self._end]).tolist()
        self._many = max(MANY, 2 * len(self._codes))

    def codes(self, columns: Sequence[Vector], rows: int) -> Int64s:
        """The code of each of `rows` rows; no columns: one key for all. NULL is a value of its own here."""
        if not columns:
            if not self._codes:
                self._learn((), ())
            return np.full(rows, self._codes[()])
        keys: Sequence[Any] = (
            columns[0].to_list()
            if len(columns) == 1
            else list(zip(*(column.to_list() for column in columns), strict=True))
        )
        known = self._codes
        codes = list(map(known.get, keys))
        if None in codes:
            for i, key in enumerate(keys):
                if codes[i] is None:
                    if key not in known:
                        self._learn(key, (key,) if len(columns) == 1 else key)
                    codes[i] = known[key]
        return np.array(codes, np.int64)

    def _learn(self, key: Any, values: tuple[Any, ...]) -> int:
        code = self._free.pop() if self._free else self._end
        self._end = max(self._end, code + 1)
        self._codes[key] = code
        return code


class MessageKeys(KeyTable):
    """Partition keys: with each code its message key and its output partition."""

    def __init__(self, partitions: int) -> None:
        super().__init__()
        self._count = partitions
        self.encoded: list[bytes] = []
        self._partitions = np.empty(16, np.int64)

    def partitions(self, codes: Int64s) -> Int64s:
        """The output partition of each code."""
        return self._partitions[codes]

    def forget(self, live: Sequence[Int64s]) -> None:
        super().forget(live)
        del self.encoded[self._end :]
        for code in self._free:
            self.encoded[code] = b""
        self._partitions = self._partitions[: max(16, self._end)].copy()

    def _learn(self, key: Any, values: tuple[Any, ...]) -> int:
        code = super()._learn(key, values)
        if code >= len(self._partitions):
            self._partitions = np.concatenate([self._partitions, np.empty_like(self._partitions)])
        encoded = canonical_key(values)
        if code < len(self.encoded):
            self.encoded[code] = encoded
        else:
            self.encoded.append(encoded)
        self._partitions[code] = partition_of(encoded, self._count)
        return code
