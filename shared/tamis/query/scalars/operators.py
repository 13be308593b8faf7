"""Typed operators of SQL: type checks, implicit conversions of literals, and hints for type errors.

The types are those of `tamis.expressions.signatures`. The word NULL takes the type of the other operand, and
CAST(NULL AS DOUBLE) keeps its own. A string literal beside a TIMESTAMP is an ISO 8601 time, and a negated
number is a literal. Conditions that are never NULL (IS DISTINCT FROM, IS TRUE) consist of comparisons, IS
NULL, AND, OR and NOT, so that everything that reads conditions reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import ge, gt, le, lt
from typing import Any, ParamSpec

from sqlglot import exp

from tamis.declarations.units import parse_timestamp
from tamis.errors import InputError
from tamis.expressions.functions.bits import OPERATORS as BITS
from tamis.expressions.functions.entry import common_type
from tamis.expressions.nodes import FLIPPED, Call, Expr, Literal, Type
from tamis.expressions.signatures import result_type
from tamis.query.context import Context

# The word NULL, which has no type yet. Its identity tells it from CAST(NULL AS VARCHAR), which is equal.
NULL = Literal(None, Type.VARCHAR)
_SPANS = (Type.TIMESTAMP, Type.INTERVAL)
_BEYOND_BIGINT = 1 << 63
_ORDER: Mapping[str, Callable[[Any, Any], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}


P = ParamSpec("P")


class TypeMismatch(InputError):
    """A type error of an operator; the caller adds the position."""


def checked(
    context: Context, node: exp.Expr, build: Callable[P, Expr], *args: P.args, **kwargs: P.kwargs
) -> Expr | None:
    """The expression that `build` makes of its arguments; None after a type error, which is reported at
    `node`.
    """
    try:
        return build(*args, **kwargs)
    except TypeMismatch as mismatch:
        context.error(mismatch.what, node, mismatch.hint or "")
        return None


def is_null(expr: Expr) -> bool:
    """Tell if an expression is a constant NULL, with or without a type."""
    return isinstance(expr, Literal) and expr.value is None


def typed(expr: Expr, kind: Type) -> Expr:
    """`expr`, or a NULL of this type in place of the word NULL."""
    return Literal(None, kind) if expr is NULL else expr


def integer(value: int) -> Literal:
    """An integer literal; DOUBLE if it doesn't fit into 64 bits."""
    if -_BEYOND_BIGINT <= value < _BEYOND_BIGINT:
        return Literal(value, Type.INT if -(1 << 31) <= value < 1 << 31 else Type.BIGINT)
    return Literal(float(value), Type.DOUBLE)


def converted(expr: Expr, wanted: Type) -> Expr:
    """`expr` converted to `wanted` if SQL converts it implicitly, else unchanged."""
    if isinstance(expr, Literal):
        if expr.value is None:
            widens = expr.type in (Type.INT, Type.BIGINT) and wanted.numeric
            return Literal(None, wanted) if expr is NULL or widens else expr
        if wanted is Type.TIMESTAMP and isinstance(expr.value, str):
            return Literal(_parsed_time(expr.value), Type.TIMESTAMP)
        if wanted is Type.DOUBLE and expr.type in (Type.INT, Type.BIGINT):
            return Literal(float(expr.value), Type.DOUBLE)
    if wanted is Type.DOUBLE and expr.type in (Type.INT, Type.BIGINT):
        return Call("*", (expr, Literal(1.0, Type.DOUBLE)), Type.DOUBLE)
    if (
        wanted in (Type.INT, Type.BIGINT)
        and expr.type in (Type.INT, Type.BIGINT)
        and isinstance(expr, Literal)
    ):
        return replace(expr, type=wanted)
    return expr


def assigned(expr: Expr, wanted: Type, what: str) -> Expr:
    """`expr` as `what`, which is declared as `wanted`. Raises `TypeMismatch` if it can't be converted."""
    result = converted(expr, wanted)
    integers = (Type.INT, Type.BIGINT)
    if result.type is wanted or (wanted in integers and result.type in integers):
        return result
    raise TypeMismatch(f"{what} must be {wanted}, not {result.type}", hint=f"write a value of type {wanted}")


def condition(expr: Expr, what: str) -> Expr:
    """`expr` as the condition `what`. Raises `TypeMismatch` if it is no BOOLEAN."""
    expr = typed(expr, Type.BOOLEAN)
    if expr.type is not Type.BOOLEAN:
        bits = isinstance(expr, Call) and expr.op in BITS
        hint = "compare it with a value, such as " + ("x & 4 <> 0" if bits else "value > 5")
        raise TypeMismatch(f"{what} must be a condition, not {expr.type}", hint=hint)
    return expr


