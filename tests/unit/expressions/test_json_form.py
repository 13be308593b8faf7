"""The JSON form of expressions: it keeps every value, and other documents are refused."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
import orjson
import pytest
from tests.oracle.expressions.expression_trees import DOUBLES, INTEGERS, Seeded, tree

from tamis.errors import InputError
from tamis.expressions.evaluate import evaluate
from tamis.expressions.json_form import MAX_DEPTH, MAX_NODES, MAX_TEXT, from_json, to_json
from tamis.expressions.nodes import Call, Column, Expr, Literal, Type
from tamis.expressions.sql_text import to_sql
from tamis.expressions.vectors import Vector

COLUMN = ["column", "a", "temp", "DOUBLE"]
X = Column("a", "temp", Type.DOUBLE)


def test_looks_as_documented() -> None:
    expr = Call(
        ">", (Call("+", (X, Literal(2, Type.INT)), Type.DOUBLE), Literal(0.5, Type.DOUBLE)), Type.BOOLEAN
    )
    form = [">", "BOOLEAN", ["+", "DOUBLE", COLUMN, ["literal", "INT", 2]], ["literal", "DOUBLE", 0.5]]
    assert to_json(expr) == form and from_json(form) == expr


def test_random_trees_come_back_the_same() -> None:
    for case in range(1_000):
        choose = Seeded(f"json {case}")
        expr = tree(choose, choose.one_of(tuple(Type)), 6)
        for text in (orjson.dumps(to_json(expr)), json.dumps(to_json(expr))):
            again = from_json(orjson.loads(text))
            assert again == expr and repr(again) == repr(expr), (
                case
            )  # repr tells 0.0 from -0.0, and 1 from 1.0


def test_numbers_come_back_to_the_bit() -> None:
    for number in DOUBLES:
        again = from_json(orjson.loads(orjson.dumps(to_json(Literal(number, Type.DOUBLE)))))
        assert isinstance(again, Literal) and isinstance(again.value, float)
        assert struct.pack("<d", again.value) == struct.pack("<d", number)
    for integer in INTEGERS:
        assert from_json(orjson.loads(orjson.dumps(to_json(Literal(integer, Type.BIGINT))))) == Literal(
            integer, Type.BIGINT
        )
    shortened = from_json(["literal", "DOUBLE", 5])
    assert isinstance(shortened, Literal) and type(shortened.value) is float


def chain(depth: int) -> Expr:
    expr: Expr = X
    for _ in range(depth - 1):
        expr = Call("neg", (expr,), Type.DOUBLE)
    return expr


def test_the_deepest_that_is_taken_can_be_used() -> None:
    expr = chain(MAX_DEPTH)
    assert from_json(to_json(expr)) == expr
    assert evaluate(expr, {("a", "temp"): Vector(np.array([1.0, 2.0]))}, 2).to_list() == [-1.0, -2.0]
    assert to_sql(expr).endswith("a.temp" + ")" * (MAX_DEPTH - 2))
    with pytest.raises(InputError, match="deeper than 200"):
        to_json(chain(MAX_DEPTH + 1))


def test_the_largest_that_is_taken() -> None:
    flags = [["column", "", "f", "BOOLEAN"]]
    form = ["or", "BOOLEAN", *flags * (MAX_NODES - 1)]
    assert to_json(from_json(form)) == form
    with pytest.raises(InputError, match="more than 10000 parts"):
        from_json(["or", "BOOLEAN", *flags * MAX_NODES])
    with pytest.raises(InputError, match="more than 10000 parts"):
        to_json(Call("or", (Column("", "f", Type.BOOLEAN),) * MAX_NODES, Type.BOOLEAN))


def nested(levels: int) -> list[Any]:
    form: list[Any] = COLUMN
    for _ in range(levels):
        form = ["neg", "DOUBLE", form]
    return form


def laughs() -> list[Any]:
    """A billion nodes in a few lists: shared in memory, as no JSON text can be."""
    form: list[Any] = ["column", "", "f", "BOOLEAN"]
    for _ in range(9):
        form = ["and", "BOOLEAN", *[form] * 10]
    return form


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (None, "expected a list"),
        ({}, "a dict of 0"),
        ([], "a list of 0"),
        ("column", "expected a list"),
        ([["neg"]], "unknown operator a list of 1"),
        ([None, "DOUBLE", COLUMN], "unknown operator None"),
        (["eval", "DOUBLE", COLUMN], "unknown operator 'eval'"),
        (["__class__" * 1_000, "DOUBLE", COLUMN], "unknown operator '__class__"),
        (["column", "a", "temp"], "has 4 items, found 3"),
        (["column", "a", "temp", "DOUBLE", 1], "has 4 items, found 5"),
        (["column", 1, "temp", "DOUBLE"], r"expression\[1\]: expected a string, found 1"),
        (["column", "a", None, "DOUBLE"], r"expression\[2\]: expected a string, found None"),
        (["column", "a", "x" * (MAX_TEXT + 1), "DOUBLE"], "a string of 10001 characters"),
        (["column", "a", "temp", "FLOAT"], "unknown type 'FLOAT'"),
        (["column", "a", "temp", ["DOUBLE"]], "unknown type a list of 1"),
        (["literal", "DOUBLE"], "has 3 items, found 2"),
        (["literal", "DOUBLE", "1"], "'1' is not a value of type DOUBLE"),
        (["literal", "DOUBLE", True], "True is not a value of type DOUBLE"),
        (["literal", "DOUBLE", float("nan")], "nan is not a value"),
        (["literal", "DOUBLE", float("inf")], "inf is not a value"),
        (["literal", "DOUBLE", 2**53 + 1], "is not a value of type DOUBLE"),
        (["literal", "DOUBLE", 10**6_000], "an integer of more than 64 bits"),
        (["literal", "BIGINT", 2**63], "is not a value of type BIGINT"),
        (["literal", "BIGINT", 1.0], "1.0 is not a value of type BIGINT"),
        (["literal", "BIGINT", False], "False is not a value of type BIGINT"),
        (["literal", "TIMESTAMP", "2026-01-01"], "is not a value of type TIMESTAMP"),
        (["literal", "BOOLEAN", 1], "1 is not a value of type BOOLEAN"),
        (["literal", "VARCHAR", 1], "expected a string, found 1"),
        (["literal", "VARCHAR", "\ud800"], "half of a surrogate pair"),
        (["literal", "VARCHAR", {"a": 1}], "expected a string, found a dict"),
        (["neg", "DOUBLE"], "neg has no arguments"),
        (["neg", COLUMN, COLUMN], "unknown type a list of 4"),
        (["neg", "DOUBLE", COLUMN, COLUMN], r"neg does not take \(DOUBLE, DOUBLE\)"),
        (["neg", "BIGINT", COLUMN], "the result of neg is DOUBLE for these arguments, not BIGINT"),
        (["and", "BOOLEAN", COLUMN], r"and does not take \(DOUBLE\)"),
        (["case", "DOUBLE", COLUMN, COLUMN], "case does not take"),
        (["+", "BIGINT", ["literal", "VARCHAR", "a"], ["literal", "INT", 1]], "does not take"),
        (["=", "BOOLEAN", ["literal", "VARCHAR", "a"], ["literal", "INT", 1]], "does not take"),
        (
            ["+", "DOUBLE", COLUMN, ["+", "DOUBLE", COLUMN, ["sin", "DOUBLE", COLUMN]]],
            r"expression\[3\]\[3\]\[0\]",
        ),
        (nested(MAX_DEPTH), "deeper than 200"),
        (nested(100_000), "deeper than 200"),
        (laughs(), "more than 10000 parts"),
    ],
)
def test_anything_else_is_refused_with_its_place(form: object, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        from_json(form)
    assert str(caught.value).startswith("expression") and len(str(caught.value)) < 250


def test_damaged_forms_raise_nothing_else() -> None:
    junk: tuple[Any, ...] = (
        None,
        True,
        -1,
        2**70,
        0.5,
        float("nan"),
        "",
        "neg",
        "DOUBLE",
        [],
        {},
        ["column"],
        COLUMN,
    )
    for case in range(3_000):
        choose = Seeded(f"damage {case}")
        form: Any = to_json(tree(choose, choose.one_of(tuple(Type)), 4))
        part = form
        while isinstance(part, list):
            at = choose.one_of(range(len(part)))
            if not isinstance(part[at], list) or choose.one_of(range(3)) == 0:
                part[at] = choose.one_of(junk)
                break
            part = part[at]
        try:
            expr = from_json(form)
        except InputError:
            continue
        assert to_json(from_json(to_json(expr))) == to_json(expr)
