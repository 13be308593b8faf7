"""Conditions as linear constraints that also hold for rounded arithmetic.

A condition counts as true if it is true as computed or in exact arithmetic (decision 38). The constraints of
a `LinearSystem` hold in both cases, for the exact values of the columns. A result of DOUBLE arithmetic is a
variable of its own, which is near the exact result: rounding to nearest changes it by at most 2^-53 of its
size, and never the order of two results. How near it is depends on the sign and the size of the result, which
linear programs find, and what they find makes others sharper.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from tamis.constraints.atoms import Linear, connected, linear
from tamis.constraints.formula import Sum
from tamis.constraints.linear.conjunctions import Projection, range_of, satisfiable
from tamis.constraints.theory import Interval
from tamis.expressions.nodes import (
    FLIPPED,
    LARGEST_EXACT_INTEGER,
    Call,
    Column,
    Expr,
    Literal,
    Type,
    columns,
    conjuncts,
)
from tamis.expressions.step_conditions import on_argument

_ROUNDING = Fraction(1, 2**53)
# Products and quotients below 2^-1022 are rounded to multiples of 2^-1074. A larger error that has fewer
# digits makes exact arithmetic several times as fast.
_UNDERFLOW = Fraction(1, 2**128)
_ROUNDS = 6  # of sharpening: one for each operation on the way from one column to another


@dataclass(frozen=True)
class _Rounded:
    """An operation on DOUBLEs: the variable of its exact result, and that of the result that is used."""

    exact: str
    used: str
    underflows: bool


@dataclass(frozen=True)
class Sharpened:
    """Constraints on columns and results that some values meet.

    `near` has those that are connected with results of rounded operations, and `far` has the others.
    """

    rows: tuple[Linear, ...]
    near: Projection
    far: Projection

    def ranges(self, names: Collection[str]) -> dict[str, Interval]:
        """The range of each of these variables."""
        near, far = self.near.ranges(names) or {}, self.far.ranges(names) or {}
        return {name: near[name] if name in self.near.variables else far[name] for name in names}


class LinearSystem:
    """Linear constraints of conditions. `ends` has the least and the greatest value of a column, if known."""

    def __init__(self, ends: Callable[[Column], tuple[float, float]]) -> None:
        self._ends = ends
        self._columns: dict[str, Column] = {}
        self._rows: list[Linear] = []
        self._rounded: list[_Rounded] = []
        self._false = False
        self._of_column: dict[str, list[Linear]] = {}  # the constraints of its declared ends
        # By the identity of each condition: the condition, its constraints, and its operations.
        self._of_condition: dict[int, tuple[Expr, list[Linear], list[_Rounded]]] = {}

    @property
    def columns(self) -> Mapping[str, Column]:
        """The columns of the constraints, by the names of their variables."""
        return self._columns

    def add(self, condition: Expr) -> bool:
        """Add a condition without AND; False if nothing linear follows from it, and nothing is added."""
        before = len(self._rows), len(self._rounded), dict(self._columns)
        found = self._compared(condition)
        if not found:
            del self._rows[before[0] :], self._rounded[before[1] :]
            self._columns = before[2]
        else:
            rows, rounded = self._rows[before[0] :], self._rounded[before[1] :]
            self._of_condition[id(condition)] = condition, rows, rounded
        return found

    def restricted(self, conditions: Iterable[Expr], others: Iterable[Column]) -> LinearSystem:
        """The system of some of the conditions that were added, and of the declared ends of other columns.

        Each has to be the same object that was added.
        """
        found = LinearSystem(self._ends)
        named = dict.fromkeys(others)
        for condition in conditions:
            known = self._of_condition.get(id(condition))
            if known is not None:
                named |= dict.fromkeys(columns(condition))
                found._rows += known[1]
                found._rounded += known[2]
        for column in named:
            name = f"{column.alias}.{column.name}"
            if name in self._columns:
                found._columns[name] = column
                found._rows += self._of_column[name]
        return found

    def variable(self, column: Column) -> str:
        """The name of the column's variable, which has the constraints of its declared ends."""
        name = f"{column.alias}.{column.name}"
        if name not in self._columns:
            self._columns[name] = column
            before = len(self._rows)
            for sign, end in zip((-1, 1), self._ends(column), strict=True):
                if math.isfinite(end):
                    self._less(Sum({name: Fraction(sign)}), "<=", Sum(constant=sign * Fraction(end)))
            self._of_column[name] = self._rows[before:]
        return name

    def rows(self) -> tuple[Linear, ...] | None:
        """The constraints on columns and results; None if they contradict each other."""
        found = self.sharpened()
        return None if found is None else found.rows

    def sharpened(self) -> Sharpened | None:
        """The constraints with what linear programs find; None if they contradict each other."""
        if self._false:
            return None
        names = [name for one in self._rounded for name in (one.exact, one.used)]
        # Cuts are constraints on these variables, so they say nothing about rows that are not connected.
        near = connected(self._rows, names)
        reached = {name for row in near for name in row.names}
        far = [row for row in self._rows if reached.isdisjoint(row.names)]
        if not satisfiable(far):
            return None
        cuts: tuple[Linear, ...] = ()
        for _ in range(_ROUNDS):
            projection = Projection((*near, *cuts))
            ranges = projection.ranges(names)
            if ranges is None:
                return None
            before, cuts = cuts, tuple(cut for one in self._rounded for cut in _cuts(one, ranges))
            if cuts == before:
                return Sharpened((*self._rows, *cuts), projection, Projection(far))
        rows = (*near, *cuts)
        return (
            Sharpened((*self._rows, *cuts), Projection(rows), Projection(far)) if satisfiable(rows) else None
        )

    def range(self, expr: Expr) -> Interval | None:
        """The range of a number under the constraints; None if the number isn't linear, or none is left."""
        found = self._operand(expr, False)
        rows = self.rows()
        if found is None or rows is None:
            return None
        result = "result"  # names of columns have a dot
        row = linear([*found.terms.items(), (result, Fraction(-1))], "=", -found.constant)
        return range_of((*rows, row), result) if isinstance(row, Linear) else None

    def _compared(self, condition: Expr) -> bool:
        if not isinstance(condition, Call) or condition.op not in ("<", "<=", "=", ">", ">="):
            return False
        if (of_argument := on_argument(condition, exact=True)) is not None:
            return all([self._compared(part) for part in conjuncts(of_argument)])
        (left, right), op = condition.args, condition.op
        if op in (">", ">="):
            left, right, op = right, left, FLIPPED[op]
        doubles = Type.DOUBLE in (left.type, right.type) and op != "="
        if isinstance(left, Call) and left.op == "abs" and op != "=":
            inner, limit = self._operand(left.args[0], doubles), self._operand(right, doubles)
            if inner is None or limit is None:
                return False
            self._less(inner, op, limit)
            self._less(inner.times(-1), op, limit)
            return True
        one, other = self._operand(left, doubles), self._operand(right, doubles)
        if one is None or other is None or not (one.terms or other.terms):
            return False
        self._less(one, op, other)
        return True

    def _less(self, left: Sum, op: str, right: Sum) -> None:
        if len(left.terms) + len(right.terms) == 1:
            # Most conditions limit one column: the row in normal form, without arithmetic on sums.
            ((name, factor),) = left.terms.items() or right.terms.items()
            factor = factor if left.terms else -factor
            sign = 1 if factor > 0 or op == "=" else -1
            limit = (right.constant - left.constant) / (factor * sign)
            self._rows.append(
                Linear(((name, sign),), "<" if op == "<" else "<=" if op == "<=" else "=", limit)
            )
            return
        difference = left.plus(right, -1)
        row = linear(
            difference.terms.items(), "<" if op == "<" else "<=" if op == "<=" else "=", -difference.constant
        )
        if isinstance(row, Linear):
            self._rows.append(row)
        elif not row:
            self._false = True

    def _operand(self, expr: Expr, double: bool) -> Sum | None:
        """The value of a number, converted to DOUBLE if `double`; None if it isn't linear."""
        if not (expr.type.numeric or expr.type.integral):
            return None
        found = self._sum(expr)
        if found is None or not double or expr.type is Type.DOUBLE:
            return found
        return found if self._small(found) else self._round(found, False)

    def _sum(self, expr: Expr) -> Sum | None:
        if isinstance(expr, Column):
            return Sum({self.variable(expr): Fraction(1)})
        if isinstance(expr, Literal):
            number = isinstance(expr.value, int | float) and not isinstance(expr.value, bool)
            return Sum(constant=Fraction(expr.value)) if number else None  # type: ignore[arg-type]
        double = expr.type is Type.DOUBLE
        args = [self._operand(arg, double) for arg in expr.args] if expr.op in _LINEAR else [None]
        if any(arg is None for arg in args):
            return None
        sums = [arg for arg in args if arg is not None]
        if expr.op == "neg":
            return sums[0].times(-1)
        one, other = sums
        if expr.op in ("+", "-"):
            found = one.plus(other, 1 if expr.op == "+" else -1)
            return self._round(found, False) if double else found
        if expr.op == "*":
            if one.terms and other.terms:
                return None
            found = one.times(other.constant) if one.terms else other.times(one.constant)
            return self._round(found, True) if double else found
        if other.terms or not other.constant:
            return None
        return self._round(one.times(1 / other.constant), True)

    def _small(self, whole: Sum) -> bool:
        """Tell if a sum of whole columns is certainly a whole number that every DOUBLE can have."""
        size = abs(whole.constant)
        for name, value in whole.terms.items():
            column = self._columns[name]
            low, high = self._ends(column)
            limit = max(abs(low), abs(high))
            if column.type is Type.INT:
                limit = min(limit, 2.0**31)
            if math.isinf(limit):
                return False
            size += abs(value) * Fraction(limit)
        return size <= LARGEST_EXACT_INTEGER

    def _round(self, result: Sum, underflows: bool) -> Sum:
        """The used result of an operation with an exact result."""
        if not result.terms and _is_double(result.constant):
            return result
        number = len(self._rounded)
        operation = _Rounded(f"t{number}", f"u{number}", underflows)
        self._rounded.append(operation)
        self._less(Sum({operation.exact: Fraction(1)}), "=", result)
        return Sum({operation.used: Fraction(1)})


