"""Columns as programs have them: every form that means something, and what each refusal says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tamis.errors import InputError
from tamis.expressions.nodes import Type
from tamis.predicates.parse import parse
from tamis.predicates.predicate import Predicate

DAYS = np.array(["2024-01-01", "2024-01-03", "NaT"], "datetime64[D]")
LATER = parse("t > TIMESTAMP '2024-01-02'")


def whole(sql: str) -> Predicate:
    return parse(sql, {"a": Type.BIGINT})


@pytest.mark.parametrize("unit", ["D", "s", "ms", "us", "ns"])
def test_times_are_read_in_any_unit(unit: str) -> None:
    column = DAYS.astype(f"datetime64[{unit}]")
    assert LATER.holds({"t": column}).tolist() == [False, True, False]
    assert parse("t IS NULL", {"t": Type.TIMESTAMP}).holds({"t": column}).tolist() == [False, False, True]
    assert LATER.holds({"t": np.array([1704067200000000, 1704240000000000, None])}).tolist() == [
        False,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("predicate", "data"),
    [
        (parse("a < 5"), np.array([1.0, 1.0, 9.0])),
        (parse("a < 5"), np.array([1, 1, 9])),
        (whole("a < 5"), np.array([1, 1, 9])),
        (parse("a = 'x'"), np.array(["x", "x", "y"])),
        (parse("a = 'x'"), np.array(["x", "x", "y"], np.object_)),
        (parse("a"), np.array([True, True, False])),
        (parse("a < TIMESTAMP '2024-01-02'"), np.array(["2024-01-01", "2024-01-01", "2024-01-03"], "M8[ns]")),
    ],
)
def test_what_is_masked_is_null(predicate: Predicate, data: Any) -> None:
    masked = np.ma.masked_array(data, [False, True, False])
    assert predicate.holds({"a": masked}).tolist() == [True, False, False]
    assert predicate.holds({"a": data}).tolist() == [True, True, False]


def test_whole_floats_stand_for_integers_and_no_others() -> None:
    column = np.array([1.0, np.nan, 5.0])
    assert whole("a < 5").holds({"a": column}).tolist() == [True, False, False]
    assert whole("a IS NULL").holds({"a": column}).tolist() == [False, True, False]
    with pytest.raises(InputError, match=r"column 'a', value 1: 2\.5 is not a value of type BIGINT"):
        whole("a = 2").holds({"a": np.array([2.0, 2.5])})


def test_unsigned_integers_are_not_turned_negative() -> None:
    assert whole("a > 3").holds({"a": np.array([2**63 - 1, 3], np.uint64)}).tolist() == [True, False]
    assert parse("a > 3").holds({"a": np.array([2**64 - 1, 3], np.uint64)}).tolist() == [True, False]
    with pytest.raises(InputError, match="18446744073709551615 is not a value of type BIGINT"):
        whole("a > 3").holds({"a": np.array([2**64 - 1], np.uint64)})


@pytest.mark.parametrize(
    ("sql", "column"),
    [
        ("a < 5", np.array(["1"])),
        ("a < 5", np.array(["1"], np.object_)),
        ("a < 5", np.array([True])),
        ("a < 5", np.array([1j])),
        ("a = 'x'", np.array([1.0])),
        ("a = 'x'", np.array([b"x"])),
        ("a", np.array([1])),
        ("a < TIMESTAMP '2024-01-01'", np.array(["2024-01-01"])),
    ],
)
def test_nothing_else_is_converted(sql: str, column: Any) -> None:
    with pytest.raises(InputError, match=r"column 'a', value 0: .* is not a value of type"):
        parse(sql).holds({"a": column})


def test_columns_fit_together() -> None:
    found = parse("a < 5 AND b > 1")
    for columns in (
        {"a": np.zeros(2), "b": np.zeros(3)},
        {"z": np.zeros(3), "a": np.zeros(2), "b": np.zeros(2)},
        {"a": np.zeros((1, 2)), "b": np.zeros((1, 2))},
    ):
        with pytest.raises(InputError, match="columns of the shapes"):
            found.holds(columns)
    with pytest.raises(KeyError, match="b"):
        found.holds({"a": np.zeros(2)})


def test_no_rows_and_no_attributes() -> None:
    for sql, empty in (("a < 5", np.zeros(0)), ("a = 'x'", np.array([], np.object_))):
        assert parse(sql).holds({"a": empty}).shape == (0,)
    assert parse("TRUE").holds({"a": np.zeros(2)}).tolist() == [True, True]
    assert parse("FALSE").holds({"a": np.zeros(2)}).tolist() == [False, False]
    assert parse("TRUE").holds({}).shape == (0,)
