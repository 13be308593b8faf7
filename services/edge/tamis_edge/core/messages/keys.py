"""Partition keys as dense codes: each distinct key is encoded and assigned to a partition once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.evaluation.key_table import KeyTable
from tamis.messaging.records import canonical_key
from tamis_edge.core.messages.partitioner import partition_of

Int64s = npt.NDArray[np.int64]


class MessageKeys(KeyTable):
    """Codes of partition keys, with the message key and the output partition of each."""

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

    def _add(self, key: Any, values: tuple[Any, ...]) -> int:
        code = super()._add(key, values)
        if code >= len(self._partitions):
            self._partitions = np.concatenate([self._partitions, np.empty_like(self._partitions)])
        encoded = canonical_key(values)
        if code < len(self.encoded):
            self.encoded[code] = encoded
        else:
            self.encoded.append(encoded)
        self._partitions[code] = partition_of(encoded, self._count)
        return code
