"""The same SQL in Tamis and in DuckDB: every function gives the same values, to the bit.

DuckDB has columns of its own types here, and the text is not made by Tamis. DuckDB raises no error for these
values.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from tests.oracle.expressions.expression_trees import TEXTS
from tests.oracle.expressions.test_expressions import bits
from tests.oracle.random_cases import SEED, cases

from tamis.expressions.evaluate import evaluate
from tamis.expressions.nodes import Expr, Type
from tamis.expressions.vectors import Vector
from tamis.query.model import AlertDef, Catalog
from tamis.query.parse import parse

TYPES = {
    "x": Type.DOUBLE,
    "y": Type.DOUBLE,
    "n": Type.INT,
    "m": Type.BIGINT,
    "ok": Type.BOOLEAN,
    "s": Type.VARCHAR,
    "u": Type.VARCHAR,
    "t": Type.TIMESTAMP,
    "v": Type.TIMESTAMP,
}
ARROW = {
    Type.DOUBLE: pa.float64(),
    Type.INT: pa.int32(),
    Type.BIGINT: pa.int64(),
    Type.BOOLEAN: pa.bool_(),
    Type.VARCHAR: pa.string(),
    Type.TIMESTAMP: pa.timestamp("us"),
}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIELDS = "year quarter month week day doy dow isodow isoyear hour minute second millisecond microsecond epoch"
UNITS = "year quarter month week day hour minute second millisecond microsecond"
EXPRESSIONS = (
    *(
        "floor(x)",
        "ceil(x)",
        "ceiling(x)",
        "round(x)",
        "trunc(x)",
        "sign(x)",
        "sign(n)",
        "round(n)",
        "floor(n)",
    ),
    *(f"round(x, {digits})" for digits in (-3, -1, 0, 1, 2, 5)),
    *("n & 3", "m | n", "xor(m, n)", "~n", "~m + 1", "m >> 2", "n & m | 8", "m & 7 = n", "m >> n", "-n & 6"),
    *("x % y", "mod(n, 7)", "m % 5", "mod(x, n * 2 + 1)", "-n % 3", "n % -3"),
    *(
        "coalesce(x, y)",
        "coalesce(s, u, 'none')",
        "coalesce(ok, x > 0, FALSE)",
        "ifnull(n, 0)",
        "nullif(n, 3)",
    ),
    *("nullif(s, u)", "nullif(x, y)", "coalesce(n, x)"),
    *("CAST(x AS BIGINT)", "CAST(x AS INT)", "x::INT + n", "CAST(n AS DOUBLE)", "CAST(ok AS INT)"),
    *("CAST(n AS BOOLEAN)", "CAST(x AS BOOLEAN)", "TRY_CAST(m AS INT)", "CAST(ok AS DOUBLE)"),
    *("CAST(x AS VARCHAR)", "CAST(n AS VARCHAR)", "CAST(ok AS VARCHAR)", "CAST(t AS VARCHAR)", "m::TEXT"),
    *(
        "n IS DISTINCT FROM m",
        "s IS NOT DISTINCT FROM u",
        "ok IS DISTINCT FROM TRUE",
        "x IS DISTINCT FROM NULL",
    ),
    *(
        "ok IS TRUE",
        "ok IS NOT TRUE",
        "(x > y) IS FALSE",
        "(n > 3) IS NOT FALSE",
        "s IS NOT DISTINCT FROM 'a'",
    ),
    *("lower(s)", "upper(s)", "length(s)", "trim(s)", "ltrim(s)", "rtrim(s)", "s || u", "s || n", "ok || s"),
    *("concat(s, u)", "concat(s, n, x, ok)", "substring(s, 2)", "substr(s, n, 2)", "substring(s, -2, n)"),
    *(
        "substring(s FROM 2 FOR 3)",
        "SUBSTRING(s FROM n)",
        "substring(s FOR 2)",
        "trim(s, 'a ')",
        "ltrim(s, u)",
    ),
    *("TRIM(BOTH 'a' FROM s)", "trim(LEADING FROM s)", "trim(TRAILING u FROM s)", "trim('bA' FROM s)"),
    *(
        "s LIKE 'a%'",
        "s NOT LIKE '%b'",
        "s LIKE '_'",
        "s ILIKE 'A_%'",
        "s LIKE '%!%%' ESCAPE '!'",
        "s LIKE 'ab'",
    ),
    *("s ILIKE 'straßE'", "s ILIKE '%σ'", "u NOT ILIKE 'İ%'", "lower(s) || upper(u) LIKE '%a%B%'"),
    *(f"extract({field} FROM t)" for field in FIELDS.split()),
    *("date_part('hours', t)", "date_part('dayofweek', v)", "extract(epoch FROM t - date_trunc('day', t))"),
    *(f"date_trunc('{unit}', t)" for unit in UNITS.split()),
    *("date_trunc('day', t) = date_trunc('day', v)", "t - INTERVAL '1' DAY > v", "t + INTERVAL '90' MINUTE"),
    *("t - v > INTERVAL '1' HOUR * 2", "t BETWEEN v AND v + n * INTERVAL '1' DAY"),
    *(
        "CASE n WHEN 1 THEN s WHEN 2 THEN u ELSE 'other' END",
        "CASE WHEN s LIKE 'a%' THEN length(s) ELSE n END",
    ),
)


def value(r: random.Random, type_: Type) -> Any:
    if r.random() < 0.12:
        return None
    match type_:
        case Type.DOUBLE:
            return r.choice(
                (r.uniform(-50, 50), round(r.uniform(-9, 9), 1), r.randint(-9, 9) / 2, -0.0, 1e-7)
            )
        case Type.INT:
            return r.randint(-4, 5)
        case Type.BIGINT:
            return r.choice((r.randint(-9, 9), r.randint(-(2**62), 2**62), 2**31, -(2**31) - 1))
        case Type.BOOLEAN:
            return r.random() < 0.5
        case Type.VARCHAR:
            return r.choice(TEXTS)
    turn = datetime(r.randint(1, 9999), 1, 1, tzinfo=UTC)
    near = timedelta(microseconds=r.randint(-2, 2), days=r.randint(-8, 8))
    anywhere = timedelta(seconds=r.randint(0, 86_400 * 364), microseconds=r.randint(0, 999_999))
    moment = turn + (near if turn.year > 1 and r.random() < 0.5 else anywhere)
    return (moment - EPOCH) // timedelta(microseconds=1)


def resolved(text: str, types: Mapping[str, Type] = TYPES) -> Expr:
    """The expression of Tamis for a text."""
    columns = ", ".join(f"{name} {type_}" for name, type_ in types.items())
    (stream, alert) = parse(
        f"CREATE STREAM r ({columns}); CREATE ALERT q AS SELECT {text} AS found FROM r", Catalog()
    )
    assert isinstance(alert, AlertDef), stream
    return alert.query.select[0].expr


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


def in_duckdb(connection: duckdb.DuckDBPyConnection, text: str, type_: Type) -> list[Any]:
    shown = {Type.TIMESTAMP: f"epoch_us({text})", Type.INT: f"CAST({text} AS BIGINT)"}.get(type_, text)
    found = connection.execute(f"SELECT {shown} FROM r ORDER BY row").fetchall()
    # What isn't finite is NULL in Tamis.
    return [None if isinstance(value, float) and not math.isfinite(value) else value for (value,) in found]


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_the_same_values(text: str, duck: duckdb.DuckDBPyConnection) -> None:
    r = random.Random(f"{SEED} {text}")
    rows = cases(1 / 120)
    given = {name: [value(r, type_) for _ in range(rows)] for name, type_ in TYPES.items()}
    arrays = {name: pa.array(given[name], ARROW[type_]) for name, type_ in TYPES.items()}
    duck.register("r", pa.table({"row": range(rows), **arrays}))
    expr = resolved(text)
    columns = {("r", name): Vector.from_list(given[name], type_) for name, type_ in TYPES.items()}
    found = evaluate(expr, columns, rows).to_list()
    expected = in_duckdb(duck, re.sub(r"\bCAST\(", "TRY_CAST(", text), expr.type)
    assert bits(found) == bits(expected), text
    assert len(set(map(repr, found))) > 1, "all values are the same"


def compared(
    connection: duckdb.DuckDBPyConnection, texts: Sequence[str], given: list[Any], type_: Type
) -> None:
    """Asserts that several expressions of the column `s` or `t` have the same values."""
    name = "s" if type_ is Type.VARCHAR else "t" if type_ is Type.TIMESTAMP else "x"
    table = {"row": range(len(given)), name: pa.array(given, ARROW[type_])}
    connection.register("r", pa.table(table))
    columns = {("r", name): Vector.from_list(given, type_)}
    for text in texts:
        expr = resolved(text)
        found = evaluate(expr, columns, len(given)).to_list()
        assert bits(found) == bits(in_duckdb(connection, text, expr.type)), text


@pytest.mark.parametrize("step", [61, pytest.param(1, marks=pytest.mark.soundness)])
def test_every_character(duck: duckdb.DuckDBPyConnection, step: int) -> None:
    """Case, blanks and length of each code point. A surrogate is no character.

    No character above U+20000 has two cases, so that every `step`th is enough there.
    """
    letters = [
        chr(code) for code in (*range(1, 0xD800), *range(0xE000, 0x20000), *range(0x20000, 0x110000, step))
    ]
    padded = [f"{letter}x{letter}" for letter in letters]
    compared(duck, ("lower(s)", "upper(s)", "length(s)"), letters, Type.VARCHAR)
    compared(duck, ("trim(s)", "ltrim(s)", "rtrim(s)"), padded, Type.VARCHAR)


def test_texts_to_whole_numbers(duck: duckdb.DuckDBPyConnection) -> None:
    """Halves, exponents, and numbers next to the ends of 32 and 64 bits."""
    r = random.Random(f"{SEED} whole numbers")
    given: list[str | None] = [
        "",
        "x",
        "1e",
        ".",
        "+.5",
        "-.5",
        "5.",
        "1.e2",
        "1e400",
        "1e-400",
        "00012",
        None,
    ]
    given += ["1e-32767", "1e-32769", "0e32768", "0e40000", f"1e-{'9' * 20}", "1" * 5_000, "0e400"]
    for _ in range(5_000):
        whole = r.choice(
            (r.randint(-30, 30), r.choice((2**31, -(2**31), 2**63, -(2**63))) + r.randint(-2, 2))
        )
        digits = "".join(r.choice("0459") for _ in range(r.randint(0, 4)))
        point = r.choice(("", ".", f".{digits}", f".{digits}"))
        exponent = r.choice(("", "", "", f"e{r.randint(-3, 4)}", f"E+{r.randint(0, 20)}"))
        given.append(f"{r.choice(('', '', '+')) if whole >= 0 else ''}{whole}{point}{exponent}")
    duck.register("r", pa.table({"row": range(len(given)), "s": pa.array(given, pa.string())}))
    columns = {("r", "s"): Vector.from_list(given, Type.VARCHAR)}
    for text in ("CAST(s AS BIGINT)", "CAST(s AS INT)"):
        expr = resolved(text)
        found = evaluate(expr, columns, len(given)).to_list()
        expected = in_duckdb(duck, text.replace("CAST", "TRY_CAST"), expr.type)
        wrong = [(s, x, y) for s, x, y in zip(given, found, expected, strict=True) if x != y]
        assert not wrong, wrong[:5]


def test_days_around_the_ends_of_years(duck: duckdb.DuckDBPyConnection) -> None:
    """Fields and units of the days around each new year, where weeks, quarters and years turn."""
    given = []
    for year in (*range(2, 40), *range(1580, 1605), *range(1895, 2105), *range(9980, 10_000)):
        turn = (datetime(year, 1, 1, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
        given += [turn + day * 86_400_000_000 + extra for day in range(-8, 9) for extra in (-1, 0, 1)]
    texts = [f"extract({field} FROM t)" for field in FIELDS.split()]
    texts += [f"date_trunc('{unit}', t)" for unit in UNITS.split()]
    compared(duck, [*texts, "CAST(t AS VARCHAR)"], given, Type.TIMESTAMP)


def test_texts_of_numbers_and_back(duck: duckdb.DuckDBPyConnection) -> None:
    r = random.Random(f"{SEED} texts of numbers")
    given = [
        r.choice((r.uniform(-1, 1), r.randint(-9, 9))) * 10.0 ** r.randint(-25, 25) for _ in range(5_000)
    ]
    compared(duck, ("CAST(x AS VARCHAR)",), given, Type.DOUBLE)
    texts = [repr(x) for x in given] + ["12", "-7", "+3.25", ".5", "5.", "1E5", "x", "", "12a", "1e"]
    duck.register("r", pa.table({"row": range(len(texts)), "s": texts}))
    found = evaluate(
        resolved("CAST(s AS DOUBLE)"), {("r", "s"): Vector.from_list(texts, Type.VARCHAR)}, len(texts)
    )
    expected = duck.execute("SELECT TRY_CAST(s AS DOUBLE) FROM r ORDER BY row").fetchall()
    assert bits(found.to_list()) == bits([row[0] for row in expected])


def test_times_from_seconds(duck: duckdb.DuckDBPyConnection) -> None:
    r = random.Random(f"{SEED} seconds")
    given = [
        r.choice((r.uniform(-1e9, 2e9), r.randint(-9, 9) / 2e6, 1.5e9 + r.randint(0, 9) / 1e6))
        for _ in range(3_000)
    ]
    given += [-62_135_596_800.0, 253_402_300_799.5]
    compared(duck, ("to_timestamp(x)",), given, Type.DOUBLE)
    outside = evaluate(
        resolved("to_timestamp(x)"), {("r", "x"): Vector.from_list([-1e11, 3e11, 1e300], Type.DOUBLE)}, 3
    )
    assert outside.to_list() == [None] * 3


def test_patterns(duck: duckdb.DuckDBPyConnection) -> None:
    r = random.Random(f"{SEED} patterns")
    letters = "ab%_é!\n"
    given = ["".join(r.choices(letters, k=r.randint(0, 9))) for _ in range(300)]
    texts = []
    for _ in range(cases(1 / 240)):
        pattern = "".join(r.choices("ab%%__é!\n", k=r.randint(0, 6)))
        escape = " ESCAPE '!'" if r.random() < 0.5 and not pattern.replace("!!", "").endswith("!") else ""
        texts.append(f"s {r.choice(('LIKE', 'ILIKE', 'NOT LIKE'))} '{pattern}'{escape}")
    texts += [
        f"s LIKE '{pattern}'" for pattern in ("a%", "%a", "%a%", "%\n%", "é%", "%.%", "a.%", "%_", "_%", "%%")
    ]
    compared(duck, texts, given, Type.VARCHAR)
