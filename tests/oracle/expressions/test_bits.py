"""Operators of bits: values, errors and precedence are those of DuckDB."""

from __future__ import annotations

import random
from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest
from tests.oracle.expressions.test_sql_of_duckdb import resolved
from tests.oracle.random_cases import SEED, cases

from tamis.errors import SqlErrors
from tamis.expressions.duckdb_sql import to_duckdb
from tamis.expressions.evaluate import evaluate
from tamis.expressions.nodes import Type
from tamis.expressions.sql_text import to_sql
from tamis.expressions.vectors import Vector

EDGES = (0, 1, -1, 2**31 - 1, -(2**31), 2**53 + 1, -(2**53) - 1, 2**62, 2**63 - 1, -(2**63))
SHIFTS = (0, 1, 2, 30, 31, 32, 52, 61, 62, 63, 64, 65, 2**31, 2**62, -1, -(2**63))


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        yield connection


def numbers(r: random.Random, count: int) -> list[int | None]:
    ways = (
        lambda: r.choice(EDGES),
        lambda: r.randint(-9, 9),
        lambda: r.randint(-(2**63), 2**63 - 1),
        lambda: r.randint(2**53, 2**54),
        lambda: 1 << r.randint(0, 62),
        lambda: None,
    )
    return [r.choice(ways)() for _ in range(count)]


@pytest.mark.parametrize(
    "text", ["i & j", "i | j", "xor(i, j)", "i << s", "i >> s", "~i", "bit_and(i, j)", "bit_or(i, j)"]
)
def test_every_value_is_that_of_duckdb(text: str, duck: duckdb.DuckDBPyConnection) -> None:
    """What DuckDB refuses is NULL, here and in the SQL of the reference."""
    r = random.Random(f"{SEED} {text}")
    rows = cases(1 / 4)
    given: dict[str, list[int | None]] = {"i": numbers(r, rows), "j": numbers(r, rows)}
    given["s"] = [r.choice((*SHIFTS, r.randint(0, 66), None)) for _ in range(rows)]
    table = {name: pa.array(values, pa.int64()) for name, values in given.items()}
    duck.register("r", pa.table({"row": range(rows), **table}))
    expr = resolved(text, dict.fromkeys("ijs", Type.BIGINT))
    columns = {("r", name): Vector.from_list(values, Type.BIGINT) for name, values in given.items()}
    found = evaluate(expr, columns, rows).to_list()
    original = text.replace("bit_and(i, j)", "i & j").replace("bit_or(i, j)", "i | j")
    for sql in (f"TRY({original})", to_duckdb(expr, lambda column: column.name)):
        expected = [value for (value,) in duck.execute(f"SELECT {sql} FROM r ORDER BY row").fetchall()]
        assert found == expected, sql


OPERATORS = ("&", "|", "<<", ">>", "+", "-", "*", "%", "=", "<", "||")


def test_precedence_is_that_of_duckdb(duck: duckdb.DuckDBPyConnection) -> None:
    """Chains without parentheses. One that DuckDB refuses has types that don't fit, here too."""
    r = random.Random(f"{SEED} precedence")
    compared = 0
    for _ in range(cases(1 / 30)):
        names = [
            r.choice(("i", "j", "s", "1", "2", "~i", "- j", "5", "xor(i, 3)")) for _ in range(r.randint(2, 5))
        ]
        text = names[0] + "".join(f" {r.choice(OPERATORS)} {name}" for name in names[1:])
        given = {name: r.randint(0, 6) for name in "ijs"}
        select = ", ".join(f"CAST({value} AS BIGINT) AS {name}" for name, value in given.items())
        wide = "".join(f"CAST({c} AS BIGINT)" if c.isdigit() else c for c in text)
        try:
            ((expected,),) = duck.execute(f"SELECT TRY({wide}) FROM (SELECT {select})").fetchall()
        except duckdb.Error:
            expected = duckdb.Error
        try:
            expr = resolved(text, dict.fromkeys("ijs", Type.BIGINT))
        except SqlErrors:
            continue
        assert expected is not duckdb.Error, text
        columns = {("r", name): Vector.from_list([value], Type.BIGINT) for name, value in given.items()}
        assert evaluate(expr, columns, 1).to_list() == [expected], (text, given, to_sql(expr))
        # The text for people has the same meaning.
        again = resolved(to_sql(expr, qualify=False), dict.fromkeys("ijs", Type.BIGINT))
        assert evaluate(again, columns, 1).to_list() == [expected], (text, to_sql(expr))
        compared += 1
    assert compared > 20


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("x & 4", "& can't be applied to DOUBLE and INT"),
        ("t | u", "| can't be applied to VARCHAR and VARCHAR"),
        ("i > 3 & j < 5", "comparisons can't be chained"),
        ("i < < 2", "unexpected '<'"),
        ("i > > 2", "unexpected '>'"),
        ("i + ~j", "unexpected '~'"),
        ("i &", "unexpected 'AS'"),
        ("bit_and(i)", "bit_and takes 2 arguments, not 1"),
    ],
)
def test_what_has_no_bits_is_named(text: str, what: str) -> None:
    types = {"i": Type.INT, "j": Type.INT, "x": Type.DOUBLE, "t": Type.VARCHAR, "u": Type.VARCHAR}
    with pytest.raises(SqlErrors) as caught:
        resolved(text, types)
    assert [error.what for error in caught.value.errors] == [what]
    assert all(error.hint for error in caught.value.errors)
