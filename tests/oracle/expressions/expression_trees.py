"""Oracle of expressions: random well-typed trees and columns, evaluated row by row in plain Python.

Nothing of `tamis.expressions` but the nodes is used here: NULL is None, integers are Python's, doubles go
through the math module.
"""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Protocol, TypeVar

from tests.oracle.expressions.text_and_time import computed

from tamis.expressions.functions.bits import OPERATORS as BITS
from tamis.expressions.functions.entry import FUNCTIONS
from tamis.expressions.nodes import COMPARISONS, Call, Column, Expr, Literal, Type

T = TypeVar("T")
Value = float | int | str | bool | None
Row = Mapping[tuple[str, str], Value]

COLUMNS = tuple(
    Column(alias, name, type_)
    for alias in ("a", "b")
    for name, type_ in (
        ("d", Type.DOUBLE),
        ('Say "x"', Type.DOUBLE),
        ("i", Type.BIGINT),
        ("n", Type.INT),
        ("flag", Type.BOOLEAN),
        ("order", Type.VARCHAR),
        ("x", Type.DOUBLE),
        ("ts", Type.TIMESTAMP),
    )
)
LEAST, MOST = -(2**63), 2**63 - 1
# Functions of the C library of one number.
REAL = tuple(name for name, function in FUNCTIONS.items() if function.real is not None)
DOUBLES = (
    *(0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.0, 3.0, 100.0, 0.1, 1 / 3, 17.625, 243.04, 709.78, -745.2),
    *(5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, -1.7976931348623157e308),
    *(1e154, -1e200, 1e-200, 2.0**53, 2.0**53 + 2, 2.0**63, -(2.0**63)),
)
INTEGERS = (
    *(0, 1, -1, 2, 3, 7, -10, 100, LEAST, LEAST + 1, MOST, MOST - 1, 2**62, -(2**62), 2**32, 2**31 - 1),
    *(2**53, 2**53 + 1, -(2**53) - 1, 3_037_000_499, 3_037_000_500, -3_037_000_500, 1_700_000_000_000_000),
)
TEXTS = (
    "",
    "a",
    "b",
    "ab",
    "A",
    "é",
    "z",
    "\U0001f600",
    "\uffff",
    "it's",
    "NULL",
    "a\0b",
    '"',
    "\\'",
    "\n",
    "\u00a0 x",
    *("Straße", "ΑΣ", "İ", "ŉ", "ᾳ", "a%b", "12", "-0.5e3", "+.5", "1e400", " 7", "1_0", "0x1F"),
)
PATTERNS = (
    *(("", ""), ("%", ""), ("a%", ""), ("%b", ""), ("_", ""), ("%a%b%", ""), ("a_b", ""), ("é%", "")),
    *(("%_%_%", ""), ("1%", ""), ("!%%", "!"), ("!!%", "!"), ("a!_b%", "!"), ("%#_", "#"), ("\\%", "")),
)
FIELDS = (
    *("year", "quarter", "month", "week", "day", "doy", "dow", "isodow", "isoyear"),
    *("hour", "minute", "second", "millisecond", "microsecond"),
)
UNITS = (*FIELDS[:5], *FIELDS[-5:])
SPANS = (0, 1, -1, 30_000_000, -5_000_000, 90_000_000, 1_500_000, 86_400_000_000, LEAST, MOST)


class Choices(Protocol):
    """A source of random choices: a seeded generator, or hypothesis, which shrinks its choices."""

    def one_of(self, items: Sequence[T]) -> T: ...

    def double(self) -> float: ...

    def integer(self) -> int: ...