_LINEAR = ("+", "-", "*", "/", "neg")


def _cuts(operation: _Rounded, ranges: Mapping[str, Interval]) -> Iterator[Linear]:
    """Constraints between the exact and the used result of an operation, by the ranges of the two."""
    exact, used = ranges[operation.exact], ranges[operation.used]
    t, u, tiny = operation.exact, operation.used, _UNDERFLOW if operation.underflows else Fraction(0)
    for sign in (1, -1):
        lower, upper = (
            (exact.lower, exact.upper) if sign > 0 else (_negative(exact.upper), _negative(exact.lower))
        )
        limit = used.upper if sign > 0 else _negative(used.lower)
        closed = used.upper_closed if sign > 0 else used.lower_closed
        if upper is not None and (rounded := nearest(upper)) is not None:
            yield _row({u: sign}, "<=", max(upper, rounded))
        if limit is not None and (end := _greatest_rounded_to(limit)) is not None:
            strict = not closed and _is_double(limit)
            yield _row({t: sign}, "<" if strict else "<=", limit if strict else max(limit, end))
        if lower is not None and lower >= 0:
            yield _row({u: sign, t: -sign * (1 + _ROUNDING)}, "<=", tiny)
            yield _row({u: -sign, t: sign * (1 - _ROUNDING)}, "<=", tiny)
        elif lower is not None and upper is not None and upper > 0:
            yield _row({u: sign, t: -sign}, "<=", _ROUNDING * max(upper, -lower) + tiny)


def _row(terms: Mapping[str, Fraction | int], op: str, constant: Fraction) -> Linear:
    row = linear(terms.items(), "<" if op == "<" else "<=", constant)
    assert isinstance(row, Linear)
    return row


def _negative(value: Fraction | None) -> Fraction | None:
    return None if value is None else -value


def nearest(value: Fraction) -> Fraction | None:
    """The DOUBLE to which a number is rounded; None if it overflows."""
    try:
        return Fraction(float(value))
    except OverflowError:
        return None


def _is_double(value: Fraction) -> bool:
    return nearest(value) == value


def _greatest_rounded_to(limit: Fraction) -> Fraction | None:
    """The greatest number that may be rounded to a DOUBLE of at most `limit`; None if that is any number."""
    rounded = nearest(limit)
    if rounded is None:
        return None
    below = float(rounded) if rounded <= limit else math.nextafter(float(rounded), -math.inf)
    above = math.nextafter(below, math.inf)
    if math.isinf(below) or math.isinf(above):
        return None
    return (Fraction(below) + Fraction(above)) / 2
