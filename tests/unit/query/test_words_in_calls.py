"""Calls with words in place of commas: SUBSTRING … FROM … FOR, TRIM … FROM, and the type DOUBLE PRECISION."""

from __future__ import annotations

import pytest

from tamis.errors import TamisError
from tamis.expressions.sql_text import to_sql
from tamis.query.parse import catalog_of

_STREAM = "CREATE STREAM s (ts TIMESTAMP, both VARCHAR, t VARCHAR, WATERMARK FOR ts AS ts);"


def _resolved(text: str) -> str:
    catalog = catalog_of(f"{_STREAM} CREATE ALERT q AS SELECT {text} AS v FROM s;")
    return to_sql(catalog.alerts["q"].query.select[0].expr)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("SUBSTRING(t FROM 2 FOR 3)", "substring(s.t, 2, 3)"),
        ("substring(t FROM 2)", "substring(s.t, 2)"),
        ("substring(t FOR 2)", "substring(s.t, 1, 2)"),
        ("substring(t, 2, 3)", "substring(s.t, 2, 3)"),
        ("TRIM(BOTH 'x' FROM t)", "trim(s.t, 'x')"),
        ("trim(LEADING FROM t)", "ltrim(s.t)"),
        ("trim(TRAILING 'x' FROM t)", "rtrim(s.t, 'x')"),
        ("trim('x' FROM t)", "trim(s.t, 'x')"),
        ("trim(both)", "trim(s.both)"),
        ("trim(s.both)", "trim(s.both)"),
        ("trim(BOTH both FROM t)", "trim(s.t, s.both)"),
        ("CAST(t AS DOUBLE PRECISION)", "CAST(s.t AS DOUBLE)"),
        ("t::INT", "CAST(CAST(s.t AS BIGINT) AS INT)"),
    ],
)
def test_meaning(text: str, meaning: str) -> None:
    assert _resolved(text) == meaning


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("trim(BOTH 'x', t)", "write FROM here"),
        ("substring(t FROM 2 FOR)", "unexpected ')'"),
        ("substring(t", "write ) here"),
        ("trim(t FROM)", "unexpected ')'"),
        ("substring(t FROM 1 2)", "unexpected '2'; write ) here"),
        ("trim(3 FROM t)", "trim can't be applied to VARCHAR, INT"),
        ("first_value(t)", "or first(x) over the tuples of a window"),
        ("CAST(t AS REAL)", "CAST to REAL is not supported; write DOUBLE, which has 64 bits"),
    ],
)
def test_mistakes(text: str, mistake: str) -> None:
    with pytest.raises(TamisError) as found:
        _resolved(text)
    assert mistake in str(found.value)
