"""Value constraints: what conditions that all hold say about the values of columns and of other expressions.

Constraint propagation: each condition narrows the enclosures (`possible_values`) of its sides by each other,
until nothing changes. A condition that can't be true then contradicts the others. The search finds only some
contradictions, but each one that it finds is proved.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from tamis.analysis.possible_values import (
    ANYTHING,
    NEVER,
    TRUE,
    Known,
    Values,
    can_compare,
    literal,
    possible,
)
from tamis.declarations.definitions import ColumnDef
from tamis.declarations.domains import ends
from tamis.declarations.streams import StreamDef
from tamis.declarations.watches import Watch
from tamis.expressions.exact.rounding import bound
from tamis.expressions.nodes import FLIPPED, OPAQUE, OPPOSITE, Call, Column, Expr, Literal, Type, columns

_ROUNDS = 4  # of propagation from condition to condition
_MOST_ALTERNATIVES = 50
_MOST_OPERATORS = 2  # in a CHECK over several columns, so that its value is never NULL
# The scale of a window lies within the range of its watch, up to rounding.
_SLACK = 1e-9

_Known = dict[Expr, Values]
# If an argument of these is NULL, the result need not be NULL.
_NOT_STRICT = ("coalesce", "case", "is_null", "least", "greatest", "and", "or", OPAQUE)
# Functions that leave their own results as they are.
_IDEMPOTENT = ("lower", "upper", "trim", "ltrim", "rtrim", "date_trunc")


def narrowed(
    parts: Sequence[Expr], streams: Mapping[str, StreamDef], given: Mapping[Expr, Values] | None = None
) -> _Known | None:
    """The possible values of columns and other expressions where all `parts` are true, each as computed or in
    exact arithmetic; None only if no values of the declared domains meet all parts. `given` has the possible
    values of columns that no stream has.
    """
    named = dict.fromkeys(column for part in parts for column in columns(part))
    known: _Known = dict(given or {})
    checks: list[Expr] = []
    for column in named:
        stream = streams.get(column.alias)
        definition = stream.column(column.name) if stream else None
        if stream and definition:
            known[column] = _declared(definition, column, stream)
            checks += _own(definition, column.alias)
    checks = list(dict.fromkeys(checks))
    read = [_read(condition) for condition in (*parts, *checks)]
    seen: list[list[Values | None] | None] = [None] * len(read)  # what each condition was narrowed by
    for _ in range(_ROUNDS):
        before = dict(known)
        for at, condition in enumerate((*parts, *checks)):
            # Values are only ever narrowed: a condition to which all are as before narrows nothing again.
            now = [known.get(node) for node in read[at]]
            if read[at] and now == seen[at]:
                continue
            # A CHECK holds, or is NULL. Without NULL in its columns, such a CHECK isn't NULL.
            if at >= len(parts) and not all(c in known and not known[c].null for c in columns(condition)):
                continue
            if not _assume(condition, known):
                return None
            seen[at] = now
        if known == before:
            break
    return known


def _read(condition: Expr) -> tuple[Expr, ...]:
    """The expressions by whose values a condition is narrowed; none if it isn't known which these are."""
    found: dict[Expr, None] = {}
    waiting = [condition]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Call):
            if one.op == "not":
                return ()  # it is narrowed as another condition, which it doesn't contain
            waiting += one.args
        if not isinstance(one, Literal):
            found[one] = None
    return tuple(found)


def _declared(definition: ColumnDef, column: Column, stream: StreamDef) -> Values:
    """The values of a column that edges accept."""
    if definition in stream.recorded_columns and definition.computed is None:
        return _in_domain(definition, column)
    return _checked(definition, column, _watched(stream, column))


@lru_cache(maxsize=10_000)
def _in_domain(definition: ColumnDef, column: Column) -> Values:
    """The values of a column that readings have."""
    found = Values(null=not definition.not_null)
    if column.type.numeric or column.type.integral:
        found = Values(*ends(definition), null=found.null)
    return _checked(definition, column, found)


