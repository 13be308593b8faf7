"""The different numbers of an array, beside a set."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tamis_joiner.core.tuples.stored_tuples import distinct

NEAR = st.integers(-3, 40)
FAR = st.integers(-(2**62), 2**62)


@given(st.lists(NEAR, max_size=60) | st.lists(FAR, max_size=6))
def test_each_number_once_and_ascending(numbers: list[int]) -> None:
    assert distinct(np.array(numbers, np.int64)).tolist() == sorted(set(numbers))
