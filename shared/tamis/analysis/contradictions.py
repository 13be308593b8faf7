"""Contradictions: conditions of a query that no tuples meet together, as messages with their places."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from tamis.analysis.domains import declared_ends
from tamis.analysis.linear_conditions import LinearSystem
from tamis.errors import Position, RefusedError
from tamis.expressions.nodes import FLIPPED, Call, Column, Expr, Literal, columns, conjunction
from tamis.expressions.signatures import call
from tamis.expressions.sql_text import to_sql
from tamis.plan.omission import bare
from tamis.predicates import Predicate
from tamis.query.model import ColumnDef, StreamDef

# With more clauses, or more filters of one source, the exact check takes more than some milliseconds, and is
# left out.
_MOST_CLAUSES = 50
_MOST_FILTERS = 300


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
        parts = [part for part in own if _predicate([part]) is not None]
        stream = streams[alias]
        named = {column.name for part in parts for column in columns(part)}
        checks = [check for c in stream.columns if c.name in named for check in _admitted(c)]

        def never(some: Sequence[Expr], checks: list[Expr] = checks) -> bool:
            found = _predicate([*some, *checks])
            return found is not None and found.never

        if parts and never(parts):
            return fewest(parts, never)
    return ()


def _admitted(column: ColumnDef) -> list[Expr]:
    """The values of a column that edges accept, as conditions: a CHECK admits NULL."""
    null = call("is_null", Column("", column.name, column.type))
    if column.not_null:
        found = [call("not", null), *([] if column.check is None else [column.check])]
    else:
        found = [] if column.check is None else [call("or", column.check, null)]
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


def message(
    parts: Sequence[Expr], streams: Mapping[str, StreamDef], places: Mapping[Expr, Position]
) -> str | None:
    """The message about parts that contradict each other or the declared domains; None without any."""

    def said(part: Expr) -> str:
        place = places.get(part)
        return to_sql(part) if place is None else f"{to_sql(part)} ({place})"

    if len(parts) == 1:
        limits = _limits(parts[0], streams)
        return f"{said(parts[0])} is never true for values of the declared domains{limits}"
    return f"no tuples meet all of {', '.join(map(said, parts))}" if parts else None


def _limits(condition: Expr, streams: Mapping[str, StreamDef]) -> str:
    """The reason why a comparison is never true: the greatest or least possible values of its sides."""
    if not isinstance(condition, Call) or condition.op not in (*FLIPPED, "="):
        return ""
    left, right = condition.args
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
    return (None, None) if found is None else (found.lower, found.upper)


def linear_system(streams: Mapping[str, StreamDef]) -> LinearSystem:
    """A system without constraints, which knows the declared domains of all columns."""

    def ends(column: Column) -> tuple[float, float]:
        definition = streams[column.alias].column(column.name)
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
