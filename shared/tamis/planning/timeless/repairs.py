"""The smallest changes that would bound a query, each decided again."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from tamis.bounded.closure import Closure
from tamis.bounded.decide import violation
from tamis.bounded.normal_form import Conjunction, Difference
from tamis.expressions.nodes import Column, Type
from tamis.expressions.sql_text import identifier

# The limits that repairs are written with, where the query has no constants: the user puts their own.
_LOW, _HIGH = 0, 100
MOST_REPAIRS = 3
MOST_CHANGES = 3
# With more changes to choose from, choosing three takes longer than an answer may.
MOST_TRIED = 30


Branch = tuple[Conjunction, Closure]


@dataclass(frozen=True)
class Change:
    """One change: of which column (None: of the whole), its SQL, and what it makes of a conjunction."""

    column: Column | None
    sql: str
    make: Callable[[Conjunction], Conjunction]


def repairs(branches: Sequence[Branch], columns: Sequence[Column]) -> tuple[str, ...]:
    """Changes that bound all branches, the fewest first. Empty where a few changes don't."""
    changes = list(_changes(branches[0][0], columns))
    found: list[str] = []
    for count in range(1, MOST_CHANGES + 1):
        for chosen in itertools.combinations(changes, count):
            if len({one.column for one in chosen}) == count and all(_bounds(q, chosen) for q, _ in branches):
                found.append(" ".join(one.sql for one in chosen))
            if len(found) == MOST_REPAIRS:
                return tuple(found)
        if found:
            break
        if len(changes) > MOST_TRIED:
            break
    return tuple(found)


def _bounds(query: Conjunction, chosen: Sequence[Change]) -> bool:
    for one in chosen:
        query = one.make(query)
    closure = query.closure()
    return closure is not None and violation(query, closure) is None


def _changes(query: Conjunction, columns: Sequence[Column]) -> Iterator[Change]:
    constants = [abs(d.bound) for d in query.differences if 0 in (d.left, d.right)]
    low, high = min(_LOW, *(-c for c in constants), 0), max(_HIGH, *constants, 0)
    for column in columns:
        name = f"{identifier(column.alias)}.{identifier(column.name)}"
        if column.type is Type.VARCHAR:
            yield Change(column, f"AND {name} = '…'", _within(column, -1, -1))
        if not column.type.integral:
            continue
        yield Change(column, f"AND {name} >= {low}", _within(column, low, None))
        yield Change(column, f"AND {name} <= {high}", _within(column, None, high))
        yield Change(column, f"AND {name} BETWEEN {low} AND {high}", _within(column, low, high))
    if not query.distinct and not query.grouped:
        yield Change(None, "SELECT DISTINCT", lambda one: replace(one, distinct=True))


def _within(column: Column, low: int | None, high: int | None) -> Callable[[Conjunction], Conjunction]:
    def make(query: Conjunction) -> Conjunction:
        nodes = [node for node in range(1, query.size) if query.name(node) == f"{column.alias}.{column.name}"]
        more = [Difference(node, 0, high) for node in nodes if high is not None]
        more += [Difference(0, node, -low) for node in nodes if low is not None]
        return query.with_bounds(*more)

    return make
