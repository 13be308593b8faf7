"""Parsing of SQL to canonical boxes, and back to SQL."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest

from tamis.errors import RefusedError, SqlErrors
from tamis.expressions.evaluate import holds
from tamis.expressions.nodes import Type, columns
from tamis.expressions.vectors import Vector
from tamis.predicates.matching import match
from tamis.predicates.parse import parse
from tamis.query.condition import read_condition


@pytest.mark.parametrize(
    ("sql", "canonical"),
    [
        ("a > 1 AND a < 3", "a > 1 AND a < 3"),
        ("a < 5 OR a >= 5", "a IS NOT NULL"),
        ("a < 5 OR a >= 5 OR a IS NULL", "TRUE"),
        ("a = 1 AND a = 2", "FALSE"),
        ("NOT a = NULL", "FALSE"),
        ("NOT (a BETWEEN 1 AND 2)", "a < 1 OR a > 2"),
        ("a IN (1, 2) OR a > 1 AND a < 2", "a >= 1 AND a <= 2"),
        ("a <> 5", "a < 5 OR a > 5"),
        ("5 > a", "a < 5"),
        ("a = -0.0", "a = 0"),
        ("a > 0.1 AND b IS NULL OR a > 0.05 AND b IS NULL", "a > 0.05 AND b IS NULL"),
        ("a <= 2 OR a IS NULL", "a IS NULL OR a <= 2"),
        ("s = 'x' OR s > 'y' AND NOT f", "s = 'x' OR f = FALSE AND s > 'y'"),
        ("f", "f = TRUE"),
        ("f OR NOT f", "f IS NOT NULL"),
        ("s >= ''", "s IS NOT NULL"),
        ("s <= ''", "s = ''"),
        ("a < 5 AND b < 3 OR a >= 5 AND b < 3", "a IS NOT NULL AND b < 3"),
        ("TRUE", "TRUE"),
        ("a > 1 AND (b > 2 OR c > 3)", "a > 1 AND b > 2 OR a > 1 AND c > 3"),
        ("t >= TIMESTAMP '2024-01-01 00:00:00'", "t >= TIMESTAMP '2024-01-01 00:00:00'"),
        ("t > TIMESTAMP '2024-01-01'", "t > TIMESTAMP '2024-01-01 00:00:00'"),
        ("t <= TIMESTAMP '9999-12-31 23:59:59.999999'", "t <= TIMESTAMP '9999-12-31 23:59:59.999999'"),
        ("a = 9007199254740993", "FALSE"),
        ("a <> 9007199254740993", "a IS NOT NULL"),
        ("a <= 9007199254740993", "a < 9007199254740994.0"),
        ("a - b = 9007199254740993", "FALSE"),
        ("a - b = 9007199254740992", "a - b = 9007199254740992.0"),
        ('"Odd name" > 1', '"Odd name" > 1'),
        ("1 = 1 AND a < 5", "a < 5"),
        ("NOT 1 = 1 OR a < 2 * 3", "a < 6"),
        ("a BETWEEN 1 + 1 AND abs(-4)", "a >= 2 AND a <= 4"),
        ("a < b + 2 * 3", "a < b + 6"),
        ("a < 1 / 0 OR NOT (a > sqrt(-1))", "FALSE"),
        ("NULL IS NULL AND 'a' < 'b'", "TRUE"),
    ],
)
def test_canonical_form(sql: str, canonical: str) -> None:
    found = parse(sql)
    assert found.sql() == canonical
    assert parse(canonical, found.types).boxes == found.boxes


@pytest.mark.parametrize(
    ("sql", "canonical"),
    [
        ("n > 1 AND n < 3", "n = 2"),
        ("n > 1.5 AND n < 2.5", "n = 2"),
        ("n = 1.5", "FALSE"),
        ("n < 9223372036854775807", "n < 9223372036854775807"),
        ("n <= 9223372036854775807", "n IS NOT NULL"),
        ("n > 9007199254740992 AND n < 9007199254740994", "n = 9007199254740993"),
        # A BIGINT is compared with a DOUBLE as DOUBLE: 2^53 + 1 is rounded to 2^53.
        ("n <= 9007199254740992.0", "n < 9007199254740994"),
        ("n = 9007199254740992.0", "n = 9007199254740992"),
        ("n != 1.5", "n IS NOT NULL"),
        ("n IN (1, 2, 3)", "n >= 1 AND n < 4"),
    ],
)
def test_integers(sql: str, canonical: str) -> None:
    assert parse(sql, {"n": Type.BIGINT}).sql() == canonical


@pytest.mark.parametrize("op", ["<", "<=", ">", ">=", "=", "<>"])
def test_doubles_and_whole_numbers_beyond_them_compare_as_evaluated(op: str) -> None:
    """The index, which edges and joiner ask, says what expressions say."""
    values = np.array([0.0, 2.0**53, 2.0**53 + 2, 2.0**63])
    for constant in (2**53, 2**53 + 1, 2**53 + 2, 2**63 - 1):
        sql = f"a {op} {constant}"
        wanted = holds(read_condition(sql), {("", "a"): Vector(values)}, len(values))
        assert parse(sql).holds({"a": values}).tolist() == wanted.tolist(), sql


@pytest.mark.parametrize(
    ("sql", "canonical"),
    [
        ("floor(a) > 3", "a >= 4.0"),
        ("NOT floor(a) > 3", "a < 4.0"),
        ("round(a, 1) = 0.3", "a >= 0.25 AND a < 0.35"),
        ("sign(a) = 0", "a = 0.0"),
        ("round(a) IN (1, 2)", "a >= 0.5 AND a < 2.5"),
        ("ceil(a) = 0.5", "FALSE"),
        ("a IS DISTINCT FROM 5", "a < 5.0 OR a > 5.0 OR a IS NULL"),
        ("f IS NOT TRUE", "NOT f OR f IS NULL"),
        ("s ILIKE 'x'", None),
    ],
)
def test_functions_that_round_and_conditions_that_are_never_null(sql: str, canonical: str | None) -> None:
    if canonical is None:
        with pytest.raises(RefusedError, match="is not a comparison of an attribute"):
            parse(sql)
    else:
        assert parse(sql).sql() == parse(canonical).sql()


@pytest.mark.parametrize(
    ("sql", "types"),
    [
        ("lower(s) LIKE 'a%'", {"s": Type.VARCHAR}),
        ("s || u = 'ab'", {"s": Type.VARCHAR, "u": Type.VARCHAR}),
        ("length(s) > n", {"s": Type.VARCHAR, "n": Type.DOUBLE}),
        ("substring(s, 2) = 'x'", {"s": Type.VARCHAR}),
        ("extract(hour FROM t) < 6", {"t": Type.TIMESTAMP}),
        ("date_trunc('day', t) > '2026-01-31'", {"t": Type.TIMESTAMP}),
    ],
)
def test_names_have_the_types_that_functions_need(sql: str, types: dict[str, Type]) -> None:
    found = {column.name: column.type for column in columns(read_condition(sql))}
    assert found == types


@pytest.mark.parametrize("op", ["<", "<=", ">", ">=", "=", "<>"])
@pytest.mark.parametrize("constant", ["TRUE", "FALSE", "NULL"])
def test_truth_values_have_an_order(op: str, constant: str) -> None:
    column = np.array([True, False, None], np.object_)
    with duckdb.connect() as connection:
        for sql in (
            f"f {op} {constant}",
            f"{constant} {op} f",
            f"NOT (f {op} {constant})",
            f"f BETWEEN FALSE AND {constant}",
            f"f NOT BETWEEN {constant} AND TRUE",
        ):
            asked = f"SELECT {sql} FROM (SELECT unnest([TRUE, FALSE, NULL]::BOOLEAN[]) AS f)"
            truth = [row[0] is True for row in connection.execute(asked).fetchall()]
            assert parse(sql, {"f": Type.BOOLEAN}).holds({"f": column}).tolist() == truth, sql


def test_mistakes_have_places() -> None:
    types = {"temp": Type.DOUBLE, "rh": Type.DOUBLE}
    with pytest.raises(SqlErrors, match=r"line 2, column 4: there is no column 'tmep'; did you mean 'temp'"):
        parse("rh > 5\nOR tmep < 3", types)
    with pytest.raises(SqlErrors, match="expression"):
        parse("")
    with pytest.raises(SqlErrors, match=r"line 1, column 6: unexpected ';'"):
        parse("a < 5; b > 3")
    assert parse("a < 5; ; -- that's all").sql() == "a < 5"
    with pytest.raises(
        RefusedError,
        match="'a \\* b > 3' is not a comparison of an attribute or a sum with a constant",
    ):
        parse("a * b > 3")


def test_what_has_too_many_clauses_is_refused_with_their_number() -> None:
    sql = " AND ".join(f"(a{i} = 1 OR b{i} = 1)" for i in range(14))
    with pytest.raises(RefusedError, match=r"has 16384 clauses .* more than 10000"):
        parse(sql)


def test_thousands_of_clauses_are_read() -> None:
    found = parse(f"a NOT IN ({', '.join(str(2 * i) for i in range(2_000))})", {"a": Type.BIGINT})
    assert len(found.boxes) == 2_001
    assert found.holds({"a": np.arange(10)}).tolist() == [False, True] * 5
    box = " AND ".join(f"d{d} >= {{0}} AND d{d} <= {{0}} + 1" for d in range(6))
    stream = parse(" OR ".join(box.format(2 * i) for i in range(300)))
    assert len(stream.boxes) == 300
    assert match(stream, parse(box.format(200))).implied and not match(stream, parse(box.format(201))).implied


@pytest.mark.parametrize(
    "sql",
    [
        "(" * 1_000 + "a < 5" + ")" * 1_000,
        "NOT " * 1_000 + "a < 5",
        "(a < 5 OR " * 300 + "b > 1" + ")" * 300,
        "a < " + "- " * 500 + "1",
    ],
)
def test_what_nests_too_deeply_is_refused_with_its_place(sql: str) -> None:
    with pytest.raises(
        SqlErrors, match=r"line 1, column \d+: the expression is nested deeper than 16 levels"
    ):
        parse(sql)


def test_holds_is_exact_at_the_ends() -> None:
    one_up = np.nextafter(0.1, 1)
    found = parse("a > 0.1 OR a IS NULL")
    column = np.array([0.1, one_up, np.nan, -np.inf, np.inf, 0.0])
    assert found.holds({"a": column}).tolist() == [False, True, True, True, True, False]
    numbers = parse("n >= 9007199254740993", {"n": Type.BIGINT})
    assert numbers.holds({"n": np.array([2**53, 2**53 + 1])}).tolist() == [False, True]
    texts = parse("s > 'a' AND s <= 'b'")
    assert texts.holds({"s": np.array(["a", "aa", "b", "ba", None], object)}).tolist() == [
        False,
        True,
        True,
        False,
        False,
    ]
