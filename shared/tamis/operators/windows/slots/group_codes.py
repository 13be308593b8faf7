"""Codes of groups, with the memory that their values take up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from sys import getsizeof
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from tamis.expressions.nodes import Column
from tamis.expressions.vectors import NumberedTexts, Vector
from tamis.operators.time_join.key_codes import DictionaryEncoder
from tamis.operators.windows.group_rows import group_codes, group_values
from tamis.operators.windows.table import Places

# Bytes of an entry of a dictionary.
_ENTRY = 120


class GroupCodes:
    """Gives each group a code. Groups that are one text with a number are looked up by this number."""

    def __init__(self, by: Sequence[Column]) -> None:
        self._by = by
        self._groups = DictionaryEncoder()
        # By table of texts: the code of each number, -1 if it has none yet.
        self._numbered: WeakKeyDictionary[object, Places] = WeakKeyDictionary()
        self._held = 0

    def encode(self, by: Sequence[Vector], rows: int) -> Places:
        """The codes of the groups of rows."""
        known = len(self._groups)
        if len(by) == 1 and isinstance(by[0], NumberedTexts):
            codes = self._of_numbers(by[0])
        else:
            codes = group_codes(self._groups, by, rows)
        if len(self._groups) > known:
            self._held += _bytes(self._groups.newest(len(self._groups) - known))
        return codes

    def _of_numbers(self, texts: NumberedTexts) -> Places:
        known = self._numbered.get(texts.table, np.empty(0, np.int64))
        most = int(texts.numbers.max(initial=0))
        if len(known) <= most:
            more = np.full(max(most + 1 - len(known), len(known)), -1, np.int64)
            known = self._numbered[texts.table] = np.concatenate((known, more))
        codes = known[texts.numbers]
        if texts.null is not None:
            codes[texts.null] = self._groups.encode([None])
        new = np.flatnonzero(codes < 0)
        if len(new):
            codes[new] = self._groups.encode(texts.data[new].tolist())
            known[texts.numbers[new]] = codes[new]
        return codes

    def values(self, codes: Places) -> tuple[Vector, ...]:
        """The values of groups, by column."""
        return tuple(group_values(self._groups, self._by, codes))

    def keep(self, codes: Places) -> Places:
        """Forget the groups without these codes, once all or many are unused; returns their new codes."""
        if len(codes) and not self._groups.sparse(len(codes)):
            return codes
        renamed = self._groups.keep(codes)
        self._numbered.clear()
        self._held = _bytes(self._groups.values())
        return renamed[codes]

    @property
    def bytes(self) -> int:
        """The memory that they take up, about."""
        return self._held + sum(known.nbytes for known in self._numbered.values())


def _bytes(groups: Iterable[Any]) -> int:
    """The memory of groups, about: one value each, or a tuple of values."""
    return sum(
        _ENTRY + getsizeof(group) + (sum(map(getsizeof, group)) if isinstance(group, tuple) else 0)
        for group in groups
    )