def _checked(definition: ColumnDef, column: Column, found: Values) -> Values:
    """Those of the values of a column that its CHECK admits."""
    if definition.check is not None and _total(definition.check):
        own = Column("", column.name, column.type)
        if set(columns(definition.check)) == {own}:
            inside: _Known = {own: replace(found, null=False)}
            fits = _assume(definition.check, inside)
            found = replace(inside[own] if fits else NEVER, null=found.null)
    return found


def _watched(stream: StreamDef, column: Column) -> Values:
    """The values of a column that a query adds: those of a scale lie within the range of `similar`."""
    for watch in (one for one in stream.watches if type(one) is Watch):
        if watch.scale is not None and column.name == watch.scale_column.name:
            low, high = watch.scale
            return Values(
                -math.inf if low is None else low - _SLACK * abs(low),
                math.inf if high is None else high + _SLACK * abs(high),
            )
    return ANYTHING


def _own(definition: ColumnDef, alias: str) -> list[Expr]:
    """The CHECK of a column, if it has other columns too, with the alias of its source."""
    check = definition.check
    if check is None or len(set(columns(check))) < 2 or not _total(check):
        return []
    return [_with_alias(check, alias)]


def _with_alias(expr: Expr, alias: str) -> Expr:
    if isinstance(expr, Column):
        return replace(expr, alias=alias)
    if isinstance(expr, Call):
        return Call(expr.op, tuple(_with_alias(arg, alias) for arg in expr.args), expr.type)
    return expr


def _total(expr: Expr) -> bool:
    """True if a condition is NULL only where one of its columns is."""
    if isinstance(expr, Column):
        return True
    if isinstance(expr, Literal):
        return expr.value is not None
    if expr.op in ("and", "or", "not", "is_null", *OPPOSITE):
        return all(map(_total, expr.args))
    return _operators(expr) <= _MOST_OPERATORS


def _operators(expr: Expr) -> float:
    """The number of operators of an expression of DOUBLEs that is never NULL; infinity for others."""
    if isinstance(expr, Column):
        return 0
    if isinstance(expr, Literal):
        return 0 if isinstance(expr.value, int | float) and abs(expr.value) < 1e100 else float("inf")
    if expr.type is not Type.DOUBLE or expr.op not in ("+", "-", "*", "neg", "abs"):
        return float("inf")
    return 1 + sum(map(_operators, expr.args))


def _assume(condition: Expr, known: _Known) -> bool:
    """Narrow `known` to where the condition is true; False if it never is."""
    if isinstance(condition, Call):
        match condition.op:
            case "and":
                return all(_assume(arg, known) for arg in condition.args)
            case "or":
                return _assume_one(condition.args, known)
            case "not":
                return _assume_not(condition.args[0], known)
            case "is_null":
                return _assume_null(condition.args[0], known)
            case "like":
                return _assume_like(condition, known)
        if condition.op in FLIPPED:
            return _assume_comparison(condition, known)
    _present(condition, known)
    return not _narrow(condition, TRUE, known).impossible


def _assume_one(alternatives: Sequence[Expr], known: _Known) -> bool:
    """Narrow `known` to what all alternatives that can be true have in common."""
    if len(alternatives) > _MOST_ALTERNATIVES:
        return True
    found: list[_Known] = []
    for one in alternatives:
        inside = dict(known)
        if _assume(one, inside):
            found.append(inside)
    if not found:
        return False
    for expr in set.intersection(*(set(inside) for inside in found)):
        values = found[0][expr]
        for inside in found[1:]:
            values = values.either(inside[expr])
        known[expr] = values
    return True


def _assume_not(condition: Expr, known: _Known) -> bool:
    if isinstance(condition, Call):
        if condition.op == "not":
            return _assume(condition.args[0], known)
        if condition.op in OPPOSITE:
            return _assume(Call(OPPOSITE[condition.op], condition.args, Type.BOOLEAN), known)
        if condition.op in ("and", "or"):
            parts = tuple(Call("not", (arg,), Type.BOOLEAN) for arg in condition.args)
            return _assume(Call("or" if condition.op == "and" else "and", parts, Type.BOOLEAN), known)
        if condition.op == "is_null":
            _present(condition.args[0], known)
            return not _narrow(condition.args[0], Values(null=False), known).impossible
    _present(condition, known)
    return not _narrow(condition, Values(only=frozenset([False]), null=False), known).impossible


