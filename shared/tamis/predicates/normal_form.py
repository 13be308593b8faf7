"""Disjunctive normal form: any condition of one stream as a list of boxes (kuntschke-2006, section 2.1)."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from itertools import chain

from tamis.errors import RefusedError
from tamis.expressions.evaluate import evaluate
from tamis.expressions.nodes import (
    COMPARISONS,
    FLIPPED,
    OPAQUE,
    OPPOSITE,
    Call,
    Column,
    Expr,
    Literal,
    Type,
)
from tamis.expressions.sql_text import to_sql
from tamis.expressions.step_conditions import on_argument
from tamis.predicates import differences, linear_forms
from tamis.predicates.boxes import EVERYTHING, Box, intersect, merged
from tamis.predicates.ranges import (
    IS_NULL,
    NOT_NULL,
    Range,
    compare,
    complement,
    intersection,
)

# The most clauses of a predicate while it is multiplied out: more take minutes, and nobody needs them.
BUDGET = 10_000


def boxes(condition: Expr, budget: int = BUDGET) -> list[Box]:
    """Boxes whose union is the set where `condition` is true: neither false nor NULL.

    Raises `RefusedError` past `budget` clauses, with their number, and for a condition that doesn't consist
    of comparisons of an attribute or a linear form with a constant, or of two attributes with a constant
    offset.
    """
    return _Reader(budget).read(condition, negated=False)


class _Reader:
    """Reads a condition. A NOT is moved inwards to the comparisons: De Morgan's laws also hold in
    three-valued logic.
    """

    def __init__(self, budget: int) -> None:
        self._budget = budget

    def read(self, expr: Expr, negated: bool) -> list[Box]:
        match _folded(expr):
            case Call("not", (inner,)):
                return self.read(inner, not negated)
            case Call("and" | "or" as op, args):
                parts = [self.read(arg, negated) for arg in args]
                return self._all(parts) if (op == "and") != negated else self._some(parts)
            case Call("is_null", (Column(name=name),)):
                return [{name: NOT_NULL if negated else IS_NULL}]
            case Call("is_null", (Call() as inner,)) if negated:
                known = _not_null(inner)
                if known is not None:
                    return known
            case Column(name=name, type=Type.BOOLEAN):
                return _where(name, compare("=", not negated, Type.BOOLEAN))
            case Literal(value=bool(value)):
                return [EVERYTHING] if value != negated else []
            case Literal(value=None):
                return []
            case Call(op, (one, other)) if op in COMPARISONS:
                of_argument = _on_argument(op, one, other, negated)
                if of_argument is not None:
                    return self.read(of_argument, negated=False)
                found = _comparison(op, one, other, negated)
                if found is not None:
                    return found
        raise RefusedError(
            f"'{to_sql(expr, qualify=False)}' is not a comparison of an attribute or a sum with a constant, "
            "or of two attributes",
            hint="write comparisons such as temp < 5, 2 * a + b > 5 or a < b + 3 with AND, OR, NOT, IN, "
            "BETWEEN and IS NULL",
        )

    def _some(self, parts: list[list[Box]]) -> list[Box]:
        count = sum(map(len, parts))
        self._check(count)
        return merged(chain.from_iterable(parts))

    def _all(self, parts: list[list[Box]]) -> list[Box]:
        out: list[Box] = [EVERYTHING]
        for part in sorted(_by_attribute(parts), key=len):
            self._check(len(out) * len(part))
            out = merged(both for one in out for other in part if (both := intersect(one, other)) is not None)
        return out

    def _check(self, count: int) -> None:
        if count > self._budget:
            raise RefusedError(
                f"the predicate has {count} clauses once it is multiplied out, more than {self._budget}",
                hint="split it into several queries",
            )


def _by_attribute(parts: Iterable[list[Box]]) -> list[list[Box]]:
    """Intersect all parts about one attribute at once, because a NOT IN has hundreds; other parts stay."""
    unions: dict[str, list[list[Range]]] = {}
    out: list[list[Box]] = []
    for part in parts:
        names = {name for box in part for name in box}
        if len(names) == 1 and all(part):
            (name,) = names
            unions.setdefault(name, []).append([box[name] for box in part])
        else:
            out.append(part)
    together: dict[str, Range] = {}
    for name, found in unions.items():
        ranges = intersection(found)
        if len(ranges) == 1:
            together[name] = ranges[0]
        else:
            out.append([{name: each} for each in ranges])
    return [[together], *out]


def _comparison(op: str, one: Expr, other: Expr, negated: bool) -> list[Box] | None:
    match one, other:
        case Column(), Literal():
            return _with_constant(op, one, other, negated)
        case Literal(), Column():
            return _with_constant(FLIPPED[op], other, one, negated)
    return _either(
        lambda: differences.comparison(op, one, other, negated),
        linear_forms.comparison(op, one, other, negated),
    )


def _not_null(expr: Call) -> list[Box] | None:
    return _either(lambda: differences.not_null(expr), linear_forms.not_null(expr))


def _either(compared: Callable[[], Sequence[Box] | None], linear: Sequence[Box] | None) -> list[Box] | None:
    """The boxes of a difference of two attributes, or else those of a linear form. Raises `RefusedError` as
    `differences` does if there are neither.
    """
    try:
        found = compared()
    except RefusedError:
        if linear is None:
            raise
        found = None
    found = linear if found is None else found
    return None if found is None else list(found)


def _on_argument(op: str, one: Expr, other: Expr, negated: bool) -> Expr | None:
    """The comparison of a function that rounds, such as floor(x) > 3, as one of the attribute."""
    if not (isinstance(one, Call) or isinstance(other, Call)):
        return None
    compared = Call(OPPOSITE[op] if negated else op, (one, other), Type.BOOLEAN)
    return on_argument(compared)


def _with_constant(op: str, column: Column, constant: Literal, negated: bool) -> list[Box]:
    value = constant.value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return []  # a comparison with NULL is never true, and neither is its negation
    found = compare(op, value, column.type)
    return _where(column.name, complement(found) if negated else found)


def _folded(expr: Expr) -> Expr:
    """The expression with each part that has no attributes replaced by its value: `2 * 3`, `1 = 1`."""
    if not isinstance(expr, Call) or expr.op in ("and", "or", "not", OPAQUE):
        return expr
    args = tuple(map(_folded, expr.args))
    same = all(map(operator.is_, args, expr.args))
    if not all(isinstance(arg, Literal) for arg in args):
        return expr if same else Call(expr.op, args, expr.type)
    return Literal(evaluate(Call(expr.op, args, expr.type), {}, 1).to_list()[0], expr.type)


def _where(name: str, ranges: tuple[Range, ...]) -> list[Box]:
    return [{name: found} for found in ranges]


def types_of(expr: Expr) -> dict[str, Type]:
    """The types of the columns of a condition, by name."""
    if isinstance(expr, Column):
        return {expr.name: expr.type}
    if isinstance(expr, Call):
        return {name: kind for arg in expr.args for name, kind in types_of(arg).items()}
    return {}
