"""Beyond 2^53 too, a BIGINT and a DOUBLE are equal by value: as keys, in conditions and in the reference."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import orjson
import pytest
from click.testing import CliRunner

from tamis.cli import main
from tamis.expressions.duckdb_sql import to_duckdb
from tamis.expressions.evaluate import evaluate
from tamis.expressions.nodes import Call, Column, Expr, Literal, Type
from tamis.expressions.signatures import call
from tamis.expressions.vectors import Vector
from tamis.messaging.records import canonical_key
from tamis.operators.time_join.key_codes import KeyCodes

EDGE = 2**53
WHOLE = [0, 1, EDGE - 1, EDGE, EDGE + 1, EDGE + 2, 2**62 + 1, 2**63 - 1, -EDGE - 1, -(2**63), None]
REAL = [0.0, 1.0, 1.5, float(EDGE), float(EDGE + 2), 2.0**62, 2.0**63, -(2.0**63), 1e300, -float(EDGE), None]
N, X = Column("", "n", Type.BIGINT), Column("", "x", Type.DOUBLE)
PAIRS = [(n, x) for n in WHOLE for x in REAL]


@pytest.mark.parametrize("op", ["=", "!="])
@pytest.mark.parametrize(
    "sides", [(N, X), (X, N), (call("neg", call("neg", N)), X), (N, Call("abs", (X,), Type.DOUBLE))]
)
def test_equality_is_by_value_in_evaluation_and_in_duckdb(op: str, sides: tuple[Expr, Expr]) -> None:
    expr = call(op, *sides)
    taken = abs if isinstance(sides[1], Call) else float
    expected = [
        None
        if n is None or x is None or (sides[0] not in (N, X) and n == -(2**63))
        else (n == taken(x)) is (op == "=")
        for n, x in PAIRS
    ]
    columns = {
        ("", "n"): Vector.from_list([n for n, _ in PAIRS], Type.BIGINT),
        ("", "x"): Vector.from_list([x for _, x in PAIRS], Type.DOUBLE),
    }
    assert evaluate(expr, columns, len(PAIRS)).to_list() == expected
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (row INTEGER, n BIGINT, x DOUBLE)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", [(i, *pair) for i, pair in enumerate(PAIRS)])
        found = connection.execute(f"SELECT {to_duckdb(expr)} FROM t ORDER BY row").fetchall()
    assert [value for (value,) in found] == expected


def test_a_large_literal_is_compared_by_value() -> None:
    columns = {("", "x"): Vector.from_list([float(EDGE), float(EDGE + 2)], Type.DOUBLE)}
    for value, expected in ((EDGE + 1, [False, False]), (EDGE + 2, [False, True])):
        expr = call("=", X, Literal(value, Type.BIGINT))
        assert evaluate(expr, columns, 2).to_list() == expected


def test_keys_are_equal_by_value_in_messages_and_joins() -> None:
    for n, x in PAIRS:
        if n is not None and x is not None:
            assert (canonical_key((n,)) == canonical_key((x,))) is (n == x)
            codes = KeyCodes()
            left = codes.encode([Vector.from_list([n], Type.BIGINT)], 1)
            right = codes.encode([Vector.from_list([x], Type.DOUBLE)], 1)
            assert bool(np.array_equal(left, right)) is (n == x)


SQL = """
CREATE STREAM a (k BIGINT KEY, m BIGINT, ts TIMESTAMP, v DOUBLE, WATERMARK FOR ts AS ts);
CREATE STREAM b (k DOUBLE KEY, m DOUBLE, ts TIMESTAMP, v DOUBLE, WATERMARK FOR ts AS ts);
CREATE ALERT by_key AS SELECT a.k FROM a JOIN b ON a.k = b.k AND ABS(a.ts - b.ts) <= INTERVAL '5' SECOND
  WHERE a.v > b.v;
CREATE ALERT by_more AS SELECT a.k FROM a JOIN b
  ON a.k = b.k AND a.m = b.m AND ABS(a.ts - b.ts) <= INTERVAL '5' SECOND WHERE a.v > b.v;
"""


def test_verify_finds_the_same_alarms_as_the_plain_join(tmp_path: Path) -> None:
    choose = random.Random(3)
    (tmp_path / "q.sql").write_text(SQL)
    whole = [n for n in WHOLE if n is not None]
    real = [repr(x) for x in REAL if x is not None]
    arguments = ["verify", str(tmp_path / "q.sql"), "--json"]
    for stream, keys in (("a", whole), ("b", real)):
        lines = [
            f"{choose.choice(keys)},{choose.choice(keys)},{second}000000,{choose.random()}"
            for second in range(300)
        ]
        (tmp_path / f"{stream}.csv").write_text("\n".join(["k,m,ts,v", *lines]) + "\n")
        arguments += ["--input", f"{stream}={tmp_path / stream}.csv"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    by_name: dict[str, Any] = {verdict["query"]: verdict for verdict in orjson.loads(result.stdout)}
    assert by_name["by_key"]["reference_alarms"] > by_name["by_more"]["reference_alarms"] > 3