def operand(op: str) -> str:
    """An operand of AND, OR or NOT, for a message."""
    return "the operand of NOT" if op == "not" else f"an operand of {op.upper()}"


def logic(op: str, args: Sequence[Expr]) -> Expr:
    """AND, OR and NOT; nested ANDs and ORs become one."""
    parts: list[Expr] = []
    for arg in args:
        part = condition(arg, operand(op))
        parts.extend(part.args if op != "not" and isinstance(part, Call) and part.op == op else (part,))
    return Call(op, tuple(parts), Type.BOOLEAN)


def compare(op: str, left: Expr, right: Expr) -> Expr:
    """A comparison of numbers, or of two values of one type."""
    left, right = _comparable(left, right)
    if common_type([left.type, right.type]) is None:
        raise TypeMismatch(
            f"{left.type} can't be compared with {right.type}", hint=_comparison_hint(left, right)
        )
    if left.type is Type.BOOLEAN and op not in ("=", "!="):
        return _boolean_order(op, left, right)
    return Call(op, (left, right), Type.BOOLEAN)


def _boolean_order(op: str, left: Expr, right: Expr) -> Expr:
    """`<`, `<=`, `>` or `>=` of a BOOLEAN and a constant, without the order: FALSE comes before TRUE, so
    that the comparison holds for one value, for both or for none.
    """
    if isinstance(left, Literal):
        left, right, op = right, left, FLIPPED[op]
    if not isinstance(right, Literal):
        raise TypeMismatch(
            f"{op} can't compare two BOOLEAN values", hint="write = or !=, or compare with TRUE or FALSE"
        )
    if right.value is None:
        return Call("=", (left, right), Type.BOOLEAN)
    found = [value for value in (False, True) if _ORDER[op](value, right.value)]
    if len(found) == 1:
        return Call("=", (left, Literal(found[0], Type.BOOLEAN)), Type.BOOLEAN)
    # True for both values or for none, and NULL for NULL.
    return Call("or" if found else "and", (left, Call("not", (left,), Type.BOOLEAN)), Type.BOOLEAN)


def distinct(left: Expr, right: Expr) -> Expr:
    """`left IS DISTINCT FROM right`: the values differ, or just one of them is NULL."""
    if is_null(left) or is_null(right):
        return _present(right if is_null(left) else left)
    if isinstance(left, Literal) or isinstance(right, Literal):
        value, constant = (right, left) if isinstance(left, Literal) else (left, right)
        return logic("or", [compare("!=", value, constant), absent(value)])
    return Call("not", (same(left, right),), Type.BOOLEAN)


def same(left: Expr, right: Expr) -> Expr:
    """`left IS NOT DISTINCT FROM right`: the values are equal, or both are NULL."""
    if is_null(left) or is_null(right):
        return absent(right if is_null(left) else left)
    equal = compare("=", left, right)
    present = [_present(value) for value in (left, right) if not isinstance(value, Literal)]
    both = logic("and", [equal, *present])
    if len(present) < 2:
        return both
    return logic("or", [both, logic("and", [absent(left), absent(right)])])


def is_truth(value: Expr, truth: bool) -> Expr:
    """`value IS TRUE` or `value IS FALSE`."""
    part = condition(value, "the value before IS")
    wanted = part if truth else Call("not", (part,), Type.BOOLEAN)
    return logic("and", [wanted, _present(part)])


def absent(value: Expr) -> Expr:
    """`value IS NULL`."""
    return Call("is_null", (value,), Type.BOOLEAN)


def _present(value: Expr) -> Expr:
    return Call("not", (absent(value),), Type.BOOLEAN)


def in_order(low: Expr, high: Expr) -> bool:
    """Tell if two numbers are constants, the first of them not greater than the second."""
    if not isinstance(low, Literal) or not isinstance(high, Literal):
        return False
    numbers = low.type.numeric and high.type.numeric and not is_null(low) and not is_null(high)
    return numbers and bool(low.value <= high.value)  # type: ignore[operator]


def arithmetic(op: str, left: Expr, right: Expr) -> Expr:
    """`+ - * /` and power. Times and intervals can only be added and subtracted."""
    if left is NULL and right is NULL:
        left = right = Literal(None, Type.DOUBLE)
    left, right = _operand(left, right, op, first=True), _operand(right, left, op, first=False)
    types = (left.type, right.type)
    result = result_type(op, types)
    if result is None:
        symbol = {"power": "^", "mod": "%"}.get(op, op)
        what = f"{symbol} can't be applied to {left.type} and {right.type}"
        raise TypeMismatch(what, hint=_arithmetic_hint(types))
    return Call(op, (left, right), Type.BIGINT if result is Type.INT else result)


