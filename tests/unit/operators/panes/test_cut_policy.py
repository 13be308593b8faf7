"""Reasons for a full cut, by the numbers of the policy."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tamis.operators.windows.cut_policy import FULL_EVERY, MOST_ROWS, MOST_SEPARATE_BYTES, full_cut_due


@pytest.mark.parametrize(
    ("rows", "size", "keeps_values", "waited", "due"),
    [
        (MOST_ROWS, MOST_SEPARATE_BYTES, True, FULL_EVERY, False),
        (MOST_ROWS + 1, 0, False, 0, True),
        (1, MOST_SEPARATE_BYTES + 1, True, 0, True),
        (1, MOST_SEPARATE_BYTES + 1, False, 0, False),
        (1, 0, False, FULL_EVERY + 1, True),
    ],
)
def test_a_full_cut_is_due_above_each_limit(
    rows: int, size: int, keeps_values: bool, waited: int, due: bool
) -> None:
    open_: Any = SimpleNamespace(entries=rows, bytes=size, keeps_values=keeps_values)
    assert full_cut_due(open_, waited) is due
