"""Comparisons of linear forms: their ranges of attributes, and where NULL and rounding decide."""

from __future__ import annotations

import numpy as np
import pytest

from tamis.errors import RefusedError
from tamis.expressions.nodes import Type
from tamis.predicates.matching import implies, surely_implies
from tamis.predicates.parse import parse

TYPES = {"x": Type.DOUBLE, "y": Type.DOUBLE, "n": Type.INT, "m": Type.INT, "b": Type.BIGINT, "c": Type.BIGINT}


@pytest.mark.parametrize(
    ("sql", "canonical"),
    [
        ("2 * x > 300", "x > 150"),
        ("300 < x * 2", "x > 150"),
        ("10 - x / 4 <= 8", "x > 7.999999999999996"),  # as computed
        ("NOT (x + x > 3)", "x <= 1.5"),
        ("x * 0.1 >= 0.3", "x > 2.999999999999999"),
        ("n + 1 = 3", "n = 2"),
        ("2 * n > 3", "n >= 2"),
        ("n / 2 > 3", "n >= 7"),
        ("2 * n = 3", "FALSE"),
        ("2 * b > 300", "b >= 151 AND b < 4611686018427387904"),
        ("2 * b IS NOT NULL", "b >= -4611686018427387904 AND b < 4611686018427387904"),
        ("x + y > 3 OR x + y <= 3", "x + y IS NOT NULL"),
        ("y + x > 3 AND x + y < 5", "y + x > 3 AND y + x < 5"),
        ("n - x > 3", "n - x > 3"),
        ("x + y > 5 AND x < 2 AND y < 3", "FALSE"),
    ],
)
def test_a_form_of_one_attribute_is_a_range_and_another_form_a_dimension(sql: str, canonical: str) -> None:
    assert parse(sql, TYPES).sql() == canonical


@pytest.mark.parametrize("sql", ["x - x + y > 3", "x * y > 3", "x + y > n", "x / 0 > 1", "x + y IS NULL"])
def test_other_arithmetic_is_refused(sql: str) -> None:
    with pytest.raises(RefusedError):
        parse(sql, TYPES)


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        ("x + y > 190", "x + y > 150"),
        ("x > 100 AND y > 60", "x + y > 150"),
        ("x + y > 100 AND x - y > 50", "x > 75"),
        ("x + y > 100 AND y < 20", "x > 80"),
        ("b + c > 190", "b + c > 150"),
        ("n > 100 AND m > 49", "n + m > 150"),
        ("2 * n + 2 * m > 3", "n + m >= 2"),
        ("x > 80 AND y > 75", "x + y > 150 OR x <= 75"),
    ],
)
def test_implications_of_linear_forms(narrow: str, wide: str) -> None:
    assert surely_implies(parse(narrow, TYPES), parse(wide, TYPES))
    assert implies(parse(narrow, TYPES), parse(wide, TYPES))


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        ("x + y > 150", "x + y > 190"),
        ("x > 100 AND y > 40", "x + y > 150"),
        ("b > 100 AND c > 60", "b + c > 150"),  # a sum that overflows is NULL
        ("x > 100", "x + y > 100 OR x + y <= 100"),  # y may be NULL
        ("x > 0.1 AND y > 0.2", "x + y > 0.31"),
    ],
)
def test_a_tuple_refutes_other_implications(narrow: str, wide: str) -> None:
    assert not surely_implies(parse(narrow, TYPES), parse(wide, TYPES))
    assert not implies(parse(narrow, TYPES), parse(wide, TYPES))


def test_forms_are_evaluated_as_computed() -> None:
    columns = {
        "x": np.array([0.1, 0.1, np.nan, 1e308]),
        "y": np.array([0.2, 0.1, 0.5, 1e308]),
        "n": np.array([1, 2, None, 4], np.object_),
    }
    assert parse("x + y > 0.3", TYPES).holds(columns).tolist() == [True, False, False, False]
    assert parse("x + n >= 2", TYPES).holds(columns).tolist() == [False, True, False, True]
    assert parse("2 * n > 3", TYPES).holds(columns).tolist() == [False, True, False, True]
