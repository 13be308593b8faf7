"""Domains of columns: the values that a CHECK admits, or the default of the type.

A column without a CHECK has a domain, too, because otherwise nothing could be proved about it: a sum of two
finite DOUBLEs may overflow, and is then NULL and raises no alarm. The size of a DOUBLE is at most 1e100, so
that the product of three is still finite, and an INT is a 32-bit integer. Edges enforce these limits like a
CHECK. BIGINT and TIMESTAMP are 64-bit integers and have no narrower domain.
"""

from __future__ import annotations

import math

from tamis.declarations.definitions import ColumnDef
from tamis.expressions.nodes import (
    COMPARISONS,
    FLIPPED,
    LARGEST_EXACT_INTEGER,
    Call,
    Column,
    Expr,
    Literal,
    Type,
    conjunction,
)
from tamis.expressions.signatures import call

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


def ends(column: ColumnDef, alias: str = "", filters: tuple[Expr, ...] = ()) -> Ends:
    """The least and the greatest value of a numeric or TIMESTAMP column that edges accept and that passes
    `filters`, the predicates of its source `alias`. The default of the type if these contradict each other.
    """
    default = _DEFAULTS.get(column.type, _ALL)
    checks = [] if column.check is None else [_admitted(column.check, Column("", column.name, column.type))]
    checks += [_admitted(part, Column(alias, column.name, column.type)) for part in filters]
    lo, hi = default
    for least, most in checks:
        lo, hi = max(lo, least), min(hi, most)
    return (lo, hi) if lo <= hi else default


def declared_ends(column: ColumnDef) -> Ends:
    """The least and the greatest value that the CHECK of a numeric column admits; infinite without one."""
    if column.check is None:
        return _ALL
    return _admitted(column.check, Column("", column.name, column.type))


def domain_check(column: ColumnDef) -> Expr | None:
    """The condition that edges check: the declared CHECK, and the default limits on the sides that it
    leaves open.
    """
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
    """An interval that contains the values of `column` for which `check` is not false; everything for a
    condition of another form.
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
    """The number of a literal or of a negated literal; None for anything else and beyond 2^53."""
    if isinstance(expr, Call) and expr.op == "neg":
        value = _number(expr.args[0])
        return None if value is None else -value
    if not isinstance(expr, Literal) or isinstance(expr.value, (bool, str)) or expr.value is None:
        return None
    if isinstance(expr.value, int) and abs(expr.value) > LARGEST_EXACT_INTEGER:
        return None
    return float(expr.value)