class Seeded:
    """`Choices` of a random generator."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)

    def one_of(self, items: Sequence[T]) -> T:
        return self.random.choice(items)

    def double(self) -> float:
        r = self.random
        ways: tuple[Callable[[], float], ...] = (
            lambda: r.choice(DOUBLES),
            lambda: r.uniform(-10, 10),
            lambda: r.uniform(0, 100),
            lambda: math.copysign(math.exp(r.uniform(-700, 700)), r.uniform(-1, 1)),
            lambda: float(r.randint(-5, 5)),
        )
        return r.choice(ways)()

    def integer(self) -> int:
        r = self.random
        ways: tuple[Callable[[], int], ...] = (
            lambda: r.choice(INTEGERS),
            lambda: r.randint(-5, 5),
            lambda: r.randint(LEAST, MOST),
        )
        return r.choice(ways)()


def value(choose: Choices, type_: Type) -> Value:
    """A value of that type, one in eight NULL."""
    if choose.one_of(range(8)) == 7:
        return None
    if type_ is Type.DOUBLE:
        return choose.double()
    if type_ is Type.BOOLEAN:
        return choose.one_of((True, False))
    if type_ is Type.VARCHAR:
        return choose.one_of(TEXTS)
    return choose.one_of(SPANS) if type_ is Type.INTERVAL else choose.integer()


def rows(choose: Choices, count: int) -> list[Row]:
    """Random rows of all of `COLUMNS`."""
    return [{(c.alias, c.name): value(choose, c.type) for c in COLUMNS} for _ in range(count)]


def tree(choose: Choices, type_: Type, depth: int) -> Expr:
    """A random well-typed expression of that type, at most `depth` deep."""
    if depth <= 1 or choose.one_of(range(6)) == 5:
        return _leaf(choose, type_)
    numbers = (Type.DOUBLE, Type.DOUBLE, Type.BIGINT, Type.INT)

    def sub(wanted: Type) -> Expr:
        return tree(choose, wanted, depth - 1)

    def several(wanted: Sequence[Type]) -> tuple[Expr, ...]:
        return tuple(sub(choose.one_of(wanted)) for _ in range(choose.one_of((1, 2, 2, 3))))

    kind = choose.one_of((0, 1, 2, 2, 2, 2, 2, 2))
    if kind == 0:
        args: list[Expr] = []
        for _ in range(choose.one_of((1, 1, 2))):
            args += [sub(Type.BOOLEAN), sub(type_)]
        # Where the result is a DOUBLE an integer may be among the values.
        other = Type.BIGINT if type_ is Type.DOUBLE and choose.one_of(range(2)) else type_
        return Call("case", (*args, sub(other)), type_)
    if kind == 1 and type_ is not Type.BOOLEAN:
        first = (sub(type_),)
        rest = numbers if type_ is Type.DOUBLE else (type_,)
        return Call(choose.one_of(("least", "greatest", "coalesce")), first + several(rest), type_)
    if type_ is Type.BOOLEAN:
        return _condition(choose, sub, several)
    if type_ is Type.DOUBLE:
        op = choose.one_of(
            (
                "+",
                "-",
                "*",
                "/",
                "/",
                "power",
                "neg",
                "abs",
                *REAL,
                "step",
                "step",
                "mod",
                "to_double",
                "epoch",
            )
        )
        if op == "to_double":
            return Call(op, (sub(Type.VARCHAR),), type_)
        if op == "epoch":
            return Call(op, (sub(choose.one_of((Type.TIMESTAMP, Type.INTERVAL))),), type_)
        if op == "step":
            return _step(choose, sub)
        if op in ("neg", "abs"):
            return Call(op, (sub(Type.DOUBLE),), type_)
        if op in REAL:
            return Call(op, (sub(choose.one_of(numbers)),), type_)
        if op in ("/", "power"):
            return Call(op, (sub(choose.one_of(numbers)), sub(choose.one_of(numbers))), type_)
        mixed = [sub(Type.DOUBLE), sub(choose.one_of(numbers))]
        return Call(op, tuple(mixed if choose.one_of((0, 1)) else mixed[::-1]), type_)
    if type_ is Type.TIMESTAMP and choose.one_of(range(3)) == 0:
        if choose.one_of((0, 1)):
            return Call("to_timestamp", (sub(choose.one_of(numbers)),), type_)
        unit = Literal(choose.one_of(UNITS), Type.VARCHAR)
        return Call("date_trunc", (unit, sub(type_)), type_)
    if type_ is Type.TIMESTAMP:
        ways = (("+", Type.TIMESTAMP, Type.INTERVAL), ("-", Type.TIMESTAMP, Type.INTERVAL))
        op, left, right = choose.one_of((*ways, ("+", Type.INTERVAL, Type.TIMESTAMP)))
        return Call(op, (sub(left), sub(right)), type_)
    if type_ is Type.INTERVAL:
        op = choose.one_of(("+", "-", "-", "neg", "abs", "*"))
        if op in ("neg", "abs"):
            return Call(op, (sub(type_),), type_)
        if op == "*":
            return Call(op, (sub(type_), sub(Type.BIGINT)), type_)
        wanted = Type.TIMESTAMP if op == "-" and choose.one_of(range(2)) else type_
        return Call(op, (sub(wanted), sub(wanted)), type_)
    if type_ is Type.VARCHAR:
        return _text(choose, sub)
    if type_ is Type.BIGINT and choose.one_of(range(4)) == 0:
        if choose.one_of(range(4)) == 0:
            return Call("to_whole", (sub(Type.VARCHAR),), type_)
        if choose.one_of((0, 1)):
            return Call("length", (sub(Type.VARCHAR),), type_)
        return Call("date_part", (Literal(choose.one_of(FIELDS), Type.VARCHAR), sub(Type.TIMESTAMP)), type_)
    op = choose.one_of(("+", "-", "*", "neg", "abs", "mod", "cast", "bits"))
    if op == "bits":
        op = choose.one_of(BITS)
        by = (
            Literal(choose.one_of((0, 1, 2, 31, 62, 63, 64, -1, LEAST)), type_)
            if choose.one_of((0, 1))
            else sub(type_)
        )
        return Call(op, (sub(type_),) if op == "~" else (sub(type_), by), type_)
    if op == "cast":
        if type_ is Type.BIGINT:
            return Call("to_bigint", (sub(Type.DOUBLE),), type_)
        return Call(choose.one_of(("sign", "to_int")), (sub(choose.one_of(numbers)),), type_)
    count = 1 if op in ("neg", "abs") else 2
    return Call(op, tuple(sub(type_) for _ in range(count)), type_)


def _text(choose: Choices, sub: Callable[[Type], Expr]) -> Expr:
    op = choose.one_of(("lower", "upper", "trim", "ltrim", "rtrim", "substring", "||", "cast", "cast"))
    if op == "substring":
        wanted: tuple[Type, ...] = (Type.VARCHAR, Type.BIGINT, Type.BIGINT)
        places = tuple(
            Literal(choose.one_of((-3, -1, 0, 1, 2, 5, LEAST, MOST)), t) if choose.one_of((0, 1)) else sub(t)
            for t in wanted[1 : choose.one_of((2, 3))]
        )
        return Call(op, (sub(Type.VARCHAR), *places), Type.VARCHAR)
    if op == "||":
        return Call(op, (sub(Type.VARCHAR), sub(Type.VARCHAR)), Type.VARCHAR)
    if op == "cast":
        of = choose.one_of((Type.DOUBLE, Type.BIGINT, Type.BOOLEAN, Type.TIMESTAMP))
        return Call("time_to_varchar" if of is Type.TIMESTAMP else "to_varchar", (sub(of),), Type.VARCHAR)
    characters = (sub(Type.VARCHAR),) if "trim" in op and choose.one_of((0, 1)) else ()
    return Call(op, (sub(Type.VARCHAR), *characters), Type.VARCHAR)


def _step(choose: Choices, sub: Callable[[Type], Expr]) -> Expr:
    op = choose.one_of(("floor", "ceil", "trunc", "round", "round"))
    digits: tuple[Expr, ...] = ()
    if op == "round" and choose.one_of(range(2)):
        digits = (Literal(choose.one_of((-22, -3, -1, 0, 1, 2, 5, 22)), Type.INT),)
    integer = op in ("floor", "ceil") and choose.one_of(range(3)) == 0
    return Call(op, (sub(Type.BIGINT if integer else Type.DOUBLE), *digits), Type.DOUBLE)


def _leaf(choose: Choices, type_: Type) -> Expr:
    columns = [c for c in COLUMNS if c.type is type_]
    of_column = choose.one_of(range(3)) > 0
    if columns and of_column:
        return choose.one_of(columns)
    return Literal(value(choose, type_), type_)


def _condition(
    choose: Choices, sub: Callable[[Type], Expr], several: Callable[[Sequence[Type]], tuple[Expr, ...]]
) -> Expr:
    op = choose.one_of(("and", "or", "not", "is_null", "like", *COMPARISONS))
    if op == "like":
        pattern, escape = choose.one_of(PATTERNS)
        texts = (Literal(pattern, Type.VARCHAR), *([Literal(escape, Type.VARCHAR)] if escape else []))
        return Call(op, (sub(Type.VARCHAR), *texts), Type.BOOLEAN)
    if op in ("and", "or"):
        return Call(op, several((Type.BOOLEAN,)), Type.BOOLEAN)
    if op == "not":
        return Call(op, (sub(Type.BOOLEAN),), Type.BOOLEAN)
    type_ = choose.one_of(tuple(Type))
    if op == "is_null":
        return Call(op, (sub(type_),), Type.BOOLEAN)
    other = choose.one_of((Type.DOUBLE, Type.BIGINT, Type.INT)) if type_.numeric else type_
    return Call(op, (sub(type_), sub(other)), Type.BOOLEAN)


_COMPARE: dict[str, Callable[..., bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_NUMBERS: dict[str, Callable[..., float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "neg": operator.neg,
    "abs": abs,
    "power": math.pow,
    **{name: function.real.scalar for name, function in FUNCTIONS.items() if function.real},
    "floor": lambda x: _whole(x, math.floor),
    "ceil": lambda x: _whole(x, math.ceil),
    "trunc": lambda x: _whole(x, math.trunc),
    "round": lambda x, digits=0: half_away(x, digits),
    "mod": lambda a, b: math.fmod(a, b) if isinstance(a, float) else _remainder(a, b),
    "sign": lambda x: (x > 0) - (x < 0),
    "to_int": lambda x: _within(round(x), 31),
    "to_bigint": lambda x: _within(round(x), 63),
}


def _whole(x: float, nearest: Callable[[float], int]) -> float:
    return math.copysign(float(nearest(x)), x)


def half_away(x: float, digits: int) -> float:
    """ROUND of a DOUBLE: a half away from zero, of the scaled number."""
    scale = float(10 ** abs(digits))
    scaled = x * scale if digits >= 0 else x / scale
    if math.isinf(scaled):
        return x
    nearest = math.copysign(float(math.floor(abs(Fraction(scaled)) + Fraction(1, 2))), x)
    out = nearest / scale if digits >= 0 else nearest * scale
    return 0.0 if math.isinf(out) else out


def _within(whole: int, bits: int) -> int:
    if not -(2**bits) <= whole < 2**bits:
        raise OverflowError
    return whole


def _remainder(a: int, b: int) -> int:
    size = abs(a) % abs(b)
    return size if a >= 0 else -size


def meaning(expr: Expr, row: Row) -> Value:
    """The value of `expr` in one row, as `nodes` defines it."""
    if isinstance(expr, Column):
        return row[expr.alias, expr.name]
    if isinstance(expr, Literal):
        return expr.value
    if expr.op == "case":
        return _as(expr.type, _case(expr, row))
    args = [meaning(arg, row) for arg in expr.args]
    if expr.op == "is_null":
        return args[0] is None
    if expr.op == "and":
        return False if False in args else None if None in args else True
    if expr.op == "or":
        return True if True in args else None if None in args else False
    if expr.op in ("least", "greatest"):
        known = [_as(expr.type, arg) for arg in args if arg is not None]
        best = min if expr.op == "least" else max
        return best(known) if known else None  # type: ignore[type-var]
    if expr.op == "coalesce":
        return next((_as(expr.type, arg) for arg in args if arg is not None), None)
    if None in args:
        return None
    if FUNCTIONS[expr.op].computed:
        return computed(expr.op, args)  # type: ignore[no-any-return]
    if expr.op == "not":
        return not args[0]
    if expr.op in ("=", "!="):
        return _COMPARE[expr.op](*args)  # by value: 2^53 + 1 is no DOUBLE
    doubles = any(arg.type is Type.DOUBLE for arg in expr.args) or expr.type is Type.DOUBLE
    if doubles:
        args = (
            [_as(Type.DOUBLE, args[0]), *args[1:]]
            if expr.op == "round"
            else [_as(Type.DOUBLE, arg) for arg in args]
        )
    if expr.op in COMPARISONS:
        return _COMPARE[expr.op](*args)
    try:
        result = _NUMBERS[expr.op](*args)
    except (ValueError, OverflowError, ZeroDivisionError):
        return None
    if expr.type is Type.DOUBLE:
        return result if math.isfinite(result) else None
    return result if LEAST <= result <= MOST else None


def _case(expr: Call, row: Row) -> Value:
    for condition, then in zip(expr.args[:-1:2], expr.args[1::2], strict=True):
        if meaning(condition, row) is True:
            return meaning(then, row)
    return meaning(expr.args[-1], row)


def _as(type_: Type, item: Value) -> Value:
    return float(item) if type_ is Type.DOUBLE and item is not None else item
