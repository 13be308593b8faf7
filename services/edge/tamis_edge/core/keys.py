"""Keys as dense codes, so that all work per key is work on integers; each distinct key is encoded once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.expressions.vectors import Vector
from tamis.messaging.records import canonical_key
from tamis_edge.core.partitioner import partition_of

Int64s = npt.NDArray[np.int64]


class KeyTable:
    """Codes of the values of some columns, in the order of their first occurrence."""

    def __init__(self) -> None:
        self._codes: dict[Any, int] = {}

    def __len__(self) -> int:
        return len(self._codes)

    def codes(self, columns: Sequence[Vector], rows: int) -> Int64s:
        """The code of each of `rows` rows; no columns: one key for all. NULL is a value of its own here."""
        if not columns:
            if not self._codes:
                self._learn((), ())
            return np.zeros(rows, np.int64)
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

    def _learn(self, key: Any, values: tuple[Any, ...]) -> None:
        self._codes[key] = len(self._codes)


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

    def _learn(self, key: Any, values: tuple[Any, ...]) -> None:
        code = len(self._codes)
        if code == len(self._partitions):
            self._partitions = np.concatenate([self._partitions, np.empty_like(self._partitions)])
        encoded = canonical_key(values)
        self.encoded.append(encoded)
        self._partitions[code] = partition_of(encoded, self._count)
        super()._learn(key, values)
