"""Sessions of one DuckDB database in memory, with functions for exact sums.

The database is opened once, since that takes far longer than a small join.

DuckDB's own sums are rounded at each step: that of 1, -1e16 and 1e16 is 0. The sums here are
exact numbers that are rounded once.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from inspect import Parameter, Signature
from math import fsum, isqrt

import duckdb
import numpy as np
from duckdb.func import FunctionNullHandling

from tamis.expressions.nodes import Call
from tamis.expressions.python_functions import MOST, installed, name_in_duckdb, name_of

Numbers = Sequence[float | None] | None  # a list of DuckDB; None is NULL
WHOLE = "_whole"  # the end of the names of the functions for whole numbers
_BITS = 140  # of the square of a root, more than twice those of a DOUBLE


def total(values: Numbers) -> float | None:
    """The sum; None without values, or if it is no finite DOUBLE.

    >>> total([1.0, -1e16, None, 1e16]), total([1e308, 1e308, -1e308]), total([1e308, 1e308]), total([None])
    (1.0, 1e+308, None, None)
    """
    own = _present(values)
    try:
        return fsum(own) if own else None
    except OverflowError:
        whole, unit = _whole(own)
        return _rounded(Fraction(sum(whole), unit))


def mean(values: Numbers) -> float | None:
    """The average, as `total`.

    >>> mean([1.0, -1e16, 1e16, None]) == 1 / 3
    True
    """
    own = _present(values)
    whole, unit = _whole(own)
    return _rounded(Fraction(sum(whole), unit * len(own))) if own else None


def spread(*, sample: bool, root: bool) -> Callable[[Numbers], float | None]:
    """The variance of a list or, with `root`, its standard deviation, of a sample or of all values.

    >>> spread(sample=True, root=False)([1e16, 1e16 + 2]), spread(sample=False, root=True)([1e200, 3e200])
    (2.0, 1e+200)
    """

    def of(values: Numbers) -> float | None:
        whole, unit = _whole(_present(values))
        count = len(whole)
        if count <= sample:
            return None
        squares = count * sum(value * value for value in whole) - sum(whole) ** 2
        variance = Fraction(squares, count * (count - sample) * unit**2)
        return _rounded(_root(variance) if root else variance)

    return of


def _whole(values: Sequence[float]) -> tuple[list[int], int]:
    """Whole numbers of which each is a value times the second result."""
    ratios = [value.as_integer_ratio() for value in values]
    unit = max((below for _, below in ratios), default=1)  # a power of two, so a multiple of all others
    return [above * (unit // below) for above, below in ratios], unit


def _root(value: Fraction) -> Fraction:
    """The square root, up to far less than a unit in the last place of a DOUBLE."""
    shift = max(0, _BITS + value.denominator.bit_length() - value.numerator.bit_length()) // 2
    return Fraction(isqrt((value.numerator << 2 * shift) // value.denominator), 1 << shift)


def _present(values: Numbers) -> list[float]:
    return [] if values is None else [value for value in values if value is not None]


def _rounded(value: Fraction) -> float | None:
    try:
        return float(value)
    except OverflowError:
        return None


EXACT: Mapping[str, Callable[[Numbers], float | None]] = {
    "exact_sum": total,
    "exact_avg": mean,
    "exact_var_pop": spread(sample=False, root=False),
    "exact_var_samp": spread(sample=True, root=False),
    "exact_stddev_pop": spread(sample=False, root=True),
    "exact_stddev_samp": spread(sample=True, root=True),
}


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
