"""A missing semicolon is one mistake: what follows from it isn't reported.

All other mistakes of the two statements are.
"""

from __future__ import annotations

import time

import pytest

from tamis.errors import SqlErrors
from tamis.query.model import Catalog
from tamis.query.parse import MOST_DIVIDED, parse

AIR = "CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE, WATERMARK FOR ts AS ts);\n"
ENDS = "end the statement before it with a semicolon"


@pytest.mark.parametrize(
    ("text", "mistakes"),
    [
        (
            "CREATE ALERT a AS SELECT k FROM air WHERE x > 1\n"
            "CREATE ALERT b AS SELECT k FROM air WHERE x > 2",
            [f"line 3, column 1: unexpected 'CREATE'; {ENDS}"],
        ),
        (
            "CREATE ALERT a AS SELECT k, y FROM air WHERE x > 1\n"
            "CREATE ALERT b AS SELECT z FROM air WHERE z > 2",
            [
                "line 2, column 29: no stream in FROM has a column 'y'; known names: k, ts, x",
                f"line 3, column 1: unexpected 'CREATE'; {ENDS}",
                "line 3, column 26: no stream in FROM has a column 'z'; known names: k, ts, x",
            ],
        ),
        (
            "CREATE STREAM h AS SELECT k, ts, x FROM air WHERE kk = 'a'\n"
            "CREATE ALERT b AS SELECT k FROM h WHERE x > 2 CREATE ALERT c AS SELECT w FROM air\n"
            "DROP ALERT e;",
            [
                "line 2, column 51: no stream in FROM has a column 'kk'; did you mean 'k'?",
                f"line 3, column 1: unexpected 'CREATE'; {ENDS}",
                f"line 3, column 47: unexpected 'CREATE'; {ENDS}",
                "line 3, column 72: no stream in FROM has a column 'w'; known names: k, ts, x",
                f"line 4, column 1: unexpected 'DROP'; {ENDS}",
                "line 4, column 12: there is no alert 'e'; none is defined yet",
            ],
        ),
        (
            "CREATE FUNCTION f(v DOUBLE) RETURNS DOUBLE AS 2 * v\n"
            "CREATE ALERT b AS SELECT k FROM air WHERE f(x) > 2;",
            [f"line 3, column 1: unexpected 'CREATE'; {ENDS}"],
        ),
        (
            "CREATE STREAM h AS SELECT k, ts, x FROM air\nCREATE ALERT b AS SELECT k FROM h WHERE x > 2;",
            [f"line 3, column 1: unexpected 'CREATE'; {ENDS}"],
        ),
        (
            "CREATE ALERT a AS SELECT k FROM air\n"
            "CREATE OR REPLACE ALERT b AS SELECT k FROM air WHERE x > 2;",
            [f"line 3, column 1: unexpected 'CREATE'; {ENDS}"],
        ),
        (
            "CREATE ALERT a AS SELECT k FROM air\nDROP ALERT b;",
            [
                f"line 3, column 1: unexpected 'DROP'; {ENDS}",
                "line 3, column 12: there is no alert 'b'; known names: a",
            ],
        ),
        (
            "CREATE FUNCTION f(v DOUBLE) RETURNS DOUBLE AS f(v) + 1;",
            [
                "line 2, column 17: functions can't call themselves: f → f; "
                "write the expression without the call"
            ],
        ),
    ],
)
def test_a_missing_semicolon_is_reported_once(text: str, mistakes: list[str]) -> None:
    with pytest.raises(SqlErrors) as raised:
        parse(AIR + text, Catalog())
    assert [str(error) for error in raised.value.errors] == mistakes


def test_a_long_text_without_semicolons_is_read_soon() -> None:
    text = "\n".join(f"CREATE ALERT a{number} AS SELECT y FROM air" for number in range(2_000))
    began = time.process_time()
    with pytest.raises(SqlErrors) as raised:
        parse(AIR + text, Catalog())
    assert time.process_time() - began < 10
    assert 1 + 2 * MOST_DIVIDED >= len(raised.value.errors) > MOST_DIVIDED
