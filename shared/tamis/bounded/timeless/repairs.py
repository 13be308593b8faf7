"""Repairs: the smallest changes that would bound a query, each decided again."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from tamis.difference_bounds import Closure
from tamis.expressions.nodes import Column, Literal, Type
from tamis.expressions.sql_text import identifier, to_sql
from tamis.operators.synopses.decide import violation
from tamis.plan.conjunction import Conjunction

# The limits in repairs, if the query has no constants; the user puts in their own.
_LOW, _HIGH = 0, 100
_FROM, _TO = 946_684_800_000_000, 4_102_444_800_000_000  # the years 2000 to 2099
DISTINCT = "SELECT DISTINCT"
MOST_REPAIRS = 3
MOST_CHANGES = 3
# So many combinations of changes are decided again: some milliseconds each, for the largest queries.
MOST_DECIDED = 1000

Branch = tuple[Conjunction, Closure]


@dataclass(frozen=True)
class Change:
    """One change and its SQL: a condition on a column, or DISTINCT (without a column)."""

    sql: str
    column: Column | None = None
    low: int | None = None
    high: int | None = None

    def of(self, query: Conjunction, closure: Closure) -> Conjunction | None:
        """The changed query, whose closure gets the limits; None if it contradicts itself."""
        if self.column is None:
            return replace(query, distinct=True)
        name = f"{self.column.alias}.{self.column.name}"
        for node in (node for node in range(1, query.size) if query.name(node) == name):
            if self.high is not None and not closure.add(node, 0, self.high):
                return None
            if self.low is not None and not closure.add(0, node, -self.low):
                return None
        return query


class _Sql(Protocol):
    @property
    def sql(self) -> str: ...


C = TypeVar("C", bound=_Sql)


def smallest(possible: Sequence[C], most: int, bound: Callable[[Sequence[C]], bool]) -> tuple[str, ...]:
    """The smallest combinations of changes, at most one to a column, for which `bound` is true. Empty if a
    few changes are not enough; at most `most` combinations are tried.
    """
    repairs: list[str] = []
    choices = itertools.chain.from_iterable(
        itertools.combinations(possible, count) for count in range(1, MOST_CHANGES + 1)
    )
    fewest = MOST_CHANGES
    for chosen in itertools.islice(choices, most):
        if len(chosen) > fewest or len(repairs) == MOST_REPAIRS:
            break
        named = [one.column for one in chosen if isinstance(one, Change)]
        if len(set(named)) == len(named) and bound(chosen):
            repairs.append(together([one.sql for one in chosen]))
            fewest = len(chosen)
    return tuple(repairs)


def repairs(branches: Sequence[Branch], columns: Sequence[Column]) -> tuple[str, ...]:
    """Changes that bound all alternatives, the smallest number of changes first. Empty if a few changes are
    not enough.
    """
    possible = list(changes(branches[0][0], columns))
    return smallest(possible, MOST_DECIDED, lambda chosen: all(_bounds(*one, chosen) for one in branches))


def together(changes: Sequence[str]) -> str:
    """Several changes as a text that says what to type.

    >>> together(["AND s.a >= 0", "AND s.b <= 100"])
    'AND s.a >= 0 AND s.b <= 100'
    >>> together(["SELECT DISTINCT", "AND s.a >= 0"])
    'SELECT DISTINCT, and the condition s.a >= 0'
    """
    conditions = " ".join(one for one in changes if one != DISTINCT)
    if DISTINCT not in changes:
        return conditions
    return f"{DISTINCT}, and the condition {conditions.removeprefix('AND ')}" if conditions else DISTINCT


def _bounds(query: Conjunction, closure: Closure, chosen: Sequence[Change]) -> bool:
    changed: Conjunction | None = query
    closure = closure.copy()
    for one in chosen:
        changed = changed and one.of(changed, closure)
    return changed is not None and violation(changed, closure) is None


def changes(query: Conjunction, columns: Sequence[Column]) -> Iterator[Change]:
    """Single changes: DISTINCT, and limits of each column."""
    if not query.distinct and not query.grouped:
        yield Change(DISTINCT)
    for column in columns:
        name = f"{identifier(column.alias)}.{identifier(column.name)}"
        if column.type is Type.VARCHAR:
            yield Change(f"AND {name} = '…'", column, -1, -1)
        if not column.type.integral:
            continue
        low, high = _limits(query, column.type is Type.TIMESTAMP)
        least, most = (to_sql(Literal(limit, column.type)) for limit in (low, high))
        yield Change(f"AND {name} >= {least}", column, low=low)
        yield Change(f"AND {name} <= {most}", column, high=high)
        yield Change(f"AND {name} BETWEEN {least} AND {most}", column, low, high)


def _limits(query: Conjunction, timed: bool) -> tuple[int, int]:
    """Limits with room for the constants that the query compares times, or other values, with."""
    ends = [
        (query.nodes[(one.left or one.right) - 1], one.bound if one.left else -one.bound)
        for one in query.differences
        if 0 in (one.left, one.right)
    ]
    # Bounds on DOUBLEs are numbers in the order of DOUBLEs, bounds on texts are codes.
    kind = "time" if timed else "whole"
    constants = [bound for node, bound in ends if node.kind == kind and not node.null]
    if timed:
        return min(_FROM, *constants, _FROM), max(_TO, *constants, _TO)
    return min(_LOW, *constants, _LOW), max(_HIGH, *constants, _HIGH)