def negative(arg: Expr) -> Expr:
    """The unary minus."""
    if isinstance(arg, Literal) and isinstance(arg.value, int | float) and not isinstance(arg.value, bool):
        if arg.type is Type.DOUBLE:
            # 9223372036854775808 doesn't fit into 64 bits, but its negative does.
            whole = arg.value == float(_BEYOND_BIGINT)
            return Literal(-_BEYOND_BIGINT, Type.BIGINT) if whole else Literal(-arg.value, Type.DOUBLE)
        return replace(arg, value=-arg.value) if arg.type in _SPANS else integer(-int(arg.value))
    arg = typed(arg, Type.DOUBLE)
    if arg.type is Type.INTERVAL or arg.type.numeric:
        return Call("neg", (arg,), arg.type)
    raise TypeMismatch(f"- can't be applied to {arg.type}", hint="only numbers and intervals can be negated")


def case(parts: Sequence[tuple[Expr, Expr]], default: Expr | None) -> Expr:
    """CASE WHEN condition THEN value … ELSE value END; the values have one type."""
    values = unified([value for _, value in parts] + [default or NULL], "the values of CASE")
    flat: list[Expr] = []
    for (when, _), value in zip(parts, values, strict=False):
        flat += [condition(when, "the value after WHEN"), value]
    return Call("case", (*flat, values[-1]), values[-1].type)


def unified(values: Sequence[Expr], what: str) -> list[Expr]:
    """The values converted to their common type. Raises `TypeMismatch` if they have none."""
    types = {value.type for value in values if value is not NULL}
    # Without any type, all values are the word NULL; beside a TIMESTAMP, strings are times.
    times = types == {Type.TIMESTAMP, Type.VARCHAR}
    common = Type.TIMESTAMP if times else common_type(list(types) or [Type.VARCHAR])
    if common is None:
        shown = ", ".join(sorted(types))
        raise TypeMismatch(f"{what} have different types: {shown}", hint="write values of one type")
    return [assigned(value, common, "each of " + what) for value in values]


def extreme(name: str, args: Sequence[Expr]) -> Expr:
    """LEAST or GREATEST."""
    values = unified(args, f"the arguments of {name}")
    if all(value is NULL for value in args):
        values = [Literal(None, Type.DOUBLE) for _ in args]
    kind = values[0].type
    if not kind.numeric and kind not in _SPANS:
        raise TypeMismatch(
            f"{name} can't be applied to {kind}", hint=f"{name} takes numbers, times and intervals"
        )
    return Call(name, tuple(values), kind)


def _comparable(left: Expr, right: Expr) -> tuple[Expr, Expr]:
    if left is NULL or right.type is Type.TIMESTAMP:
        left = converted(left, right.type)
    if right is NULL or left.type is Type.TIMESTAMP:
        right = converted(right, left.type)
    return left, right


def _operand(expr: Expr, other: Expr, op: str, *, first: bool) -> Expr:
    """The word NULL or a string literal, converted to the type that `other` needs as the other operand."""
    if op == "-" and other.type is Type.TIMESTAMP and (first or expr is not NULL):
        return converted(expr, Type.TIMESTAMP)
    if other.type in _SPANS:
        return typed(expr, Type.INTERVAL if op in ("+", "-") else Type.BIGINT)
    return typed(expr, other.type if other.type.numeric else Type.DOUBLE)


def _parsed_time(text: str) -> int:
    try:
        return parse_timestamp(text)
    except InputError as error:
        raise TypeMismatch(error.what, hint=error.hint) from error


def _comparison_hint(left: Expr, right: Expr) -> str:
    kinds = {left.type, right.type}
    literal = any(isinstance(side, Literal) and side.type is Type.VARCHAR for side in (left, right))
    if Type.VARCHAR in kinds and literal:
        return (
            "write INTERVAL in front of the text"
            if Type.INTERVAL in kinds
            else "write the value without quotes, or compare a VARCHAR"
        )
    if Type.TIMESTAMP in kinds:
        return "compare it with a time such as '2026-01-31T12:00:00Z', or subtract another time from it first"
    if Type.INTERVAL in kinds:
        return "compare it with an interval such as INTERVAL '5 seconds'"
    if Type.BOOLEAN in kinds:
        return "a BOOLEAN is a condition by itself; compare it with TRUE or FALSE"
    return "compare values of one type"


def _arithmetic_hint(kinds: tuple[Type, Type]) -> str:
    if Type.TIMESTAMP in kinds or Type.INTERVAL in kinds:
        return "add or subtract an interval such as INTERVAL '5 seconds', or subtract two times"
    return "arithmetic needs numbers"
