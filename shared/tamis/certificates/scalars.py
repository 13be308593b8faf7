"""The scalar of a stream: the one number through which the stream enters a condition.

There may be several candidates, which are tried in this order:

1. The largest sub-expressions of the stream's own attributes, if they are all the same up to a factor and a
   constant. The terms of one stream in a sum are put together: `a.x + b.y - a.z > 3` has the scalar a.x -
   a.z. The same is done with factors in a product: `a.x * b.x * a.y` has a.x * a.y.
2. Smaller sub-expressions, down to a single attribute, if the stream enters the condition only through the
   sub-expression.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from tamis.expressions import python_functions
from tamis.expressions.nodes import (
    COMPARISONS,
    LARGEST_EXACT_INTEGER,
    Call,
    Column,
    Expr,
    Literal,
    Type,
    columns,
)
from tamis.expressions.signatures import call
from tamis.expressions.sql_text import to_sql

Factor = tuple[Expr, int]  # 1 in the numerator, -1 in the denominator

Term = tuple[Fraction, Expr]
MOST_REPLACED = 200_000  # parts of conditions that are copied in search of scalars: a second
MOST_CANDIDATES = 12  # each is proved, or not
_MOST_PARTS = 4  # DOUBLEs whose sum is one constant


@dataclass(frozen=True)
class Product:
    """constant * own factors * the other factors. The order of the factors does not depend on how the product
    was written.
    """

    constant: Fraction
    own: tuple[Factor, ...]
    rest: tuple[Factor, ...]


def product(expr: Expr, own: Callable[[Expr], bool], constant: Callable[[Expr], Fraction | None]) -> Product:
    """Take a product apart. `own` says which factors are the stream's."""
    total = Fraction(1)
    mine: list[Factor] = []
    rest: list[Factor] = []
    for factor, sign in factors(expr):
        value = constant(factor)
        if value:
            total = total * value if sign > 0 else total / value
        else:
            (mine if own(factor) else rest).append((factor, sign))
    return Product(total, _ordered(mine), _ordered(rest))


def _ordered(parts: list[Factor]) -> tuple[Factor, ...]:
    return tuple(sorted(parts, key=lambda part: (-part[1], repr(part[0]))))


def factors(expr: Expr) -> list[Factor]:
    """The factors of nested products and quotients. A product of integers inside one of doubles stays one
    factor, because it can overflow where the product of doubles does not.
    """
    if not isinstance(expr, Call) or expr.op not in ("*", "/"):
        return [(expr, 1)]
    if expr.op == "*" and expr.type is not Type.DOUBLE and any(_is_product(arg) for arg in expr.args):
        return [(expr, 1)]
    left, right = (factors(arg) if arg.type is expr.type else [(arg, 1)] for arg in expr.args)
    if expr.op == "/" and any(sign < 0 for _, sign in right):
        # a / (b / x) is NULL where x is 0, and a * x / b isn't.
        right = [(expr.args[1], 1)]
    return [*left, *((factor, -sign if expr.op == "/" else sign) for factor, sign in right)]


def _is_product(expr: Expr) -> bool:
    return isinstance(expr, Call) and expr.op == "*"


def multiplied(parts: tuple[Factor, ...], start: Expr | None = None) -> Expr:
    """start * the factors, divided by those in the denominator; 1 if there is nothing."""
    out = start
    for factor, sign in parts:
        if out is None:
            out = factor if sign > 0 else call("/", Literal(1.0, Type.DOUBLE), factor)
        else:
            out = call("*" if sign > 0 else "/", out, factor)
    return Literal(1.0, Type.DOUBLE) if out is None else out


@dataclass(frozen=True)
class Scalar:
    """`value` is the stream's scalar; `conditions` are the conjuncts with `variable` in its place.

    `sums` and `products` were regrouped. The sizes of all their parts together must not overflow: otherwise
    NULL would depend on the order of adding or multiplying.
    """

    value: Expr
    variable: Column
    conditions: tuple[Expr, ...]
    sums: tuple[tuple[Term, ...], ...] = ()
    products: tuple[tuple[Factor, ...], ...] = ()


def candidates(conditions: tuple[Expr, ...], alias: str, fixed: frozenset[Column]) -> list[Scalar]:
    """The scalars of the source `alias`. Its columns in `fixed` are treated as columns of other streams,
    because they are in the omission key.
    """
    found: list[Scalar] = []
    # What is inside a Python function comes first: the function is then only called for retained tuples.
    for outside in (True, False) if any(python_functions.calls(*conditions)) else (True,):
        _add(found, conditions, _Grouping(alias, fixed, outside))
    return found


