"""A new SQL function, by the recipe of CONTRIBUTING.md: all else follows from the entry that stands there."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from tests.unit.repository.functions_page import table

from tamis.analysis.possible_values import Values, possible
from tamis.certificates.curvature.properties import Curvature
from tamis.certificates.curvature.prover import Prover
from tamis.certificates.interval_arithmetic.derivatives import UndefinedError
from tamis.certificates.interval_arithmetic.intervals import span
from tamis.certificates.interval_arithmetic.subdivision import Effort, derivatives_over
from tamis.errors import SqlErrors
from tamis.expressions import nodes
from tamis.expressions.duckdb_sql import to_duckdb
from tamis.expressions.evaluate import evaluate
from tamis.expressions.exact.conditions import ANY, FALSE, TRUE, outcomes
from tamis.expressions.exact.rounding import bound
from tamis.expressions.functions import entry, libm
from tamis.expressions.functions.entry import FUNCTIONS, SPELLINGS, Function
from tamis.expressions.json_form import from_json, to_json
from tamis.expressions.nodes import Call, Column, Literal, Type
from tamis.expressions.signatures import call
from tamis.expressions.sql_text import to_sql
from tamis.expressions.vectors import Vector
from tamis.query.condition import read_condition

GUIDE = (Path(__file__).resolve().parents[3] / "CONTRIBUTING.md").read_text()
X = Column("", "x", Type.DOUBLE)
VALUES = [-1e300, -2.5, -5e-324, 0.0, 0.1, 1.0, 1e300, None]


def entry_of_the_guide() -> Function:
    (text,) = re.findall(r"```python\n(Function\(.*?\n\))\n```", GUIDE, re.DOTALL)
    names: dict[str, Any] = {**vars(libm), "asinh": np.vectorize(math.asinh, otypes=[np.float64])}
    function = eval(text, names)
    assert isinstance(function, Function)
    return function


@pytest.fixture(params=["with rules for proofs", "without"])
def asinh(request: pytest.FixtureRequest) -> Iterator[Function]:
    function = entry_of_the_guide()
    if request.param == "without":
        function = replace(function, real=None)
    entry.register(function)
    yield function
    del FUNCTIONS["asinh"], SPELLINGS["asinh"]
    nodes._operators.discard("asinh")


def test_without_an_entry_there_is_no_call() -> None:
    with pytest.raises(ValueError, match="no operator 'asinh' in the table of functions"):
        Call("asinh", (X,), Type.DOUBLE)
    with pytest.raises(SqlErrors, match="no function 'asinh'"):
        read_condition("asinh(x) > 1")


@pytest.mark.usefixtures("asinh")
def test_it_is_parsed_typed_and_written() -> None:
    condition = read_condition("asinh(x) > 1")
    assert condition == Call(">", (call("asinh", X), Literal(1, Type.INT)), Type.BOOLEAN)
    assert to_sql(condition) == "asinh(x) > 1"
    assert from_json(to_json(condition)) == condition
    with pytest.raises(SqlErrors, match="asinh can't be applied to VARCHAR"):
        read_condition("asinh('a') > 1")
    with pytest.raises(SqlErrors, match="asinh takes 1 argument, not 2"):
        read_condition("asinh(x, 1) > 1")


@pytest.mark.usefixtures("asinh")
def test_it_is_evaluated_as_in_duckdb() -> None:
    column = Vector.from_list(VALUES, Type.DOUBLE)
    ours = evaluate(call("asinh", X), {("", "x"): column}, len(VALUES)).to_list()
    assert ours == [None if value is None else math.asinh(value) for value in VALUES]
    with duckdb.connect() as connection:
        rows = ", ".join(f"({'NULL' if v is None else repr(v)}::DOUBLE)" for v in VALUES)
        text = f"SELECT {to_duckdb(call('asinh', X))} FROM (VALUES {rows}) AS t(x)"
        theirs = [value for (value,) in connection.execute(text).fetchall()]
    assert theirs == ours


def test_proofs_use_its_rules(asinh: Function) -> None:
    number, box = call("asinh", X), {X: span(1.0, 2.0)}
    possible_values = possible(number, {X: Values(1.0, 2.0)})
    if asinh.real is None:  # nothing is proved, and nothing wrong
        assert possible_values == Values()
        with pytest.raises(UndefinedError, match="nothing is proved"):
            derivatives_over(number, box, X)
        assert bound(call("asinh", call("+", X, X))) == Literal(None, Type.DOUBLE)
        return
    assert possible_values.low <= math.asinh(1.0) and math.asinh(2.0) <= possible_values.high < 1.45
    enclosed = derivatives_over(number, box, X)
    assert enclosed.value.lo <= math.asinh(1.0) and math.asinh(2.0) <= enclosed.value.hi < 1.45
    assert enclosed.first.lo <= 1 / math.sqrt(5) and 1 / math.sqrt(2) <= enclosed.first.hi
    assert enclosed.second.lo <= -1 / math.sqrt(8) and -2 / math.sqrt(125) <= enclosed.second.hi < 0
    assert Curvature.RISING in Prover(box, X, Effort(1_000)).fact(number).curvature
    error = bound(call("asinh", call("+", X, X)))
    assert error is not None and error != Literal(None, Type.DOUBLE)
    x = {("", "x"): Vector.from_list([1.0], Type.DOUBLE)}
    (value,) = evaluate(error, x, 1).to_list()
    assert isinstance(value, float) and 0 < value < 1e-14


def test_rounding_can_be_decided_by_its_ball(asinh: Function) -> None:
    limit = math.asinh(1.5)
    above = Fraction("1.1947632172871093041119308285190905235361620751530054292706802995")
    condition = call(">", call("asinh", X), Literal(limit, Type.DOUBLE))
    (outcome,) = outcomes(condition, {("", "x"): Vector.from_list([1.5], Type.DOUBLE)}, 1).tolist()
    exact = TRUE if above > Fraction(limit) else FALSE
    assert outcome == (ANY if asinh.real is None else exact)


@pytest.mark.usefixtures("asinh")
def test_it_is_documented_and_completed() -> None:
    assert "`log10(x)`, `asinh(x)`" in table().replace("`power(x, y)`, ", "")
    from tamis.query.functions import SCALAR_FUNCTIONS

    assert "asinh" in SCALAR_FUNCTIONS
