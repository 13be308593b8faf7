"""Contradictions: conditions of a query that no tuples meet together, as messages with their places.

Example values that meet all conditions of a source prove that there is no contradiction. Most filters are
comparisons of columns with numbers. A value for each column is chosen between the greatest lower and the
least upper of its numbers, and all conditions are evaluated for these values. If one isn't true, or is of
another form, nothing is proved.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from fractions import Fraction
from functools import lru_cache

from tamis.analysis.possible_values import possible
from tamis.analysis.value_constraints import narrowed
from tamis.constraints.linear.conditions import LinearSystem
from tamis.declarations.definitions import ColumnDef
from tamis.declarations.domains import declared_ends
from tamis.declarations.streams import StreamDef
from tamis.errors import RefusedError
from tamis.expressions.nodes import (
    FLIPPED,
    LARGEST_EXACT_INTEGER,
    Call,
    Column,
    Expr,
    Literal,
    Type,
    columns,
    conjunction,
)
from tamis.expressions.signatures import call
from tamis.expressions.sql_text import to_sql
from tamis.plan.omission import bare
from tamis.predicates.predicate import Predicate

# With more clauses, or more filters of one source, the exact check takes more than some milliseconds, and is
# left out.
_MOST_CLAUSES = 50
_MOST_FILTERS = 300
# More admitted texts than this are not listed in a message.
_MOST_TEXTS = 20

_COMPARED: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}


def contradictory_filters(
    streams: Mapping[str, StreamDef], filters: Mapping[str, tuple[Expr, ...]]
) -> tuple[Expr, ...]:
    """The fewest filters of one source that no value of the declared domains meets; empty if there are none.

    Exact for comparisons of columns with constants; other filters are left out, and so is a source with more
    than 300 filters.
    """
    for alias, own in filters.items():
        if len(own) > _MOST_FILTERS:
            continue
        stream = streams[alias]
        named = {column.name for part in own for column in columns(part)}
        checks = [check for c in stream.columns if c.name in named for check in _admitted(c)]
        if met_by_example([*own, *checks]):
            continue
        together = _predicate([*own, *checks])
        if together is not None and not together.never:
            continue  # nearly always, and then no part has to be looked at alone
        parts = [part for part in own if _predicate([part]) is not None]
        named = {column.name for part in parts for column in columns(part)}
        checks = [check for c in stream.columns if c.name in named for check in _admitted(c)]

        def never(some: Sequence[Expr], checks: list[Expr] = checks) -> bool:
            found = _predicate([*some, *checks])
            return found is not None and found.never

        if parts and never(parts):
            return fewest(parts, never)
    return ()


@lru_cache(maxsize=10_000)
def _admitted(column: ColumnDef) -> list[Expr]:
    """The values of a column that edges accept, as conditions: a CHECK admits NULL in any of its columns."""
    null = call("is_null", Column("", column.name, column.type))
    found: list[Expr] = [call("not", null)] if column.not_null else []
    if column.check is not None:
        others = dict.fromkeys(columns(column.check))
        nulls = [call("is_null", c) for c in others if not (column.not_null and c.name == column.name)]
        found.append(call("or", column.check, *nulls) if nulls else column.check)
    return [check for check in found if _predicate([check]) is not None]


def fewest(parts: Sequence[Expr], contradict: Callable[[Sequence[Expr]], bool]) -> tuple[Expr, ...]:
    """The fewest of contradictory parts that still contradict each other: none can be left out. They are
    searched by halves (QuickXplain, Junker 2004), so that k of n parts take some k log n checks.
    """

    def of(given: list[Expr], added: bool, rest: Sequence[Expr]) -> list[Expr]:
        """The parts of `rest` that are needed beside the given ones, to which some were just `added`."""
        if added and contradict(given):
            return []
        if len(rest) == 1:
            return list(rest)
        first, second = rest[: len(rest) // 2], rest[len(rest) // 2 :]
        later = of([*given, *first], True, second)
        earlier = of([*given, *later], bool(later), first)
        return [*earlier, *later]

    # Later parts are preferred, since the search keeps the first that it meets.
    return tuple(reversed(of([], False, parts[::-1]))) if parts else ()


def contradictory_values(streams: Mapping[str, StreamDef], parts: Sequence[Expr]) -> tuple[Expr, ...]:
    """The fewest parts that no values of the declared domains meet, by enclosures; empty if none are found.

    Unlike the exact checks, it also knows products, functions, NULL and the equalities of several streams.
    """
    if len(parts) > _MOST_FILTERS or narrowed(parts, streams) is not None:
        return ()
    return fewest(parts, lambda some: narrowed(some, streams) is None)


def message(parts: Sequence[Expr], streams: Mapping[str, StreamDef], said: Mapping[Expr, str]) -> str | None:
    """The message about parts that contradict each other or the declared domains; None without any. `said`
    has the user's text of each part, with its place.
    """
    texts = list(dict.fromkeys(said.get(part, to_sql(part)) for part in parts))
    if len(texts) == 1:
        if len(parts) == 1 and compares_with_null(parts[0]):
            instead = null_test(parts[0])
            write = f" (write {instead})" if instead else ""
            return f"{texts[0]} compares with NULL, which is never true{write}"
        limits = possible_limits(parts[0], streams) if len(parts) == 1 else ""
        admitted = admitted_texts(parts[0], streams) if len(parts) == 1 else None
        limits = f": {admitted}" if admitted else limits
        return f"{texts[0]} is never true for values of the declared domains{limits}"
    return f"no tuples meet all of {', '.join(texts)}" if texts else None


def compares_with_null(condition: Expr) -> bool:
    """True for a comparison with the constant NULL, which is never true.

    >>> compares_with_null(call("<", Column("a", "v", Type.DOUBLE), Literal(None, Type.DOUBLE)))
    True
    """
    return isinstance(condition, Call) and condition.op in FLIPPED and any(map(_null, condition.args))


def _null(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.value is None


def null_test(condition: Expr) -> str | None:
    """The test for NULL that the author of a comparison with NULL meant; None for other conditions.

    >>> value = Column("a", "v", Type.DOUBLE)
    >>> null_test(call("!=", Literal(None, Type.DOUBLE), value)), null_test(call("=", value, value))
    ('a.v IS NOT NULL', None)
    """
    if not isinstance(condition, Call) or condition.op not in ("=", "!="):
        return None
    others = [side for side in condition.args if not _null(side)]
    if len(others) != 1:
        return None
    test = call("is_null", others[0])
    return to_sql(call("not", test) if condition.op == "!=" else test)


def admitted_texts(condition: Expr, streams: Mapping[str, StreamDef]) -> str | None:
    """The texts that the CHECK of a column admits which the condition equates with another one, as a reason;
    None for any other condition, and for a CHECK of another form.
    """
    if not isinstance(condition, Call) or condition.op != "=":
        return None
    column, text = condition.args if isinstance(condition.args[0], Column) else condition.args[::-1]
    if not isinstance(column, Column) or not isinstance(text, Literal) or not isinstance(text.value, str):
        return None
    definition = streams[column.alias].column(column.name) if column.alias in streams else None
    if definition is None or definition.check is None:
        return None
    texts = [_equated(part) for part in (_alternatives(definition.check))]
    known = [one for one in texts if one is not None]
    if len(known) < len(texts) or len(known) > _MOST_TEXTS:
        return None
    folded = {one.lower(): one for one in known}
    close = get_close_matches(text.value.lower(), folded, n=1)
    meant = f" (did you mean '{folded[close[0]]}'?)" if close else ""
    shown = ", ".join(to_sql(Literal(one, Type.VARCHAR)) for one in known)
    return f"{to_sql(column)} is {'one of ' if len(known) > 1 else ''}{shown}{meant}"


def _alternatives(check: Expr) -> Sequence[Expr]:
    return check.args if isinstance(check, Call) and check.op == "or" else (check,)


def _equated(condition: Expr) -> str | None:
    """The text with which a condition of a CHECK equates its column; None for any other condition."""
    if not isinstance(condition, Call) or condition.op != "=":
        return None
    texts = [one.value for one in condition.args if isinstance(one, Literal) and isinstance(one.value, str)]
    return texts[0] if len(texts) == 1 and isinstance(condition.args[0], Column) else None


def possible_limits(condition: Expr, streams: Mapping[str, StreamDef]) -> str:
    """The reason why a comparison is never true: the greatest or least possible values of its sides, after a
    colon; empty if it isn't known.
    """
    if not isinstance(condition, Call) or condition.op not in (*FLIPPED, "="):
        return ""
    left, right = condition.args
    if not all(side.type.numeric for side in condition.args):
        return ""
    one, other = _range(left, streams), _range(right, streams)
    if condition.op in (">", ">=", "=") and _below(one, other):
        return _told((left, one[1], "at most"), (right, other[0], "at least"))
    if condition.op in ("<", "<=", "=") and _below(other, one):
        return _told((left, one[0], "at least"), (right, other[1], "at most"))
    return ""


_Ends = tuple[Fraction | None, Fraction | None]


def _range(expr: Expr, streams: Mapping[str, StreamDef]) -> _Ends:
    """The least and the greatest value of a number, where they are known."""
    if isinstance(expr, Literal):
        known = isinstance(expr.value, int | float) and not isinstance(expr.value, bool)
        value = Fraction(expr.value) if known else None  # type: ignore[arg-type]
        return value, value
    found = linear_system(streams).range(expr)
    if found is not None and None not in (found.lower, found.upper):
        return found.lower, found.upper
    # The condition `expr = expr` narrows nothing.
    values = possible(expr, narrowed([Call("=", (expr, expr), Type.BOOLEAN)], streams) or {})
    low, high = (Fraction(end) if math.isfinite(end) else None for end in (values.low, values.high))
    return low, high


def linear_system(streams: Mapping[str, StreamDef]) -> LinearSystem:
    """A system without constraints, which knows the declared domains of the columns of `streams`. Columns of
    other relations, such as tables, have no limits.
    """

    def ends(column: Column) -> tuple[float, float]:
        definition = streams[column.alias].column(column.name) if column.alias in streams else None
        return (-math.inf, math.inf) if definition is None else declared_ends(definition)

    return LinearSystem(ends)


def _below(one: _Ends, other: _Ends) -> bool:
    return one[1] is not None and other[0] is not None and one[1] <= other[0]


def _told(*sides: tuple[Expr, Fraction | None, str]) -> str:
    said = [
        f"{to_sql(expr)} is {word} {float(end):.12g}"
        for expr, end, word in sides
        if end is not None and not isinstance(expr, Literal)
    ]
    return f": {' and '.join(said)}" if said else ""


def _predicate(parts: Sequence[Expr]) -> Predicate | None:
    """The parts as boxes; None if they have no such form, or need too many."""
    found = conjunction(tuple(parts))
    try:
        return None if found is None else Predicate.of(bare(found), _MOST_CLAUSES)
    except RefusedError:
        return None


def met_by_example(conditions: Sequence[Expr]) -> bool:
    """True if all conditions on one source are true for some values of its columns; False if not known.

    >>> from tamis.expressions.nodes import Type
    >>> x = Column("", "x", Type.DOUBLE)
    >>> limits = [Call(op, (x, Literal(2, Type.INT)), Type.BOOLEAN) for op in (">", "<")]
    >>> met_by_example(limits[:1]), met_by_example(limits)
    (True, False)
    """
    ends: dict[str, list[float]] = {}
    for condition in conditions:
        _collect(condition, ends)
    values = {name: _between(low, high) for name, (low, high) in ends.items()}
    return all(_true(condition, values) for condition in conditions)


def _comparison(expr: Call) -> tuple[Column, str, float] | None:
    """The column, the operator and the number of a comparison; None for other conditions."""
    if expr.op not in _COMPARED:
        return None
    (left, right), op = expr.args, expr.op
    if isinstance(left, Literal):
        left, right, op = right, left, FLIPPED[op]
    if not isinstance(left, Column) or not isinstance(right, Literal) or not left.type.numeric:
        return None
    value = right.value
    if isinstance(value, bool) or not isinstance(value, int | float) or not right.type.numeric:
        return None
    # Larger whole numbers may be no DOUBLEs, with which a comparison would have to be converted.
    return (left, op, value) if abs(value) <= LARGEST_EXACT_INTEGER else None


def _collect(condition: Expr, ends: dict[str, list[float]]) -> None:
    """Narrow the ends of columns by comparisons with numbers, as if OR were AND."""
    if not isinstance(condition, Call):
        return
    if condition.op in ("and", "or"):
        for arg in condition.args:
            _collect(arg, ends)
    elif (found := _comparison(condition)) is not None:
        column, op, value = found
        own = ends.setdefault(column.name, [-math.inf, math.inf])
        step = 1 if column.type.integral else 0
        if op in (">", ">=", "="):
            own[0] = max(own[0], math.floor(value) + 1 if step and op == ">" else value)
        if op in ("<", "<=", "="):
            own[1] = min(own[1], math.ceil(value) - 1 if step and op == "<" else value)
        if step:
            own[0] = own[0] if math.isinf(own[0]) else math.ceil(own[0])
            own[1] = own[1] if math.isinf(own[1]) else math.floor(own[1])


def _between(low: float, high: float) -> float:
    if math.isinf(low) or math.isinf(high):
        return (
            low + 1 if math.isinf(high) and not math.isinf(low) else high - 1 if not math.isinf(high) else 0
        )
    if isinstance(low, int) and isinstance(high, int):
        return (low + high) // 2
    return low + (high - low) / 2


def _true(condition: Expr, values: Mapping[str, float]) -> bool:
    """True if a condition is true for these values, none of which is NULL; False if that isn't known."""
    if not isinstance(condition, Call):
        return False
    match condition.op:
        case "and":
            return all(_true(arg, values) for arg in condition.args)
        case "or":
            return any(_true(arg, values) for arg in condition.args)
        case "not":
            (inner,) = condition.args
            return isinstance(inner, Call) and inner.op == "is_null" and _known(inner.args[0], values)
    found = _comparison(condition)
    if found is None or found[0].name not in values:
        return False
    column, op, value = found
    return _COMPARED[op](values[column.name], value)


def _known(expr: Expr, values: Mapping[str, float]) -> bool:
    return isinstance(expr, Column) and expr.name in values
