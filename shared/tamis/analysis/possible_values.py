"""Possible values of an expression: an enclosure of what it can be, as computed and in exact arithmetic.

Enclosures are wider than need be, never narrower. They consist of an interval of numbers, of the values
themselves where there are few, of how texts begin, and of whether the value may be NULL. Rounding to nearest
never changes the order of two results. So the ends of intervals, moved outwards by one step, enclose the
exact result and the computed result.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from tamis.expressions.evaluate import evaluate
from tamis.expressions.exact.rounding import bound, certain
from tamis.expressions.functions.entry import FUNCTIONS, RealFunction, Steps
from tamis.expressions.nodes import (
    COMPARISONS,
    OPAQUE,
    OPPOSITE,
    Call,
    Column,
    Expr,
    Literal,
    Type,
)
from tamis.expressions.vectors import Vector

Known = bool | int | float | str

_LARGEST = 2.0**63
_FAR = 1e200  # rounding to digits may fall only beyond this size
_MOST_TUPLES = 200  # combinations of values for which an expression is evaluated
_MOST_POWER = 64
_STEPS_OF_LIBRARY = 4  # the C library's functions err by less than one unit in the last place
_PARTS = {
    **{"quarter": (1, 4), "month": (1, 12), "week": (1, 53), "day": (1, 31), "doy": (1, 366), "dow": (0, 6)},
    **{"isodow": (1, 7), "hour": (0, 23), "minute": (0, 59), "second": (0, 59), "year": (1, 9999)},
    **{"isoyear": (0, 10_000), "millisecond": (0, 59_999), "microsecond": (0, 59_999_999)},
}


@dataclass(frozen=True)
class Values:
    """Values of one type: numbers from `low` to `high`; `only`: the only ones, if known; `prefix`: how all
    texts begin. `null`: NULL is possible.
    """

    low: float = -math.inf
    high: float = math.inf
    only: frozenset[Known] | None = None
    prefix: str = ""
    null: bool = True

    @property
    def impossible(self) -> bool:
        """True if only NULL is left."""
        return self.low > self.high or self.only == frozenset()

    def both(self, other: Values) -> Values:
        """The values that are in both."""
        only = self.only
        if other.only is not None:
            only = other.only if only is None else only & other.only
        prefix = max(self.prefix, other.prefix, key=len)
        if not (prefix.startswith(self.prefix) and prefix.startswith(other.prefix)):
            only = frozenset()
        low, high = max(self.low, other.low), min(self.high, other.high)
        if only is not None:
            only = frozenset(one for one in only if _fits(one, low, high, prefix))
            numbers = [one for one in only if not isinstance(one, str | bool)]
            if numbers:
                low, high = max(low, _below(min(numbers))), min(high, _above(max(numbers)))
        return Values(low, high, only, prefix, self.null and other.null)

    def either(self, other: Values) -> Values:
        """The values that are in one of both, and some more."""
        null = self.null or other.null
        if self.impossible or other.impossible:
            return replace(other if self.impossible else self, null=null)
        only = self.only | other.only if self.only is not None and other.only is not None else None
        prefix = self.prefix if other.prefix.startswith(self.prefix) else ""
        return Values(min(self.low, other.low), max(self.high, other.high), only, prefix, null)


ANYTHING = Values()
NEVER = Values(math.inf, -math.inf)
TRUE, FALSE = Values(only=frozenset([True]), null=False), Values(only=frozenset([False]), null=False)


def _fits(value: Known, low: float, high: float, prefix: str) -> bool:
    if isinstance(value, str):
        return value.startswith(prefix)
    return isinstance(value, bool) or low <= value <= high


def literal(expr: Literal) -> Values:
    """The value of a constant."""
    value = expr.value
    if value is None:
        return NEVER
    if isinstance(value, str):
        return Values(only=frozenset([value]), prefix=value, null=False)
    if isinstance(value, bool):
        return Values(only=frozenset([value]), null=False)
    return Values(_below(value), _above(value), frozenset([value]), null=False)


def _below(value: int | float) -> float:
    """A DOUBLE that is not greater: a whole number beyond 2^53 may be no DOUBLE."""
    nearest = float(value)
    return nearest if nearest <= value else math.nextafter(nearest, -math.inf)


def _above(value: int | float) -> float:
    """A DOUBLE that is not less."""
    return -_below(-value)


def possible(expr: Expr, known: Mapping[Expr, Values]) -> Values:
    """The possible values of `expr`; `known` has those of columns and of other expressions."""
    if isinstance(expr, Literal):
        return literal(expr)
    given = known.get(expr, ANYTHING)
    if isinstance(expr, Column):
        return given
    args = [possible(arg, known) for arg in expr.args]
    found = _computed(expr, args)
    if expr.op not in ("case", OPAQUE) and all(arg.only is not None for arg in args):
        found = found.both(_evaluated(expr, args))
    return given.both(found)


def _evaluated(expr: Call, args: list[Values]) -> Values:
    """The values of an operator for all combinations of the few values of its arguments."""
    lists = [
        [*_of_type(arg.only or (), one.type), *([None] if arg.null else [])]
        for one, arg in zip(expr.args, args, strict=True)
    ]
    if math.prod(map(len, lists)) > _MOST_TUPLES:
        return ANYTHING
    tuples = list(itertools.product(*lists))
    if not tuples:
        return NEVER
    inner: list[Expr] = []
    vectors = {}
    for i, arg in enumerate(expr.args):
        if isinstance(arg, Literal):
            inner.append(arg)
            continue
        column = Column("", str(i), arg.type)
        inner.append(column)
        vectors["", str(i)] = Vector.from_list([one[i] for one in tuples], arg.type)
    alone = Call(expr.op, tuple(inner), expr.type)
    if certain(alone) is not None or bound(alone) is not None:
        return ANYTHING  # the exact value may be another one
    results = evaluate(alone, vectors, len(tuples)).to_list()
    values = [one for one in results if one is not None]
    null = len(values) < len(results)
    if not values:
        return replace(NEVER, null=null)
    if expr.type in (Type.VARCHAR, Type.BOOLEAN):
        return Values(only=frozenset(values), null=null)
    return Values(*_outward(float(min(values)), float(max(values))), frozenset(values), null=null)


def _of_type(values: Iterable[Known], kind: Type) -> list[Known]:
    """The values that a number of this type can have: 5 of a DOUBLE is 5.0."""
    if not (kind.numeric or kind.integral):
        return list(values)
    to: Callable[[Known], Known] = int if kind.integral else float
    return [to(one) for one in values if to(one) == one]


def _computed(expr: Call, args: list[Values]) -> Values:
    """The possible values of an operator by those of its arguments."""
    op = expr.op
    if op == "case":
        return _chosen(expr, args)
    if op == "coalesce":
        return _first(args)
    if expr.type is Type.BOOLEAN:
        return _condition(expr, args)
    if op in ("least", "greatest"):
        return _extreme(op, args)
    if any(arg.impossible for arg in args):
        return NEVER
    function = FUNCTIONS[op]
    if function.steps is not None:
        return _step(expr, function.steps, args[0])
    if function.real is not None:
        return Values(*_rising(function.real, args[0]))
    if op == "power":
        return _power(expr, args[0])
    rule = _RULES.get(op)
    if op == "*" and expr.args[0] == expr.args[1]:
        args = [Values(*_absolute(args[0]))] * 2
    if rule is not None:
        low, high = rule(*args)
        if expr.type.integral and op not in ("length", "date_trunc"):
            low, high = max(low, -_LARGEST), min(high, _LARGEST)
        return Values(-math.inf if math.isnan(low) else low, math.inf if math.isnan(high) else high)
    if op == "date_part":
        field = next(iter(args[0].only or ()), None)
        return Values(*_PARTS.get(str(field), (-math.inf, math.inf)))
    if op == "mod":
        return _remainder(expr, *args)
    return ANYTHING


def _condition(expr: Call, args: list[Values]) -> Values:
    op = expr.op
    if op == "is_null":
        (arg,) = args
        if arg.impossible:
            return TRUE
        return ANYTHING if arg.null else FALSE
    if op in ("and", "or"):
        every, some = op == "and", op == "or"
        found = {every} if all(_may_be(arg, every) for arg in args) else set()
        found |= {some} if any(_may_be(arg, some) for arg in args) else set()
        return Values(only=frozenset(found), null=any(arg.null for arg in args))
    if op == "not":
        (arg,) = args
        if arg.only is None:
            return ANYTHING
        return Values(only=frozenset(not one for one in arg.only), null=arg.null)
    if op in COMPARISONS:
        return _comparison(expr, *args)
    return ANYTHING


def _may_be(condition: Values, value: bool) -> bool:
    return condition.only is None or value in condition.only


def _comparison(expr: Call, a: Values, b: Values) -> Values:
    """TRUE is left out where it is impossible, and FALSE where it is."""
    if a.impossible or b.impossible:
        return NEVER
    null, op = a.null or b.null, expr.op
    kind = expr.args[0].type
    if kind is Type.VARCHAR or kind is Type.BOOLEAN:
        apart = a.both(b).impossible
        same = a.only is not None and a.only == b.only and len(a.only) == 1
        if op in ("=", "!="):
            found = {op == "!="} if apart else {op == "="} if same else {True, False}
            return Values(only=frozenset(found), null=null)
        return ANYTHING
    found = {outcome for outcome, what in ((True, op), (False, OPPOSITE[op])) if can_compare(what, a, b)}
    return Values(only=frozenset(found), null=null)


def can_compare(op: str, a: Values, b: Values) -> bool:
    """True unless no two numbers of `a` and `b` compare like this."""
    if op == "=":
        both = a.both(b)
        return not both.impossible
    if op == "!=":
        return not (a.low == a.high == b.low == b.high)
    if op in (">", ">="):
        a, b, op = b, a, {">": "<", ">=": "<="}[op]
    return a.low < b.high if op == "<" else a.low <= b.high


def _chosen(expr: Call, args: list[Values]) -> Values:
    found = replace(NEVER, null=False)
    for condition, value in zip(args[:-1:2], args[1:-1:2], strict=True):
        if _may_be(condition, True):
            found = found.either(value)
        if not condition.null and not _may_be(condition, False):
            return found
    return found.either(args[-1])


def _first(args: list[Values]) -> Values:
    found = replace(NEVER, null=False)
    for arg in args:
        found = found.either(replace(arg, null=False))
        if not arg.null:
            return found
    return replace(found, null=True)


def _extreme(op: str, args: list[Values]) -> Values:
    """LEAST or GREATEST, which leave out NULL."""
    given = [arg for arg in args if not arg.impossible]
    if not given:
        return NEVER
    certain_ones = [arg for arg in given if not arg.null]
    low, high = min(arg.low for arg in given), max(arg.high for arg in given)
    if certain_ones and op == "least":
        high = min(arg.high for arg in certain_ones)
    elif certain_ones:
        low = max(arg.low for arg in certain_ones)
    return Values(low, high, null=not certain_ones)


def _step(expr: Call, steps: Steps, number: Values) -> Values:
    """The values of a function that never falls, from its values at the ends."""
    far = max(abs(number.low), abs(number.high)) > _FAR
    if any(isinstance(digits, Literal) and (far or int(digits.value or 0) < 0) for digits in expr.args[1:]):
        return ANYTHING
    ends = []
    for end in (number.low, number.high):
        column = Column("", "x", Type.DOUBLE)
        if math.isinf(end) or expr.args[0].type is not Type.DOUBLE:
            ends.append(math.copysign(1.0, end) if expr.op == "sign" and end else end)
            continue
        inside = Call(expr.op, (column, *expr.args[1:]), expr.type)
        (value,) = evaluate(inside, {("", "x"): Vector.from_list([end], Type.DOUBLE)}, 1).to_list()
        ends.append(end if value is None else float(value))
    low, high = ends
    if (limit := steps.limit) is not None:
        low, high = max(low, -float(limit)), min(high, float(limit))
    return Values(low, high)


def _power(expr: Call, number: Values) -> Values:
    """The power of a number with a constant whole exponent."""
    exponent = expr.args[1].value if isinstance(expr.args[1], Literal) else None
    if not isinstance(exponent, int | float) or exponent not in range(1, _MOST_POWER + 1):
        return ANYTHING
    n = int(exponent)
    low, high = (number.low, number.high) if n % 2 else _absolute(number)

    def raised(x: float) -> float:
        return float(x**n)

    return Values(*_outward(_value(raised, low), _value(raised, high), _STEPS_OF_LIBRARY))


def _remainder(expr: Call, a: Values, b: Values) -> Values:
    """The remainder has the sign of the number, and is smaller than the divisor."""
    size = max(abs(b.low), abs(b.high))
    if expr.type.integral:
        size = max(size - 1, 0.0)
    low, high = max(-size, min(a.low, 0.0)), min(size, max(a.high, 0.0))
    return Values(low, high)


def _outward(low: float, high: float, steps: int = 1) -> tuple[float, float]:
    for _ in range(steps):
        low, high = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
    return low, high


def _exactly(value: float) -> bool:
    return value == math.floor(value) and abs(value) < 2.0**53 if math.isfinite(value) else False


def _ends(of: Callable[[float, float], float], a: Values, b: Values) -> tuple[float, float]:
    """The least and the greatest result of * and / over the ends; infinite ends are limits."""
    found = [of(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    if any(map(math.isnan, found)):
        return -math.inf, math.inf
    low, high = min(found), max(found)
    whole = all(map(_exactly, (a.low, a.high, b.low, b.high, low, high)))
    return (low, high) if whole else _outward(low, high)


def _times(x: float, y: float) -> float:
    return 0.0 if x == 0.0 or y == 0.0 else x * y


def _add(a: Values, b: Values) -> tuple[float, float]:
    low, high = a.low + b.low, a.high + b.high
    whole = all(map(_exactly, (a.low, a.high, b.low, b.high, low, high)))
    return (low, high) if whole else _outward(low, high)


def _negated(a: Values) -> Values:
    return Values(-a.high, -a.low)


def _divide(a: Values, b: Values) -> tuple[float, float]:
    if b.low <= 0.0 <= b.high:
        return -math.inf, math.inf
    return _ends(operator.truediv, a, b)


def _absolute(a: Values) -> tuple[float, float]:
    inside = a.low <= 0.0 <= a.high
    return 0.0 if inside else min(abs(a.low), abs(a.high)), max(abs(a.low), abs(a.high))


def _rising(rules: RealFunction, a: Values) -> tuple[float, float]:
    """The values of a function of the C library that never falls."""
    if a.high < rules.least:
        return math.inf, -math.inf
    ends = _value(rules.scalar, max(a.low, rules.least)), _value(rules.scalar, a.high)
    low, high = _outward(*ends, _STEPS_OF_LIBRARY)
    return max(low, rules.lowest), high


def _value(of: Callable[[float], float], x: float) -> float:
    """The value at an end; an infinity where it overflows, and at the end of the domain of a logarithm."""
    try:
        return of(x)
    except OverflowError:
        return math.copysign(math.inf, x)
    except ValueError:
        return -math.inf


def _length(_: Values) -> tuple[float, float]:
    return 0.0, math.inf


_DAYS_OF_YEAR = 366 * 86_400e6

_RULES: dict[str, Callable[..., tuple[float, float]]] = {
    "+": _add,
    "-": lambda a, b: _add(a, _negated(b)),
    "*": lambda a, b: _ends(_times, a, b),
    "/": _divide,
    "neg": lambda a: (-a.high, -a.low),
    "abs": _absolute,
    "length": _length,
    "epoch": lambda a: _outward(a.low / 1e6, a.high / 1e6, _STEPS_OF_LIBRARY),
    "date_trunc": lambda _, a: (a.low - _DAYS_OF_YEAR, a.high),
}
