"""Three evaluators of the same expressions: over columns, in DuckDB, and row by row in plain Python.

They must agree in every bit: the first decides alarms, the second is the reference of `tamis verify`.
"""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeVar

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle.expressions.expression_trees import (
    COLUMNS,
    DOUBLES,
    INTEGERS,
    REAL,
    Row,
    Seeded,
    Value,
    meaning,
    rows,
    tree,
)
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.expressions.duckdb_sql import quoted, to_duckdb
from tamis.expressions.evaluate import evaluate, holds
from tamis.expressions.functions.entry import FUNCTIONS
from tamis.expressions.nodes import (
    COMPARISONS,
    OPAQUE,
    Call,
    Column,
    Expr,
    Literal,
    Type,
)
from tamis.expressions.vectors import Columns, Vector
from tamis.query.syntax.limits import DEEPEST

T = TypeVar("T")
ROWS = 50
BATCH = 40  # expressions in one query of DuckDB, over the same rows
ARROW = {Type.DOUBLE: pa.float64(), Type.BOOLEAN: pa.bool_(), Type.VARCHAR: pa.string()}
LONG = also_long(25)


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        yield connection


def in_columns(table: Sequence[Row]) -> Columns:
    return {(c.alias, c.name): Vector.from_list([r[c.alias, c.name] for r in table], c.type) for c in COLUMNS}


def in_duckdb(
    connection: duckdb.DuckDBPyConnection, exprs: Sequence[Expr], table: Sequence[Row]
) -> list[list[Value]]:
    """Per expression its value in each row."""
    for alias in ("a", "b"):
        columns = {
            c.name: pa.array([r[alias, c.name] for r in table], ARROW.get(c.type, pa.int64()))
            for c in COLUMNS
            if c.alias == alias
        }
        connection.register(alias + "_rows", pa.table({"row": np.arange(len(table)), **columns}))
    found = connection.execute(
        f"SELECT {', '.join(to_duckdb(e) for e in exprs)}"
        " FROM a_rows AS a JOIN b_rows AS b ON a.row = b.row ORDER BY a.row"
    ).fetchall()
    return [list(values) for values in zip(*found, strict=True)]


def bits(values: Sequence[Value]) -> list[object]:
    """Values with doubles as bytes, so that 0.0 and -0.0, or 1 and True, are not the same."""
    return [(type(v).__name__, struct.pack("<d", v) if isinstance(v, float) else v) for v in values]


def agree(
    connection: duckdb.DuckDBPyConnection, exprs: Sequence[Expr], table: Sequence[Row], where: object
) -> list[list[Value]]:
    """Asserts that all three evaluators agree; the values."""
    columns = in_columns(table)
    expected = [[meaning(expr, row) for row in table] for expr in exprs]
    for expr, want, theirs in zip(exprs, expected, in_duckdb(connection, exprs, table), strict=True):
        ours = evaluate(expr, columns, len(table))
        assert len(ours) == len(table)
        assert bits(ours.to_list()) == bits(want), ("columns", where, expr)
        assert bits(theirs) == bits(want), ("DuckDB", where, expr, to_duckdb(expr))
        if expr.type is Type.DOUBLE:
            assert np.isfinite(ours.data[~ours.null if ours.null is not None else slice(None)]).all()
        if expr.type is Type.BOOLEAN:
            assert holds(expr, columns, len(table)).tolist() == [v is True for v in want]
    return expected


