"""The domain of a column: what its CHECK admits, or the default of its type.

A column without bounds of its own still has a domain, or nothing could be proved of it: a sum of two finite
doubles may overflow, and what overflows is NULL and raises no alarm. A DOUBLE is at most 1e100 in size, so
that the product of three is still finite, and an INT is a 32-bit integer. Edges enforce these like any
CHECK. BIGINT and TIMESTAMP are 64-bit and have no narrower domain.
"""

from __future__ import annotations

import math

from tamis.expressions.nodes import COMPARISONS, Call, Column, Expr, Literal, Type, conjunction
from tamis.expressions.signatures import call
from tamis.planning.intervals import Interval, span
from tamis.planning.times import FLIPPED
from tamis.query.model import ColumnDef

DOUBLE_LIMIT = 1e100
INT_LIMIT = 2**31
BIGINT_LIMIT = 2.0**63

Ends = tuple[float, float]
_ALL: Ends = (-math.inf, math.inf)
_DEFAULTS: dict[Type, Ends] = {
    Type.DOUBLE: (-DOUBLE_LIMIT, DOUBLE_LIMIT),
    Type.INT: (-INT_LIMIT, INT_LIMIT - 1),
    Type.BIGINT: (-BIGINT_LIMIT, BIGINT_LIMIT),
    Type.TIMESTAMP: (-BIGINT_LIMIT, BIGINT_LIMIT),
}


def domain(column: ColumnDef, alias: str = "", filters: tuple[Expr, ...] = ()) -> Interval:
    """An interval that holds every value of a numeric or TIMESTAMP column which edges let through and which
    passes `filters`, the predicates of its source `alias`.
    """
    default = _DEFAULTS.get(column.type, _ALL)
    checks = [] if column.check is None else [_admitted(column.check, Column("", column.name, column.type))]
    checks += [_admitted(part, Column(alias, column.name, column.type)) for part in filters]
    lo, hi = default
    for least, most in checks:
        lo, hi = max(lo, least), min(hi, most)
    return span(lo, hi) if lo <= hi else span(*default)


def domain_check(column: ColumnDef) -> Expr | None:
    """The condition that edges check: the declared CHECK, and the default limits where it says none."""
    default = _DEFAULTS.get(column.type)
    if default is None or column.type not in (Type.DOUBLE, Type.INT):
        return column.check
    value = Column("", column.name, column.type)
    declared = _admitted(column.check, value) if column.check is not None else _ALL
    limits: list[Expr] = [] if column.check is None else [column.check]
    if declared[0] < default[0]:
        limits.append(call(">=", value, _limit(default[0], column.type)))
    if declared[1] > default[1]:
        limits.append(call("<=", value, _limit(default[1], column.type)))
    return conjunction(tuple(limits))


def _limit(value: float, type_: Type) -> Literal:
    return Literal(value if type_ is Type.DOUBLE else int(value), type_)


def _admitted(check: Expr, column: Column) -> Ends:
    """An interval around the values of `column` that `check` does not find false. What is not understood
    admits all.
    """
    type_ = column.type
    if not isinstance(check, Call):
        return _ALL
    if check.op == "and":
        parts = [_admitted(arg, column) for arg in check.args]
        return max(lo for lo, _ in parts), min(hi for _, hi in parts)
    if check.op == "or":
        either = [_admitted(arg, column) for arg in check.args]
        return min(lo for lo, _ in either), max(hi for _, hi in either)
    if check.op not in COMPARISONS:
        return _ALL
    left, right, op = check.args[0], check.args[1], check.op
    if isinstance(left, Literal) or _number(left) is not None:
        left, right, op = right, left, FLIPPED[op]
    value = _number(right)
    if left != column or value is None:
        return _ALL
    match op:
        case "<":
            return -math.inf, math.ceil(value) - 1 if type_.integral else math.nextafter(value, -math.inf)
        case "<=":
            return -math.inf, math.floor(value) if type_.integral else value
        case ">":
            return math.floor(value) + 1 if type_.integral else math.nextafter(value, math.inf), math.inf
        case ">=":
            return math.ceil(value) if type_.integral else value, math.inf
        case "=":
            return value, value
        case _:
            return _ALL


def _number(expr: Expr) -> float | None:
    """The number that a literal, or the negative of one, is; None for anything else and beyond 2^53."""
    if isinstance(expr, Call) and expr.op == "neg":
        value = _number(expr.args[0])
        return None if value is None else -value
    if not isinstance(expr, Literal) or isinstance(expr.value, (bool, str)) or expr.value is None:
        return None
    if isinstance(expr.value, int) and abs(expr.value) > 2**53:
        return None
    return float(expr.value)
