"""Matching: the paper's example, types, and `tamis match`."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner

from tamis.cli import main
from tamis.errors import InputError
from tamis.expressions.nodes import Type
from tamis.predicates.matching import METHODS, implies, match
from tamis.predicates.parse import parse

# kuntschke-2006, section 3.1: p2 lies in the union of p1's boxes and in none of them.
P1 = (
    "a >= 3 AND a <= 12 AND b >= 0 AND b <= 5 OR a >= 9 AND a <= 14 AND b >= 2 AND b <= 8 "
    "OR a >= 0 AND a <= 5 AND b >= 1 AND b <= 6"
)
P2 = "a >= 1 AND a <= 8 AND b >= 2 AND b <= 4"
P3 = "a >= 4 AND a <= 13 AND b >= 7 AND b <= 10"


def test_the_papers_example() -> None:
    p1, p2, p3 = parse(P1), parse(P2), parse(P3)
    assert match(p1, p2).implied and match(p1, p2).relaxed == p1
    assert not match(p1, p2, "hsr").implied and not match(p1, p2, "hcr").implied
    assert match(p1, p2, "hsr").relaxed.sql() == f"{P1} OR {P2}"
    # Figure 3: the box that grows least is a in [3, 12].
    assert match(p1, p2, "hcr").relaxed.sql() == P1.replace("a >= 3", "a >= 1")
    assert not match(p1, p3).implied
    assert match(p1, p3).relaxed.sql() == f"{P1} OR {P3}"


@pytest.mark.parametrize("method", METHODS)
def test_a_dimension_that_one_side_lacks_is_unbounded_there(method: str) -> None:
    assert match(parse("a > 1"), parse("a > 2 AND b > 3"), method).implied
    found = match(parse("a > 1 AND b > 3"), parse("a > 2"), method)
    assert not found.implied
    assert implies(parse("a > 2"), found.relaxed) and implies(parse("a > 1 AND b > 3"), found.relaxed)


def test_no_condition_and_every_value_differ() -> None:
    assert not implies(parse("TRUE"), parse("a < 5 OR a >= 5"))
    assert implies(parse("a < 5 OR a >= 5"), parse("a IS NOT NULL"))
    assert implies(parse("FALSE"), parse("a > 1")) and implies(parse("a > 1"), parse("TRUE"))
    assert implies(parse("a IN (1, 2, 3, 4)"), parse("a BETWEEN 1 AND 2 OR a BETWEEN 3 AND 4"))
    assert not implies(parse("a > 1 AND a < 3"), parse("a = 2"))


def test_types_must_agree() -> None:
    with pytest.raises(
        InputError, match="'a' is VARCHAR in the stream's predicate and DOUBLE in the query's"
    ):
        match(parse("a = 'x'"), parse("a = 1"))
    assert match(parse("a = 'x' OR a IS NULL"), parse("a IS NULL")).implied
    few, more = parse("n < 3", {"n": Type.INT}), parse("n < 5", {"n": Type.BIGINT})
    assert implies(few, more) and not implies(more, few)  # integers are all of 64 bits
    with pytest.raises(InputError, match="no such method"):
        match(parse("a > 1"), parse("a > 1"), "best")


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["match", *arguments])
    return result.exit_code, result.output


def test_the_command_says_yes_no_or_what_is_wrong(tmp_path: Path) -> None:
    assert run("a > 1 OR b > 2", "a > 3") == (0, "implied: the stream has every tuple that the query wants\n")
    code, text = run("a > 3", "a > 1 AND b = 2", "--json")
    assert (code, orjson.loads(text)) == (1, {"implied": False, "relaxed": "a > 3 OR a > 1 AND b = 2"})
    code, text = run("a >", "a > 1")
    assert code == 2 and "STREAM_PREDICATE:1:4" in text
    code, text = run("a > 1", "a * b > 1")
    assert code == 2 and "QUERY_PREDICATE: 'a * b > 1' is not a comparison" in text
    assert run("x + y > 150", "x + y > 190")[0] == 0
    assert run("x + y > 190", "x + y > 150") == (1, "not implied; relaxed:\n  x + y > 150\n")
    assert run("x + y > 150", "x > 100 AND y > 60")[0] == 0
    assert run("2 * x > 300", "x > 150")[0] == 0 and run("x > 150", "2 * x > 300")[0] == 0
    assert run("y > 1", "2 * x > 300")[1] == "not implied; relaxed:\n  y > 1 OR x > 150\n"
    code, text = run("2 * x + 2 * y > 300", "x + y > 150")
    assert code == 2 and "isn't known for these sums of attributes" in text
    code, text = run("(" * 50 + "a > 1" + ")" * 50, "a > 1")
    assert code == 2 and "STREAM_PREDICATE:1:17: the expression is nested deeper" in text
    assert run("-5 < a", "-4 < a")[0] == 0
    assert run("a > 1", "a > 2", "--jsno")[0] == 2
    assert run("a < b + 5", "a < b + 3 AND b > 0")[0] == 0
    assert run("a <= b", "a = b OR a > 1") == (1, "not implied; relaxed:\n  a <= b OR a > 1\n")
    schema = tmp_path / "s.sql"
    schema.write_text("CREATE STREAM s (k VARCHAR KEY, ts TIMESTAMP, n INT, WATERMARK FOR ts AS ts);")
    assert run("n = 2", "n > 1 AND n < 3")[0] == 1
    assert run("n = 2", "n > 1 AND n < 3", "--schema", str(schema))[0] == 0
    code, text = run("n = 2", "m = 3", "--schema", str(schema))
    assert code == 2 and "QUERY_PREDICATE:1:1: there is no column 'm'" in text
