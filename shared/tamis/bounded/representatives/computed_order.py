"""Test that rounding keeps the order which a certificate proves about exact numbers.

An operation that is weakly monotone in a value is so as computed, too, because rounding to the nearest number
is a monotone function of the exact result. So a set of values that is closed upwards stays so, if each place
of the value in the condition reaches its comparison by such operations, and if the value is computed as it is
written there. A value that was put together from several places isn't: `(x + p) - z > 12` is rounded for p,
and not for `x - z`.
"""

from __future__ import annotations

from collections.abc import Iterator

from tamis.certificates.certificate import Certificate
from tamis.certificates.comparison_order import stands_elsewhere
from tamis.certificates.scalars import subexpressions
from tamis.expressions.nodes import COMPARISONS, Call, Expr, Literal, Type

_MONOTONE = ("+", "-", "neg", "*", "least", "greatest", "floor", "ceil", "round")
_EXACT = (
    "+",
    "-",
    "neg",
    "*",
    "abs",
    "least",
    "greatest",
    "mod",
    "case",
    "is_null",
    "and",
    "or",
    "not",
    *COMPARISONS,
)


def keeps_order(found: Certificate, conditions: tuple[Expr, ...]) -> bool:
    """True if the certificate also holds for values as they are computed."""
    if all(map(_exact, conditions)):
        return True
    if any(stands_elsewhere(found.value, one, found.fixed) for one in conditions):
        return False
    atoms = [atom for one in conditions for atom in _comparisons(one) if found.value in subexpressions(atom)]
    several = found.sides == "both" and len(atoms) > 1
    return bool(atoms) and not several and all(_once_monotone(atom, found) for atom in atoms)


def _exact(expr: Expr) -> bool:
    """True if an expression of whole numbers is computed without rounding. (Where it overflows it is NULL,
    and then there is no certificate.)
    """
    if not isinstance(expr, Call):
        return expr.type is not Type.DOUBLE or _whole(expr)
    return expr.type is not Type.DOUBLE and expr.op in _EXACT and all(map(_exact, expr.args))


def _whole(expr: Expr) -> bool:
    return isinstance(expr, Literal) and isinstance(expr.value, float) and expr.value.is_integer()


def _comparisons(expr: Expr) -> Iterator[Expr]:
    """The comparisons that AND and OR combine, and whatever else they do."""
    if isinstance(expr, Call) and expr.op in ("and", "or"):
        for arg in expr.args:
            yield from _comparisons(arg)
    else:
        yield expr


def _once_monotone(atom: Expr, found: Certificate) -> bool:
    """True if a comparison contains the value once, below monotone operations. With both sides the absolute
    value of such an operation may be compared.
    """
    if not isinstance(atom, Call) or atom.op not in COMPARISONS:
        return False
    paths = [path for arg in atom.args for path in _paths(arg, found.value)]
    if len(paths) != 1:
        return False
    (path,) = paths
    left = list(path)
    if found.sides == "both" and "abs" in left:
        left.remove("abs")
    return all(op in _MONOTONE for op in left)


def _paths(expr: Expr, value: Expr) -> Iterator[tuple[str, ...]]:
    """The operators above each place of the value."""
    if expr == value:
        yield ()
    elif isinstance(expr, Call):
        for arg in expr.args:
            for path in _paths(arg, value):
                yield (*path, expr.op)
