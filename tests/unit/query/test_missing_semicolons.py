"""A missing semicolon is one mistake: nothing that follows from it is reported as well."""

from __future__ import annotations

import pytest

from tamis.errors import SqlErrors
from tamis.query.model import Catalog
from tamis.query.parse import parse

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
            [f"line 3, column 1: unexpected 'CREATE'; {ENDS}"],
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
            [f"line 3, column 1: unexpected 'DROP'; {ENDS}"],
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
