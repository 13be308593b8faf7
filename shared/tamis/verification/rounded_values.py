"""Values of SELECT over aggregates where rounding decides: steps, choices and differences near zero.

Aggregates are computed in another order by DuckDB than by Tamis, so that both may be on different sides of a
step: `round(avg(x), 2)` is 0.12 or 0.13 where the average is 0.125 up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tamis.expressions.duckdb_sql import to_duckdb
from tamis.expressions.exact.rounding import bound, certain
from tamis.expressions.functions.entry import FUNCTIONS
from tamis.expressions.nodes import Call, Column, Expr, Type, columns

# Values of rows may differ by this share, since sums may be computed in another order.
NEAR = 1e-9


def doubt_sql(
    expr: Expr, errors: Mapping[Expr, Expr], place: Callable[[Column], str]
) -> tuple[str, str] | None:
    """SQL of a condition that is true where rounding decides the value of `expr`, and of the greatest
    difference of two values then, NULL if any value is possible. None if rounding decides no value.

    `errors` has the error bounds of aggregates.
    """
    if not isinstance(expr, Call) or not any(column in errors for column in columns(expr)):
        return None
    value, error, sure = to_duckdb(expr, place), bound(expr, errors), certain(expr, errors=errors)
    inputs = [to_duckdb(column, place) for column in dict.fromkeys(columns(expr)) if column in errors]
    anything = [] if sure is None else [f"NOT coalesce({to_duckdb(sure, place)}, FALSE)"]
    # By these functions, any change of an argument may change the value in any way.
    anything += [f"{to_duckdb(arg, place)} IS NOT NULL" for arg in inexact_arguments(expr, errors)]
    some = []
    if error is not None:
        anything.append(f"{value} IS NULL AND {' AND '.join(f'{one} IS NOT NULL' for one in inputs)}")
        size = to_duckdb(error, place)
        anything.append(f"{value} IS NOT NULL AND {size} IS NULL")
        least = f"{NEAR!r} * abs({value})" if expr.type is Type.DOUBLE else "0"
        some.append(f"coalesce({size} > {least}, FALSE)")
    if not anything:
        return None
    any_value = " OR ".join(f"({one})" for one in anything)
    most = "NULL" if error is None else f"CASE WHEN NOT ({any_value}) THEN {to_duckdb(error, place)} END"
    return " OR ".join([any_value, *some]), f"CAST({most} AS DOUBLE)"


def inexact_arguments(expr: Expr, errors: Mapping[Expr, Expr]) -> Iterator[Expr]:
    """The arguments with a rounding error of functions that are exact by definition."""
    if not isinstance(expr, Call):
        return
    for arg in expr.args:
        if FUNCTIONS[expr.op].computed and bound(arg, errors) is not None:
            yield arg
        yield from inexact_arguments(arg, errors)