def _add(found: list[Scalar], conditions: tuple[Expr, ...], grouping: _Grouping) -> None:
    """Add the scalars of one way of grouping that aren't yet in `found`."""
    grouped = tuple(grouping.rewrite(condition) for condition in conditions)
    if len(grouping.values) == 1 and all(grouping.values[0] != scalar.value for scalar in found):
        found.append(
            Scalar(
                grouping.values[0],
                grouping.variable(0),
                grouped,
                tuple(grouping.sums),
                tuple(grouping.products),
            )
        )
    size = sum(1 for condition in conditions for _ in subexpressions(condition))
    # Replacing a value walks over all conditions: of thousands of values only some are tried.
    for value in _own_subexpressions(conditions, grouping)[: max(1, MOST_REPLACED // size)]:
        if len(found) == MOST_CANDIDATES:
            break
        if any(value == scalar.value for scalar in found):
            continue
        variable = Column("", "x", value.type)
        replaced = tuple(substituted(condition, value, variable) for condition in conditions)
        if not any(grouping.free(condition) for condition in replaced):
            found.append(Scalar(value, variable, replaced))


def entries(conditions: tuple[Expr, ...], alias: str, fixed: frozenset[Column]) -> list[str]:
    """The SQL of the largest sub-expressions through which the source enters the conditions, for a
    message.
    """
    grouping = _Grouping(alias, fixed)
    for condition in conditions:
        grouping.rewrite(condition)
    return [to_sql(value) for value in grouping.values]


def _own_subexpressions(conditions: tuple[Expr, ...], grouping: _Grouping) -> list[Expr]:
    """The numeric sub-expressions of the stream's own attributes, largest first, each once."""
    own = dict.fromkeys(
        part
        for condition in conditions
        for part in subexpressions(condition)
        if grouping.free(part) and grouping.own(part) and (part.type.numeric or part.type is Type.TIMESTAMP)
    )
    return sorted(own, key=lambda part: -sum(1 for _ in subexpressions(part)))


def subexpressions(expr: Expr) -> Iterator[Expr]:
    """The expression and all of its parts, each before its own parts."""
    yield expr
    if isinstance(expr, Call):
        for arg in expr.args:
            yield from subexpressions(arg)


def substituted(expr: Expr, old: Expr, new: Expr) -> Expr:
    """`expr` with every occurrence of `old` replaced."""
    if expr == old:
        return new
    if not isinstance(expr, Call):
        return expr
    return Call(expr.op, tuple(substituted(arg, old, new) for arg in expr.args), expr.type)


class _Grouping:
    """Replaces the stream's own expressions by factor * variable + constant, with one variable for each
    different value.
    """

    def __init__(self, alias: str, fixed: frozenset[Column], outside: bool = True) -> None:
        self._alias, self._fixed, self._outside = alias, fixed, outside
        self.values: list[Expr] = []
        self.sums: list[tuple[Term, ...]] = []
        self.products: list[tuple[Factor, ...]] = []

    def variable(self, number: int) -> Column:
        return Column("", f"x{number}", self.values[number].type)

    def free(self, expr: Expr) -> bool:
        """True if the expression contains an attribute of the stream that is not in the omission key."""
        return any(c.alias == self._alias and c not in self._fixed for c in columns(expr))

    def own(self, expr: Expr) -> bool:
        """True if the expression consists of the stream's attributes alone. With `outside`, an expression
        with a Python function doesn't.
        """
        if self._outside and any(python_functions.calls(expr)):
            return False
        return all(c.alias == self._alias for c in columns(expr))

    def rewrite(self, expr: Expr) -> Expr:
        if not self.free(expr) or not isinstance(expr, Call):
            return self._occurrence(expr) if self.free(expr) else expr
        if self.own(expr) and (expr.type.numeric or expr.type is Type.TIMESTAMP):
            return self._occurrence(expr)
        if expr.op in COMPARISONS and all(arg.type.numeric and self.free(arg) for arg in expr.args):
            left, right = (terms(arg) for arg in expr.args)
            return call(expr.op, self._sum([*left, *((-f, t) for f, t in right)]), Literal(0, Type.BIGINT))
        if expr.type.numeric and expr.op in ("+", "-", "neg", "*", "/"):
            parts = terms(expr)
            if parts != [(Fraction(1), expr)] or self._scattered(expr) is not None:
                return self._sum(parts)
        return Call(expr.op, tuple(self.rewrite(arg) for arg in expr.args), expr.type)

    def _mine(self, expr: Expr) -> bool:
        return self.free(expr) and self.own(expr)

    def _scattered(self, expr: Expr) -> Product | None:
        """A product with several factors that contain only the stream's own attributes, while no other factor
        contains any of them.
        """
        found = product(expr, self._mine, constant)
        apart = not any(self.free(factor) for factor, _ in found.rest)
        return found if len(found.own) > 1 and apart else None

    def _sum(self, parts: list[Term]) -> Expr:
        """A sum, regrouped: the terms of the stream alone are added first. The same is done with terms that
        have a common rest: `a.x * b.x + b.x * a.y` has a.x + a.y.
        """
        mine = [(f, t) for f, t in parts if self._mine(t)]
        shared: dict[tuple[Factor, ...], list[Term]] = {}
        out: list[Expr] = []
        for factor, term in parts:
            if self._mine(term):
                continue
            found = product(term, self._mine, constant)
            if found.own and not any(self.free(other) for other, _ in found.rest):
                shared.setdefault(found.rest, []).append((factor, term))
            else:
                out.append(scaled(factor, self.rewrite(term)))
        for rest, group in shared.items():
            out.append(self._common(rest, group, parts))
        if mine:
            if len(mine) > 1:
                self.sums.append(tuple(parts))
            out.insert(0, self._grouped(mine))
        return added(out)

    def _common(self, rest: tuple[Factor, ...], group: list[Term], parts: list[Term]) -> Expr:
        """The terms of `group` as one product. Each of them is an expression of the stream times `rest`."""
        if len(group) == 1 and self._scattered(group[0][1]) is None:
            ((factor, term),) = group
            assert isinstance(term, Call)
            return scaled(factor, Call(term.op, tuple(self.rewrite(arg) for arg in term.args), term.type))
        if len(group) > 1:
            self.sums.append(tuple(parts))
        own: list[Term] = []
        for factor, term in group:
            found = product(term, self._mine, constant)
            self.products.append(tuple(factors(term)))
            value = multiplied(found.own)
            own += [(factor * found.constant * share, part) for share, part in terms(value)]
        return multiplied(rest, self._grouped(own))

    def _occurrence(self, expr: Expr) -> Expr:
        return self._grouped(terms(expr)) if expr.type.numeric else self._name(expr)

    def _grouped(self, parts: list[Term]) -> Expr:
        offset = sum((f * c for f, t in parts if (c := constant(t)) is not None), Fraction(0))
        merged: dict[Expr, Fraction] = {}
        for factor, term in parts:
            if constant(term) is None:
                merged[term] = merged.get(term, Fraction(0)) + factor
        # A term that cancels out stays, times 0: where it is NULL, the sum is NULL.
        moving = sorted(((f, t) for t, f in merged.items()), key=lambda part: repr(part[1]))
        leading = next((f for f, _ in moving if f), Fraction(1))
        value = added([scaled(factor / leading, term) for factor, term in moving])
        out = scaled(leading, self._name(value))
        return added([out, _literal(offset)]) if offset else out

    def _name(self, value: Expr) -> Column:
        if value not in self.values:
            self.values.append(value)
        return self.variable(self.values.index(value))


def terms(expr: Expr) -> list[Term]:
    """A number as a sum of factors times terms. Integer arithmetic stays exact: its factors are whole."""
    if not isinstance(expr, Call) or not expr.type.numeric:
        return [(Fraction(1), expr)]
    if expr.op in ("+", "-"):
        sign = -1 if expr.op == "-" else 1
        return [*terms(expr.args[0]), *((sign * f, t) for f, t in terms(expr.args[1]))]
    if expr.op == "neg":
        return [(-f, t) for f, t in terms(expr.args[0])]
    if expr.op in ("*", "/"):
        left, right = expr.args
        factor = constant(right)
        if factor is not None and (factor or expr.op == "*"):
            return [(f * factor if expr.op == "*" else f / factor, t) for f, t in terms(left)]
        factor = constant(left)
        if factor is not None and expr.op == "*":
            return [(f * factor, t) for f, t in terms(right)]
    return [(Fraction(1), expr)]


def constant(expr: Expr) -> Fraction | None:
    """The value of a literal, or of a negated literal; None for anything else."""
    if isinstance(expr, Call) and expr.op == "neg":
        value = constant(expr.args[0])
        return None if value is None else -value
    if (
        isinstance(expr, Literal)
        and isinstance(expr.value, (int, float))
        and not isinstance(expr.value, bool)
    ):
        return Fraction(expr.value)
    return None


def _literal(value: Fraction) -> Expr:
    """A number without rounding: if no single literal is exact, a sum of DOUBLEs divided by a whole number.

    Raises OverflowError for a number that needs more.
    """
    if value.denominator == 1 and abs(value) < LARGEST_EXACT_INTEGER:
        return Literal(int(value), Type.BIGINT)
    below = value.denominator // (value.denominator & -value.denominator)
    parts, left = [], value * below
    while left:
        parts.append(float(left))
        left -= Fraction(parts[-1])
    if below >= LARGEST_EXACT_INTEGER or len(parts) > _MOST_PARTS:
        raise OverflowError("a constant has too many digits")
    out = added([Literal(part, Type.DOUBLE) for part in parts])
    return out if below == 1 else call("/", out, Literal(below, Type.BIGINT))


def scaled(factor: Fraction, term: Expr) -> Expr:
    """factor * term."""
    if factor == 1:
        return term
    if isinstance(term, Literal) and (value := constant(term)) is not None:
        return _literal(factor * value)
    return call("neg", term) if factor == -1 else call("*", _literal(factor), term)


def added(parts: list[Expr]) -> Expr:
    """The sum of `parts`, which has at least one."""
    total = parts[0]
    for part in parts[1:]:
        if isinstance(part, Call) and part.op == "neg":
            total = call("-", total, part.args[0])
        else:
            total = call("+", total, part)
    return total
