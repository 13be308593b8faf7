"""Sessions of one DuckDB database in memory, since opening one takes far longer than a small join."""

from __future__ import annotations

import atexit
from functools import lru_cache
from inspect import Parameter, Signature

import duckdb
import numpy as np
from duckdb.func import FunctionNullHandling

from tamis.expressions.nodes import Call
from tamis.expressions.python_functions import MOST, installed, name_in_duckdb, name_of
from tamis.verification.exact_sums import EXACT, WHOLE


def session() -> duckdb.DuckDBPyConnection:
    """A session with its own temporary tables, registered Arrow tables and macros. The caller closes it."""
    return _database().cursor()


def register(call: Call) -> None:
    """Register a function of Python with every session, called row by row. Raises FunctionError if it
    isn't installed.
    """
    name, count = name_in_duckdb(call), len(call.args) - 2
    if _known.get(name) == count:
        return
    function = installed(name_of(call))

    def of_row(*row: float) -> float | None:
        (value,) = np.asarray(function(*(np.array([x]) for x in row)), np.float64).tolist()
        return value if abs(value) <= MOST else None

    # DuckDB counts the parameters, and takes `*row` for one.
    parameters = [Parameter(f"x{i}", Parameter.POSITIONAL_ONLY) for i in range(count)]
    of_row.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    if name in _known:
        _database().remove_function(name)
    _database().create_function(name, of_row, [duckdb.sqltypes.DOUBLE] * count, duckdb.sqltypes.DOUBLE)
    _known[name] = count


def _forget() -> None:
    for name in _known:
        _database().remove_function(name)
    _known.clear()
    _database().close()


_known: dict[str, int] = {}  # the number of arguments of each


@lru_cache(maxsize=1)
def _database() -> duckdb.DuckDBPyConnection:
    found = duckdb.connect(":memory:")
    for kind in (duckdb.sqltypes.DOUBLE, duckdb.sqltypes.BIGINT):
        suffix = "" if kind == duckdb.sqltypes.DOUBLE else WHOLE
        for name, function in EXACT.items():
            name_of_kind = f"{name}{suffix}"
            found.create_function(
                name_of_kind,
                function,
                [duckdb.list_type(kind)],
                duckdb.sqltypes.DOUBLE,
                null_handling=FunctionNullHandling.SPECIAL,
            )
            _known[name_of_kind] = 1
    atexit.register(_forget)  # DuckDB reports errors for functions that outlive it
    return found
