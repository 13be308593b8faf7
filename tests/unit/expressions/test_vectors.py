"""Columns of values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tamis.errors import InputError
from tamis.expressions.evaluate import evaluate, holds
from tamis.expressions.nodes import Call, Column, Literal, Type
from tamis.expressions.signatures import call
from tamis.expressions.vectors import Vector, dtype_of

SAMPLES: dict[Type, list[Any]] = {
    Type.DOUBLE: [1.5, None, -0.0, 5e-324],
    Type.INT: [1, None, -(2**63), 2**63 - 1],
    Type.BIGINT: [2**53 + 1, 0, None, 7],
    Type.TIMESTAMP: [1_767_225_600_000_000, None, 0, -1],
    Type.INTERVAL: [30_000_000, None, 0, -1],
    Type.BOOLEAN: [True, None, False, True],
    Type.VARCHAR: ["", None, "é", "\U0001f600"],
}


@pytest.mark.parametrize("type_", Type)
def test_lists_come_back_the_same(type_: Type) -> None:
    values = SAMPLES[type_]
    vector = Vector.from_list(values, type_)
    assert vector.data.dtype == dtype_of(type_) and len(vector) == 4
    assert repr(vector.to_list()) == repr(values)
    full = [v for v in values if v is not None]
    assert Vector.from_list(full, type_).null is None
    empty = Vector.from_list([], type_)
    assert empty.to_list() == [] and empty.data.dtype == dtype_of(type_)
    nothing = Vector.from_list([None, None], type_)
    assert nothing.to_list() == [None, None] and nothing.data.dtype == dtype_of(type_)


@pytest.mark.parametrize("type_", Type)
def test_take_and_concat(type_: Type) -> None:
    values = SAMPLES[type_]
    vector = Vector.from_list(values, type_)
    assert repr(vector.take(np.array([3, 1, 1])).to_list()) == repr([values[3], values[1], values[1]])
    assert repr(vector.take(np.array([True, False, False, True])).to_list()) == repr([values[0], values[3]])
    plain = Vector.from_list(values[:1], type_)
    joined = Vector.concat([plain, vector, plain])
    assert repr(joined.to_list()) == repr([values[0], *values, values[0]])
    assert Vector.concat([plain, plain]).null is None
    assert Vector.concat([vector]) is vector


def test_full() -> None:
    assert Vector.full(Literal(2, Type.DOUBLE), 2).to_list() == [2.0, 2.0]
    assert Vector.full(Literal(None, Type.VARCHAR), 2).to_list() == [None, None]
    assert len(Vector.full(Literal("a", Type.VARCHAR), 0)) == 0
    with pytest.raises(InputError):
        Vector.full(Literal(2**63, Type.BIGINT), 1)


def test_what_is_not_finite_is_null() -> None:
    vector = Vector.from_list([float("nan"), 1, float("-inf")], Type.DOUBLE)
    assert vector.to_list() == [None, 1.0, None] and np.isfinite(vector.data).all()


@pytest.mark.parametrize(
    ("values", "type_", "place"),
    [
        ([1.0, "2"], Type.DOUBLE, "value 1: '2'"),
        ([1.0, True], Type.DOUBLE, "value 1: True"),
        ([10**400], Type.DOUBLE, "value 0: an integer of more than 64 bits"),
        ([0, 10**6_000], Type.BIGINT, "value 1: an integer of more than 64 bits"),
        ([None, 2**63], Type.BIGINT, "value 1: 9223372036854775808"),
        ([1.0], Type.INT, "value 0: 1.0"),
        ([0], Type.BOOLEAN, "value 0: 0"),
        (["a", 1], Type.VARCHAR, "value 1: 1"),
        ([b"a" * 1_000], Type.VARCHAR, "value 0: b'aaa"),
        ([[1.0]], Type.DOUBLE, "value 0: "),
    ],
)
def test_what_is_of_another_type_is_refused(values: list[Any], type_: Type, place: str) -> None:
    with pytest.raises(InputError) as caught:
        Vector.from_list(values, type_)
    assert str(caught.value).startswith(place) and len(str(caught.value)) < 200


def test_numpy_scalars_are_values() -> None:
    assert Vector.from_list([np.float64(0.5), np.int64(2)], Type.DOUBLE).to_list() == [0.5, 2.0]
    assert Vector.from_list([np.int64(2), None], Type.BIGINT).to_list() == [2, None]
    assert Vector.from_list([np.True_, None], Type.BOOLEAN).to_list() == [True, None]


def test_evaluate_says_what_is_missing_or_misshapen() -> None:
    x = Column("a", "x", Type.DOUBLE)
    with pytest.raises(KeyError):
        evaluate(x, {}, 1)
    with pytest.raises(ValueError, match="column x has 1 values, not 2"):
        evaluate(x, {("a", "x"): Vector.from_list([1.0], Type.DOUBLE)}, 2)


def test_evaluate_leaves_its_columns_alone() -> None:
    x = Column("a", "x", Type.DOUBLE)
    vector = Vector.from_list([-1.0, None, 0.0, 4.0], Type.DOUBLE)
    before = vector.data.copy(), vector.to_list()
    roots = call("case", call(">=", x, Literal(0, Type.INT)), call("ln", x), call("sqrt", call("neg", x)))
    assert evaluate(roots, {("a", "x"): vector}, 4).to_list() == [1.0, None, None, pytest.approx(1.386294361)]
    assert holds(call("<", x, Literal(1, Type.INT)), {("a", "x"): vector}, 4).tolist() == [
        True,
        False,
        True,
        False,
    ]
    assert (vector.data == before[0]).all() and vector.to_list() == before[1]


def test_types_of_operators() -> None:
    t, d = Column("", "t", Type.TIMESTAMP), Literal(5, Type.INTERVAL)
    assert call("-", t, t).type is Type.INTERVAL and call("+", d, t).type is Type.TIMESTAMP
    assert call("/", Literal(1, Type.INT), Literal(2, Type.INT)).type is Type.DOUBLE
    assert call("+", Literal(1, Type.INT), Literal(2, Type.BIGINT)).type is Type.BIGINT
    for op, args in (
        ("+", (t, t)),
        ("-", (d, t)),
        ("*", (d, d)),
        ("and", (t,)),
        ("nonsense", (t, t)),
        ("case", (t,)),
    ):
        with pytest.raises(InputError, match="does not take"):
            call(op, *args)
    assert isinstance(call("least", d, d), Call)