@pytest.mark.parametrize("times", LONG)
def test_random_expressions(times: int, duck: duckdb.DuckDBPyConnection) -> None:
    count = max(1, cases(0.1) * times // BATCH)
    known = Counter[str]()
    for batch in range(count):
        choose = Seeded(f"expressions {SEED} {batch}")
        exprs = [
            tree(choose, choose.one_of(tuple(Type)), choose.one_of((2, 3, 3, 4, 4, 5, 6)))
            for _ in range(BATCH)
        ]
        results = agree(duck, exprs, rows(choose, ROWS), (SEED, batch))
        for expr, values in zip(exprs, results, strict=True):
            if isinstance(expr, Call) and any(v is not None for v in values):
                known[expr.op] += 1
    # The search means something only if every operator is reached with values.
    if count >= 50:
        assert set(known) == set(FUNCTIONS) - {OPAQUE}, (SEED, set(FUNCTIONS) - {OPAQUE} - set(known))


class Drawn:
    """Choices of hypothesis."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw

    def one_of(self, items: Sequence[T]) -> T:
        return self.draw(st.sampled_from(items))

    def double(self) -> float:
        return self.draw(st.sampled_from(DOUBLES) | st.floats(allow_nan=False, allow_infinity=False))

    def integer(self) -> int:
        return self.draw(st.sampled_from(INTEGERS) | st.integers(-(2**63), 2**63 - 1))


@st.composite
def situations(draw: st.DrawFn) -> tuple[Expr, list[Row]]:
    choose = Drawn(draw)
    return tree(choose, choose.one_of(tuple(Type)), 4), rows(choose, draw(st.integers(1, 2)))


@settings(max_examples=cases(0.0025), deadline=None)
@given(situation=situations())
def test_generated_expressions(situation: tuple[Expr, list[Row]]) -> None:
    with duckdb.connect(config={"threads": 1}) as connection:
        agree(connection, [situation[0]], situation[1], "generated")


@pytest.mark.parametrize("op", [*REAL, "power"])
def test_functions_are_those_of_the_c_library(op: str, duck: duckdb.DuckDBPyConnection) -> None:
    choose = Seeded(f"libm {op} {SEED}")
    x, y = (c for c in COLUMNS if c.alias == "a" and c.name in ("d", "x"))
    expr = Call(op, (x, y) if op == "power" else (x,), Type.DOUBLE)
    blank = rows(choose, 1)[0]
    table = [
        {**blank, ("a", "d"): choose.double(), ("a", "x"): choose.random.uniform(-5, 5)}
        for _ in range(20_000)
    ]
    agree(duck, [expr], table, (SEED, op))


def test_every_operator_over_what_is_not_finite(duck: duckdb.DuckDBPyConnection) -> None:
    """Every operator over every other, where the inner one overflows or leaves its domain."""
    x, y, z = (Column(alias, name, Type.DOUBLE) for alias, name in (("a", "d"), ("a", "x"), ("b", "d")))
    unary = ("neg", "abs", *REAL, "floor", "ceil", "trunc", "round", "is_null")
    binary = ("+", "-", "*", "/", "power", "mod")
    choices = ("least", "greatest", "coalesce", "<", "<=", "=")
    inner = [Call(op, (x,), Type.DOUBLE) for op in unary[:-1]] + [
        Call(op, (x, y), Type.DOUBLE) for op in binary
    ]
    outer: list[Expr] = []
    for part in inner:
        outer += [Call(op, (part,), Type.BOOLEAN if op == "is_null" else Type.DOUBLE) for op in unary]
        for op in (*binary, *choices):
            type_ = Type.BOOLEAN if op in COMPARISONS else Type.DOUBLE
            outer += [Call(op, (part, z), type_), Call(op, (z, part), type_)]
    extremes = (0.0, -1.0, 2.0, 1e-300, 1e300, -1e300)
    blank = rows(Seeded("finite"), 1)[0]
    table = [
        {**blank, ("a", "d"): a, ("a", "x"): b, ("b", "d"): c}
        for a in extremes
        for b in extremes
        for c in (0.0, 1.0, -2.5)
    ]
    agree(duck, outer, table, "not finite")


@pytest.mark.parametrize("op", ["+", "-", "*", "neg", "abs", "mod"])
def test_integers_at_the_ends_of_their_range(op: str, duck: duckdb.DuckDBPyConnection) -> None:
    i, j = Column("a", "i", Type.BIGINT), Column("b", "i", Type.BIGINT)
    expr = Call(op, (i,) if op in ("neg", "abs") else (i, j), Type.BIGINT)
    blank = rows(Seeded("ends"), 1)[0]
    near = sorted({n + d for n in INTEGERS for d in (-1, 0, 1) if -(2**63) <= n + d < 2**63})
    agree(duck, [expr], [{**blank, ("a", "i"): m, ("b", "i"): n} for m in near for n in near], op)


@pytest.mark.parametrize("digits", [None, -22, -5, -2, -1, 0, 1, 2, 3, 15, 22])
def test_rounding_at_halves_and_ends(digits: int | None, duck: duckdb.DuckDBPyConnection) -> None:
    x = Column("a", "d", Type.DOUBLE)
    extra = () if digits is None else (Literal(digits, Type.INT),)
    exprs: list[Expr] = [Call("round", (x, *extra), Type.DOUBLE)]
    exprs += [Call(op, (x,), Type.DOUBLE) for op in ("floor", "ceil", "trunc")]
    exprs += [
        Call("to_int", (x,), Type.INT),
        Call("to_bigint", (x,), Type.BIGINT),
        Call("sign", (x,), Type.INT),
    ]
    scale = 10.0 ** -(digits or 0)
    halves = [(n + 0.5) * scale for n in (*range(-12, 12), 2**31 - 1, -(2**31) - 1, 2**51, 2**52)]
    ends = [*DOUBLES, 2.0**31, -(2.0**31), 1e285, 1e286, 1.7e286, 1.79e308, 1.115, 0.285, 4.35]
    around = [math.nextafter(v, to) for v in halves + ends for to in (-math.inf, math.inf)]
    blank = rows(Seeded("halves"), 1)[0]
    values = [v for v in (*halves, *ends, *around) if math.isfinite(v)]
    agree(duck, exprs, [{**blank, ("a", "d"): v} for v in values], digits)


@pytest.mark.parametrize(
    ("op", "type_"),
    [(op, Type.DOUBLE) for op in ("/", "power", "exp", "+", "least", "case")]
    + [(op, Type.BIGINT) for op in ("+", "neg", "greatest", "case")]
    + [(op, Type.BOOLEAN) for op in ("and", "not", "=", "case")],
)
def test_the_deepest_expression_stays_within_limits(
    op: str, type_: Type, duck: duckdb.DuckDBPyConnection
) -> None:
    """The text for DuckDB grows with the tree, not with its depth's power, and DuckDB takes it."""
    leaf = next(c for c in COLUMNS if c.type is type_)
    flag = next(c for c in COLUMNS if c.type is Type.BOOLEAN)
    expr: Expr = leaf
    for _ in range(DEEPEST):
        args = {"case": (flag, leaf, expr), "exp": (expr,), "neg": (expr,), "not": (expr,)}
        expr = Call(op, args.get(op, (leaf, expr)), type_)
    assert len(to_duckdb(expr)) < 200 * DEEPEST
    agree(duck, [expr], rows(Seeded("deep"), ROWS), (op, type_))


def test_conditions_filter_and_join_as_they_evaluate(duck: duckdb.DuckDBPyConnection) -> None:
    """DuckDB reorders and pushes conditions of WHERE and ON; none may then raise or change."""
    for case in range(cases(0.005)):
        choose = Seeded(f"where {SEED} {case}")
        table = rows(choose, 12)
        parts = [tree(choose, Type.BOOLEAN, 4) for _ in range(choose.one_of((1, 2, 3)))]
        in_duckdb(duck, [Literal(True, Type.BOOLEAN)], table)
        found = duck.execute(
            "SELECT a.row, b.row FROM a_rows AS a JOIN b_rows AS b"
            f" ON {to_duckdb(parts[0])} WHERE {' AND '.join(map(to_duckdb, parts[1:])) or 'TRUE'}"
        ).fetchall()
        pairs = [(m, n) for m in range(12) for n in range(12)]
        joined: list[Row] = [
            {(c.alias, c.name): table[m if c.alias == "a" else n][c.alias, c.name] for c in COLUMNS}
            for m, n in pairs
        ]
        both = Call("and", tuple(parts), Type.BOOLEAN)
        want = [pair for pair, row in zip(pairs, joined, strict=True) if meaning(both, row) is True]
        mask = holds(both, in_columns(joined), len(joined))
        assert [pair for pair, true in zip(pairs, mask, strict=True) if true] == want, (SEED, case, both)
        assert sorted(found) == want, (SEED, case, both)


def test_no_rows_and_one_row() -> None:
    for count in (0, 1):
        choose = Seeded(f"few {SEED}")
        table = rows(choose, count)
        for _ in range(200):
            expr = tree(choose, choose.one_of(tuple(Type)), 4)
            got = evaluate(expr, in_columns(table), count)
            assert bits(got.to_list()) == bits([meaning(expr, row) for row in table]), (SEED, expr)


def test_names_and_texts_are_quoted(duck: duckdb.DuckDBPyConnection) -> None:
    name = 'x"; DROP TABLE t; --'
    duck.execute(f"CREATE OR REPLACE TABLE t AS SELECT 7 AS {quoted(name)}")
    text = Literal("'; DROP TABLE t; --", Type.VARCHAR)
    found = duck.execute(
        f"SELECT {to_duckdb(Column('t', name, Type.BIGINT))}, {to_duckdb(text)} FROM t"
    ).fetchall()
    assert found == [(7, "'; DROP TABLE t; --")]
