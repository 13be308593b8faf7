"""DuckDB in memory. Opening a database takes far longer than a small join, so one serves the process."""

from __future__ import annotations

from functools import lru_cache

import duckdb


def session() -> duckdb.DuckDBPyConnection:
    """A session with temporary tables, registered Arrow tables and macros of its own; close it."""
    return _database().cursor()


@lru_cache(maxsize=1)
def _database() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(":memory:")
