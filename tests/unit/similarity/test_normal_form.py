"""Normal form and similarity distance."""

from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tamis.errors import InputError
from tamis.similarity import distance, normal_form

SEQUENCES = st.lists(st.integers(-1000, 1000), min_size=4, max_size=4)


@given(SEQUENCES, st.floats(1e-3, 1e3), st.floats(-1e3, 1e3))
def test_scale_and_shift_do_not_change_the_normal_form(x: list[int], a: float, b: float) -> None:
    assume(len(set(x)) > 1)
    normal = normal_form(x)
    assert abs(normal.mean()) < 1e-12
    assert abs(normal.std() - 1) < 1e-12
    assert np.abs(normal_form(a * np.array(x) + b) - normal).max() < 1e-6
    assert distance(x, a * np.array(x) + b) < 1e-6


@given(SEQUENCES, SEQUENCES, SEQUENCES)
def test_similarity_distance_is_a_metric_up_to_2(x: list[int], y: list[int], z: list[int]) -> None:
    assume(all(len(set(s)) > 1 for s in (x, y, z)))
    assert distance(x, y) == distance(y, x)
    assert 0 <= distance(x, y) <= 2 + 1e-12
    assert distance(x, z) <= distance(x, y) + distance(y, z) + 1e-12
    assert distance(x, [-v for v in x]) == pytest.approx(2)


def test_huge_offsets_lose_no_digits() -> None:
    assert normal_form([1e15, 1e15 + 2, 1e15, 1e15 + 2]).tolist() == [-1, 1, -1, 1]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "at least two"),
        ([1.0], "at least two"),
        ([[1.0, 2.0]], "at least two"),
        ([3.0, 3.0, 3.0], "all equal"),
        ([0.1] * 10, "all equal"),
        ([1.0, nan], "value 1 is nan"),
        ([1.0, None], "value 1 is nan"),
        ([-inf, 1.0], "value 0 is -inf"),
        ([1.0, 2e150], "value 1 is 2e"),
        (["warm", "cold"], "not numbers"),
    ],
)
def test_sequences_without_a_normal_form_are_refused(values: list[float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        normal_form(values)
    with pytest.raises(InputError, match=message):
        distance([1.0, 2.0], values)


def test_distances_need_equal_lengths() -> None:
    with pytest.raises(InputError, match="not of 2 and 3"):
        distance([1, 2], [1, 2, 3])
