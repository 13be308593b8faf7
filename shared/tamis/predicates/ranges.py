"""Ranges of one attribute: half-open intervals between cuts in the order of its values, with NULL below all.

The values of every type of column have one order, in which each has a next value, also for DOUBLE. So `a >
5` is the same as `a >= x`, where x is the next value after 5. Therefore all ranges are half-open: they
include their lower end and exclude their upper end. Two ranges touch if one ends where the other begins.
There is one form for all types (kuntschke-2006, section 2.1, has open and closed ends).

The ends of ranges are *cuts*. The cut `(0, value)` lies just below a value. The cut `NULL` lies below NULL,
`LOW` between NULL and the least value, and `HIGH` above the greatest value. An attribute without conditions
has the range [NULL, HIGH), which includes NULL. `IS NOT NULL` is [LOW, HIGH), and `IS NULL` is [NULL, LOW).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from typing import Any

from tamis.expressions.nodes import Type

Cut = tuple[Any, ...]
Range = tuple[Cut, Cut]
Value = bool | int | float | str

NULL: Cut = (-2,)
LOW: Cut = (-1,)
HIGH: Cut = (1,)

ANYTHING: Range = (NULL, HIGH)
NOT_NULL: Range = (LOW, HIGH)
IS_NULL: Range = (NULL, LOW)

_INT64 = (-(2**63), 2**63 - 1)
_GREATEST_DOUBLE = sys.float_info.max
_SECOND = 1_000_000
_YEAR_10000 = 253_402_300_800 * _SECOND  # the first time that can't be written as text


def below(value: Value, kind: Type) -> Cut:
    """The cut just below `value` in the order of a type's values.

    >>> below(5, Type.INT), below(-(2**63), Type.BIGINT), below(0.5, Type.INT)
    ((0, 5), (-1,), (0, 1))
    """
    match kind:
        case Type.VARCHAR:
            return (0, value) if value else LOW
        case Type.BOOLEAN:
            return (0, True) if value else LOW
        case Type.DOUBLE:
            number = float(value) + 0.0  # -0.0 equals 0.0
            if number <= -_GREATEST_DOUBLE:
                return LOW
            return HIGH if number == math.inf else (0, number)
    assert not isinstance(value, str)
    whole = value if isinstance(value, int) else _first_integer_from(value)
    if whole <= _INT64[0]:
        return LOW
    return (0, int(whole)) if whole <= _INT64[1] else HIGH


def above(value: Value, kind: Type) -> Cut:
    """The cut just above `value`.

    >>> above(5, Type.INT), above(True, Type.BOOLEAN), above("a", Type.VARCHAR), above(0.0, Type.DOUBLE)
    ((0, 6), (1,), (0, 'a\\x00'), (0, 5e-324))
    """
    match kind:
        case Type.VARCHAR:
            return (0, str(value) + "\0")
        case Type.BOOLEAN:
            return HIGH if value else (0, True)
        case Type.DOUBLE:
            return below(math.nextafter(float(value), math.inf), kind)
    assert not isinstance(value, str)
    if isinstance(value, int):
        return below(value + 1, kind)
    return below(math.nextafter(value, math.inf), kind)


def _first_integer_from(bound: float) -> int:
    """The least integer that, as a DOUBLE, is at least `bound`: so an integer is compared with a DOUBLE."""
    if math.isinf(bound):
        return _INT64[1] + 1 if bound > 0 else _INT64[0]
    whole = math.ceil(bound)
    # Beyond 2^53 integers below `bound` are rounded up to it: the first of them is found by halving.
    low, high = whole - 2**12, whole
    while low < high:
        middle = (low + high) // 2
        if float(middle) >= bound:
            high = middle
        else:
            low = middle + 1
    return high


def compare(op: str, value: Value, kind: Type) -> tuple[Range, ...]:
    """The ranges where `attribute op value` is true: disjoint, in ascending order.

    >>> compare("!=", 5, Type.INT)
    (((-1,), (0, 5)), ((0, 6), (1,)))
    >>> compare("=", 0.5, Type.INT)
    ()
    """
    if op in ("=", "!="):
        # Equality is by value, also beyond 2^53, where the order of DOUBLEs takes several integers for one.
        if isinstance(value, float) and kind.integral:
            if not value.is_integer():
                return () if op == "=" else (NOT_NULL,)
            value = int(value)
        elif isinstance(value, int) and kind is Type.DOUBLE and float(value) != value:
            return () if op == "=" else (NOT_NULL,)
    lower, upper = below(value, kind), above(value, kind)
    ranges: tuple[Range, ...] = {
        "=": ((lower, upper),),
        "!=": ((LOW, lower), (upper, HIGH)),
        "<": ((LOW, lower),),
        "<=": ((LOW, upper),),
        ">": ((upper, HIGH),),
        ">=": ((lower, HIGH),),
    }[op]
    return tuple(r for r in ranges if r[0] < r[1])


def complement(found: Iterable[Range]) -> tuple[Range, ...]:
    """The values outside of a union of ranges, without NULL; disjoint, ascending."""
    return _gaps((IS_NULL, *found))


def intersection(unions: Iterable[Iterable[Range]]) -> tuple[Range, ...]:
    """The intersection of unions of ranges; disjoint, ascending.

    >>> intersection([compare("!=", 1, Type.INT), compare("!=", 2, Type.INT), compare("<", 3, Type.INT)])
    (((-1,), (0, 1)),)
    """
    return _gaps(gap for union in unions for gap in _gaps(union))


def _gaps(found: Iterable[Range]) -> tuple[Range, ...]:
    """The values outside of a union of ranges."""
    out, at = [], NULL
    for lower, upper in sorted(found):
        if at < lower:
            out.append((at, lower))
        at = max(at, upper)
    return (*out, (at, HIGH)) if at < HIGH else tuple(out)


def bounds_text(found: Range, kind: Type) -> tuple[tuple[str, Value], ...]:
    """The comparisons that put a value into a range, each with the shorter of two equivalent constants.

    >>> bounds_text(((0, 6), (0, 9)), Type.INT)
    (('>=', 6), ('<', 9))
    >>> bounds_text(((0, math.nextafter(1.0, 2)), HIGH), Type.DOUBLE)
    (('>', 1.0),)
    >>> bounds_text(((0, "b"), (0, "b" + chr(0))), Type.VARCHAR)
    (('=', 'b'),)
    """
    lower, upper = found
    if lower != LOW and upper == above(lower[1], kind):
        return (("=", lower[1]),)
    if lower == LOW and upper != HIGH and kind is Type.BOOLEAN:
        return (("=", False),)
    if lower == LOW and upper == (0, "\0"):
        return (("=", ""),)
    out: list[tuple[str, Value]] = []
    if lower != LOW:
        out.append(_end(lower[1], kind, ">", ">="))
    if upper != HIGH:
        out.append(_end(upper[1], kind, "<=", "<"))
    return tuple(out)


def _end(value: Value, kind: Type, past: str, at: str) -> tuple[str, Value]:
    """The operator and constant of an end: `past` the value before `value`, or `at` the value, whichever is
    shorter.
    """
    before: Value | None = None
    if kind is Type.VARCHAR and isinstance(value, str) and value.endswith("\0"):
        before = value[:-1]
    elif kind is Type.DOUBLE:
        before = math.nextafter(float(value), -math.inf)
        if len(repr(before)) >= len(repr(value)):
            before = None
    elif kind is Type.TIMESTAMP and isinstance(value, int) and (value % _SECOND == 1 or value == _YEAR_10000):
        before = value - 1
    return (past, before) if before is not None else (at, value)
