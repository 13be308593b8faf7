"""Rows for DuckDB in one statement: `executemany` runs one for each row, which takes ten times as long."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import duckdb
import pyarrow as pa


def insert(base: duckdb.DuckDBPyConnection, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
    """Add rows with values in the order of the table's columns. All values of a column have one type."""
    columns = [pa.array(column) for column in zip(*rows, strict=True)]
    if columns:
        base.register("given_rows", pa.table(columns, [str(number) for number in range(len(columns))]))
        base.execute(f"INSERT INTO {table} SELECT * FROM given_rows")
        base.unregister("given_rows")
