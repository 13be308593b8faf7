"""NULL analysis: the possible results of a condition while one value in it is NULL."""

from __future__ import annotations

from enum import Flag

from tamis.expressions.nodes import COMPARISONS, Call, Column, Expr, Literal, Type


class Outcome(Flag):
    """The possible results of an expression: TRUE, FALSE or NULL of a condition, SOME (a value) or NULL of a
    number.
    """

    TRUE = 1
    FALSE = 2
    NULL = 4
    SOME = 8


_ANY = Outcome.TRUE | Outcome.FALSE | Outcome.NULL


def may_hold(condition: Expr, variable: Column) -> bool:
    """True if `condition` may be true where `variable` is NULL. Also True if nothing better is known."""
    return Outcome.TRUE in outcome(condition, variable)


def outcome(expr: Expr, variable: Column) -> Outcome:
    """All possible results of `expr` where `variable` is NULL."""
    if expr == variable:
        return Outcome.NULL
    condition = expr.type is Type.BOOLEAN
    if isinstance(expr, Column):
        return _ANY if condition else Outcome.SOME | Outcome.NULL
    if isinstance(expr, Literal):
        if expr.value is None:
            return Outcome.NULL
        return (Outcome.TRUE if expr.value else Outcome.FALSE) if condition else Outcome.SOME
    args = [outcome(arg, variable) for arg in expr.args]
    match expr.op:
        case "and":
            return _and(args)
        case "or":
            return _negated(_and([_negated(arg) for arg in args]))
        case "not":
            return _negated(args[0])
        case "is_null":
            out = Outcome.TRUE if Outcome.NULL in args[0] else Outcome.FALSE
            return out if args[0] == Outcome.NULL else out | Outcome.FALSE
        case "case":
            return _case(expr, args)
        case "least" | "greatest" | "coalesce":
            return Outcome.NULL if all(arg == Outcome.NULL for arg in args) else Outcome.SOME | Outcome.NULL
    if any(arg == Outcome.NULL for arg in args):
        return Outcome.NULL
    return _ANY if condition or expr.op in COMPARISONS else Outcome.SOME | Outcome.NULL


def _and(args: list[Outcome]) -> Outcome:
    out = Outcome(0)
    if all(Outcome.TRUE in arg for arg in args):
        out |= Outcome.TRUE
    if any(Outcome.FALSE in arg for arg in args):
        out |= Outcome.FALSE
    if any(Outcome.NULL in arg for arg in args):
        out |= Outcome.NULL
    return out


def _negated(arg: Outcome) -> Outcome:
    out = arg & Outcome.NULL
    if Outcome.TRUE in arg:
        out |= Outcome.FALSE
    if Outcome.FALSE in arg:
        out |= Outcome.TRUE
    return out


def _case(expr: Call, args: list[Outcome]) -> Outcome:
    """The results that can be reached. A condition that is NULL is skipped like a false one."""
    out = Outcome(0)
    for condition, value in zip(args[:-1:2], args[1:-1:2], strict=True):
        if Outcome.TRUE in condition:
            out |= value
        if condition == Outcome.TRUE:
            return out
    return out | args[-1]
