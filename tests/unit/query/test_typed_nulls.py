"""NULLs with a type of their own, and the word NULL, which takes the type of what is beside it."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet
import pytest
from click.testing import CliRunner

from tamis.cli import main
from tamis.errors import SqlErrors
from tamis.expressions.nodes import Type
from tamis.query.model import selects_of
from tamis.query.parse import catalog_of

STREAM = """CREATE STREAM s (k VARCHAR KEY, ts TIMESTAMP, i INT, d DOUBLE, b BOOLEAN, WATERMARK FOR ts AS ts);
"""
TYPES = {
    "CAST(NULL AS DOUBLE)": Type.DOUBLE,
    "nullif(CAST(NULL AS DOUBLE), 10)": Type.DOUBLE,
    "coalesce(CAST(NULL AS DOUBLE), i)": Type.DOUBLE,
    "coalesce(NULL, CAST(NULL AS TIMESTAMP))": Type.TIMESTAMP,
    "coalesce(CAST(NULL AS BOOLEAN), NULL)": Type.BOOLEAN,
    "CASE WHEN b THEN CAST(NULL AS INT) END": Type.INT,
    "CASE WHEN b THEN NULL ELSE CAST(NULL AS BOOLEAN) END": Type.BOOLEAN,
    "CAST(NULL AS TIMESTAMP) + INTERVAL '1' SECOND": Type.TIMESTAMP,
    "least(CAST(NULL AS TIMESTAMP), NULL)": Type.TIMESTAMP,
    "abs(CAST(NULL AS INT))": Type.INT,
    "i + NULL": Type.BIGINT,
    "i / NULL": Type.DOUBLE,
    "ts - NULL": Type.TIMESTAMP,
    "NULL": Type.VARCHAR,
}


@pytest.mark.parametrize("sql", TYPES)
def test_the_type_of_a_column(sql: str) -> None:
    catalog = catalog_of(f"{STREAM} CREATE STREAM v AS SELECT k, ts, {sql} AS x FROM s;")
    assert catalog.derived["v"].query.select[-1].expr.type is TYPES[sql]


def test_a_null_keeps_its_type_in_a_comparison() -> None:
    accepted = "nullif(CAST(NULL AS DOUBLE), 10) >= d OR CAST(NULL AS VARCHAR) = k"
    catalog_of(f"{STREAM} CREATE ALERT q AS SELECT k FROM s WHERE {accepted};")
    with pytest.raises(SqlErrors, match="VARCHAR can't be compared with DOUBLE"):
        catalog_of(f"{STREAM} CREATE ALERT q AS SELECT k FROM s WHERE CAST(NULL AS VARCHAR) = d;")


def test_columns_of_results_have_their_types(tmp_path: Path) -> None:
    rows, sql, made = tmp_path / "s.csv", tmp_path / "q.sql", tmp_path / "made.parquet"
    rows.write_text("k,ts,i,d,b\na,1767225600000000,1,2,true\n")
    shown = ", ".join(f"{one} AS x{i}" for i, one in enumerate(TYPES))
    sql.write_text(f"{STREAM} CREATE ALERT q AS SELECT k, ts, {shown} FROM s;")
    found = CliRunner().invoke(main, ["run", str(sql), "--input", f"s={rows}", "-o", str(made)])
    assert found.exit_code == 0, found.output
    arrow = {Type.DOUBLE: "double", Type.BOOLEAN: "bool", Type.VARCHAR: "string"}
    types = [str(one.type) for one in pyarrow.parquet.read_schema(made)][2:]
    assert types == [arrow.get(kind, "int64") for kind in TYPES.values()]


def test_a_null_in_a_union_has_the_type_of_its_column() -> None:
    catalog = catalog_of(
        "CREATE STREAM s (i INT, d DOUBLE);"
        "CREATE ALERT q WITH (allow_unbounded = true) AS SELECT NULL AS x, i AS y FROM s"
        " UNION ALL SELECT d AS x, NULL AS y FROM s;"
    )
    for member in selects_of(catalog.alerts["q"].query):
        assert [one.expr.type for one in member.select] == [Type.DOUBLE, Type.INT]
