"""JOIN … USING means the equalities of ON, and names each such column once."""

from __future__ import annotations

import pytest

from tamis.errors import InputError
from tamis.expressions.sql_text import to_sql
from tamis.query.parse import catalog_of

STREAMS = "".join(
    f"CREATE STREAM {name} (k VARCHAR KEY, room INT KEY, ts TIMESTAMP, {name}x INT, WATERMARK FOR ts AS ts);"
    for name in ("a", "b", "c")
)
NEAR = "ABS(a.ts - b.ts) <= INTERVAL '1' MINUTE"
END = f"WHERE {NEAR} AND a.ts = c.ts"


def parts(query: str) -> tuple[list[str], list[tuple[str, str]]]:
    """The conditions, and the columns of SELECT."""
    found = catalog_of(f"{STREAMS}CREATE ALERT q AS {query};").alerts["q"].query
    conditions = [to_sql(one.expr) for one in found.conjuncts]
    return sorted(conditions), [(one.name, to_sql(one.expr)) for one in found.select]


@pytest.mark.parametrize(
    ("using", "on"),
    [
        (
            f"SELECT k, ax, bx FROM a JOIN b USING (k) WHERE {NEAR}",
            f"SELECT a.k, ax, bx FROM a JOIN b ON a.k = b.k WHERE {NEAR}",
        ),
        (
            f"SELECT k, a.room, b.k AS other FROM a JOIN b USING (k, room) JOIN c USING (k) {END}",
            "SELECT a.k, a.room, b.k AS other FROM a JOIN b ON a.k = b.k AND a.room = b.room"
            f" JOIN c ON a.k = c.k {END}",
        ),
        (
            "SELECT * FROM a JOIN (SELECT k, ts AS at, bx FROM b) s USING (k) WHERE s.at = a.ts AND k <> 'x'",
            "SELECT a.*, at, bx FROM a JOIN (SELECT k AS other, ts AS at, bx FROM b) s ON a.k = s.other"
            " WHERE s.at = a.ts AND a.k <> 'x'",
        ),
        (
            f"SELECT a.k FROM a WHERE EXISTS (SELECT 1 FROM b JOIN c USING (k) {END} AND a.k = b.k)",
            f"SELECT a.k FROM a WHERE EXISTS (SELECT 1 FROM b JOIN c ON b.k = c.k {END} AND a.k = b.k)",
        ),
    ],
)
def test_using_means_equalities(using: str, on: str) -> None:
    assert parts(using) == parts(on)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT ax FROM a JOIN b USING (kk)", "no stream before this JOIN has a column 'kk'"),
        ("SELECT ax FROM a JOIN b USING (ax)", "the stream that is joined has no column 'ax'"),
        ("SELECT ax FROM a JOIN b ON a.k = b.k JOIN c USING (k)", "write ON a.k = c.k or b.k = c.k"),
        ("SELECT ts FROM a JOIN b USING (k)", "'ts' is ambiguous: several streams have"),
    ],
)
def test_a_column_that_cannot_be_equated_is_named(query: str, message: str) -> None:
    with pytest.raises(InputError) as raised:
        catalog_of(f"{STREAMS}CREATE ALERT q AS {query};")
    assert message in str(raised.value)