def _assume_null(value: Expr, known: _Known) -> bool:
    found = possible(value, known)
    if not found.null and not found.impossible:
        return False
    if not isinstance(value, Literal):
        known[value] = replace(NEVER, null=True)
    return True


def _assume_comparison(condition: Call, known: _Known) -> bool:
    left, right = condition.args
    if isinstance(left, Column) and isinstance(right, Literal) and condition not in known:
        narrowed = _compared_with_number(left, condition.op, right, known)
        if narrowed is not None:
            return narrowed
    _present(condition, known)
    outcomes = possible(condition, known).only
    if outcomes is not None and True not in outcomes:
        return False
    for one, other, op in ((left, right, condition.op), (right, left, FLIPPED[condition.op])):
        limit = _limit(op, possible(other, known), one.type)
        if limit is not None and _narrow(one, limit, known).impossible:
            return False
    return True


def _compared_with_number(column: Column, op: str, constant: Literal, known: _Known) -> bool | None:
    """Narrow a column by a comparison with a number, faster than `_assume_comparison` does for all others:
    most conditions are such. False if it can't be true; None, with nothing narrowed, if it isn't as simple.
    """
    kinds, found = (column.type, constant.type), known.get(column, ANYTHING)
    if op not in ("<", "<=", ">", ">=") or not all(kind.numeric for kind in kinds):
        return None
    if constant.value is None or found.only is not None:
        return None
    value = literal(constant)
    if value.low != value.high:
        return None  # a whole number that is no DOUBLE
    if not (found.impossible or can_compare(op, found, value)):
        return False
    if op in ("<", "<="):
        found = Values(found.low, min(found.high, value.high), prefix=found.prefix, null=False)
    else:
        found = Values(max(found.low, value.low), found.high, prefix=found.prefix, null=False)
    known[column] = found
    return not found.impossible


def _limit(op: str, other: Values, kind: Type) -> Values | None:
    """The values that compare in this way with some value of `other`; None if nothing follows."""
    if other.impossible:
        return NEVER
    if op == "=":
        return replace(other, null=False)
    if not (kind.numeric or kind.integral) or op == "!=":
        return None
    if op in ("<", "<="):
        return Values(high=other.high, null=False)
    return Values(low=other.low, null=False)


def _assume_like(condition: Call, known: _Known) -> bool:
    """Narrow the text by what stands in the pattern before the first wildcard."""
    _present(condition, known)
    text, pattern, *escape = condition.args
    if _narrow(text, Values(null=False), known).impossible:
        return False
    if not escape and isinstance(pattern, Literal) and isinstance(pattern.value, str):
        prefix = pattern.value.split("%")[0].split("_")[0]
        limit = literal(pattern) if prefix == pattern.value else Values(prefix=prefix, null=False)
        if _narrow(text, limit, known).impossible:
            return False
    return not _narrow(condition, TRUE, known).impossible


def _narrow(expr: Expr, limit: Values, known: _Known) -> Values:
    """Narrow the possible values of an expression, and return them."""
    found = possible(expr, known).both(limit)
    if isinstance(expr, Call) and expr.op in _IDEMPOTENT and found.only is not None:
        found = replace(found, only=frozenset(one for one in found.only if _is_result(expr, one)))
    # Of two conditions, one may hold as computed and the other exactly: what the first says about a rounded
    # number doesn't hold in the second.
    if isinstance(expr, Column) or (isinstance(expr, Call) and bound(expr) is None):
        known[expr] = found
    return found


def _is_result(expr: Call, value: Known) -> bool:
    """True if applying a function to a value gives the same value."""
    of = expr.args[-1] if expr.op == "date_trunc" else expr.args[0]
    args = tuple(Literal(value, of.type) if arg is of else arg for arg in expr.args)
    return possible(Call(expr.op, args, expr.type), {}).only == frozenset([value])


def _present(expr: Expr, known: _Known) -> None:
    """Note that no column is NULL without which `expr` would be NULL."""
    if isinstance(expr, Column):
        known[expr] = replace(possible(expr, known), null=False)
    elif isinstance(expr, Call) and expr.op not in _NOT_STRICT:
        for arg in expr.args:
            _present(arg, known)
