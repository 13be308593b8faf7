"""Types and values of expressions with NULLs, with and without a type of their own: they are DuckDB's."""

from __future__ import annotations

import random
from collections import Counter

import duckdb
import pytest
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.expressions.evaluate import evaluate
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.query.parse import catalog_of

STREAM = """
CREATE STREAM s (k VARCHAR KEY, ts TIMESTAMP, i INT, l BIGINT, d DOUBLE, b BOOLEAN, WATERMARK FOR ts AS ts);
"""
COLUMNS = {
    Type.INT: "i",
    Type.BIGINT: "l",
    Type.DOUBLE: "d",
    Type.BOOLEAN: "b",
    Type.VARCHAR: "k",
    Type.TIMESTAMP: "ts",
}
ROW = {"k": "a", "ts": 1_700_000_000_000_000, "i": 3, "l": 5, "d": 2.5, "b": True}
# DuckDB has more integers, and sums of them are wider.
NAMES: dict[str, str] = dict.fromkeys(("TINYINT", "INT", "INTEGER", "BIGINT", "HUGEINT"), "whole")
NUMBERS = (Type.INT, Type.BIGINT, Type.DOUBLE)


def expression(r: random.Random, kind: Type, depth: int) -> str:
    """A random expression of a type, with a NULL in many places."""
    if depth == 0 or r.random() < 0.15:
        return COLUMNS[kind] if r.random() < 0.5 else f"CAST(NULL AS {kind})"

    def of(other: Type) -> str:
        return expression(r, other, depth - 1)

    def null_or(other: Type) -> str:
        return "NULL" if r.random() < 0.3 else of(other)

    same, also = of(kind), null_or(kind)
    first, second = r.sample((same, also), 2)
    common = [
        f"coalesce({first}, {second})",
        f"nullif({same}, {also})",
        f"CASE WHEN {of(Type.BOOLEAN)} THEN {first} ELSE {second} END",
        f"CASE WHEN {of(Type.BOOLEAN)} THEN {same} END",
        f"CASE i WHEN {null_or(Type.INT)} THEN {first} WHEN 4 THEN {second} ELSE {of(kind)} END",
        f"CAST({same} AS {kind})",
        f"CAST(NULL AS {kind})",
    ]
    if kind in NUMBERS:
        common += [f"({first} {r.choice('+-*')} {second})", f"abs({same})", f"(-{same})"]
        common += [f"least({first}, {second})", f"greatest({first}, {second})"]
    if kind is Type.DOUBLE:
        wider, narrow = of(Type.DOUBLE), of(r.choice(NUMBERS))
        first, second = r.sample((wider, narrow), 2)
        common += [f"({first} + {second})", f"coalesce({first}, {second})", f"least({first}, {second})"]
        common += [f"(i / {null_or(Type.INT)})", f"floor({same})", f"sqrt(abs({same}))", f"power({same}, 2)"]
        common.append(f"CASE WHEN {of(Type.BOOLEAN)} THEN {first} ELSE {second} END")
    elif kind is Type.BOOLEAN:
        other = r.choice((*NUMBERS, Type.VARCHAR, Type.TIMESTAMP))
        common += [f"({of(other)} {r.choice(('=', '<>', '<', '>='))} {null_or(other)})", f"(NOT {same})"]
        common += [f"({first} {r.choice(('AND', 'OR'))} {second})", f"({null_or(other)} IS NULL)"]
        common += [f"({of(other)} BETWEEN {null_or(other)} AND {null_or(other)})"]
        common += [f"({of(other)} IN ({null_or(other)}, {of(other)}))"]
        common += [f"({of(other)} IS DISTINCT FROM {null_or(other)})"]
    elif kind is Type.VARCHAR:
        common += [f"({same} || {of(Type.VARCHAR)})", f"lower({same})", f"CAST({of(Type.DOUBLE)} AS VARCHAR)"]
    elif kind is Type.TIMESTAMP:
        common += [f"({same} + INTERVAL '5' SECOND)", f"({same} - NULL)", f"(NULL + {same})"]
        common.append(f"least({first}, {second})")
    return r.choice(common)


@pytest.mark.parametrize("times", also_long(100))
def test_types_and_values_are_those_of_duckdb(times: int) -> None:
    r = random.Random(f"{SEED} types of NULL")
    seen: Counter[tuple[Type, bool]] = Counter()
    columns = {name: Vector.from_list([ROW[name]], kind) for kind, name in COLUMNS.items()}
    with duckdb.connect() as duck:
        kinds = ", ".join(
            f"{name} {'INTEGER' if kind is Type.INT else kind}" for kind, name in COLUMNS.items()
        )
        duck.execute(f"CREATE TABLE s ({kinds})")
        row = [
            f"make_timestamp({ROW[name]})" if name == "ts" else repr(ROW[name]) for name in COLUMNS.values()
        ]
        duck.execute(f"INSERT INTO s VALUES ({', '.join(row)})")
        for _ in range(cases(0.01) * times):
            kind = r.choice(list(COLUMNS))
            sql = expression(r, kind, 3)
            catalog = catalog_of(f"{STREAM} CREATE ALERT q AS SELECT {sql} AS x FROM s;")
            (output,) = catalog.alerts["q"].query.select
            value_sql = f"epoch_us({sql})" if kind is Type.TIMESTAMP else sql
            ((wanted, value),) = duck.execute(f"SELECT typeof({sql}), {value_sql} FROM s").fetchall()
            assert NAMES.get(output.expr.type.value, output.expr.type.value) == NAMES.get(wanted, wanted), (
                SEED,
                sql,
            )
            given = {("s", name): vector for name, vector in columns.items()}
            (found,) = evaluate(output.expr, given, 1).to_list()
            assert found == value or (isinstance(found, float) and found == pytest.approx(value)), (SEED, sql)
            seen[kind, found is None] += 1
    assert min(seen[kind, null] for kind in COLUMNS for null in (True, False)) > 0, seen
