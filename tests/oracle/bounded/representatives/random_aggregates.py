"""Random aggregates over the joins of `random_queries`, and their rows by brute force.

After each tuple all groups of the join of all tuples so far are computed anew.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tests.oracle.bounded.representatives.random_queries import Event, Join, Maker, Query, Row
from tests.oracle.bounded.representatives.trees import Tree, Values, column, of

Change = tuple[Any, ...]  # a row of SELECT, and whether it is withdrawn


@dataclass(frozen=True)
class Aggregate:
    """One aggregate of SELECT or HAVING: one of SQL's functions, `distinct` or `rows`."""

    function: str
    argument: Tree
    only: Tree | None = None

    def sql(self) -> str:
        """The call."""
        if self.function == "rows":
            return "count(*)"
        call = "count(DISTINCT {})" if self.function == "distinct" else f"{self.function}({{}})"
        only = "" if self.only is None else f" FILTER (WHERE {self.only.sql()})"
        return call.format(self.argument.sql()) + only

    def of(self, rows: list[Values]) -> Any:
        """The value of a group."""
        if self.function == "rows":
            return len(rows)
        meets = None if self.only is None else self.only.meaning()
        meant = self.argument.meaning()
        found = [meant(one) for one in rows if meets is None or meets(one) is True]
        known = [one for one in found if one is not None]
        if self.function in ("distinct", "count"):
            return len(set(known)) if self.function == "distinct" else len(known)
        return _FUNCTIONS[self.function](known) if known else None


def _sum(known: list[Any]) -> Any:
    exact = sum(map(Fraction, known))
    return float(exact) if isinstance(known[0], float) else int(exact)


def _mean(known: list[Any]) -> float:
    return float(sum(map(Fraction, known)) / len(known))


_FUNCTIONS: dict[str, Callable[[list[Any]], Any]] = {
    "max": max,
    "min": min,
    "bool_or": any,
    "bool_and": all,
    "sum": _sum,
    "avg": _mean,
}
COUNTS = ("rows", "count", "sum", "avg")


@dataclass(frozen=True)
class Grouped:
    """`SELECT groups, aggregates FROM … GROUP BY groups HAVING …`: the groups are what the query shows.

    `having`: an aggregate, `>` or `>=`, and a number. `shown`: the aggregates of SELECT.
    """

    query: Query
    shown: tuple[Aggregate, ...]
    having: tuple[Aggregate, str, int | float] | None = None

    def sql(self) -> str:
        """The query as SQL."""
        groups = [one.sql() for one in self.query.shown]
        every = [*groups, *(one.sql() for one in self.shown)]
        shown = ", ".join(f"{text} AS o{i}" for i, text in enumerate(every))
        sources = ", ".join(f"{stream} {alias}" for alias, stream in self.query.sources)
        where = " AND ".join(one.sql() for one in self.query.conditions)
        by = ", ".join(groups)
        where = f" WHERE {where}" if where else ""
        having = ""
        if self.having is not None:
            one, op, number = self.having
            having = f" HAVING {one.sql()} {op} {number}"
        return f"SELECT {shown} FROM {sources}{where} GROUP BY {by}{having}"

    def changes(self, events: Iterable[Event]) -> Iterator[set[Change]]:
        """For each tuple the rows of the groups that it changes."""
        before: dict[Row, Row] = {}
        join = Combinations(self.query)
        for stream, one in events:
            join.add(stream, one)
            after, changed = {}, set()
            for key, rows in join.groups.items():
                row = (*key, *(aggregate.of(rows) for aggregate in self.shown))
                if self._passes(rows):
                    after[key] = row
                    if before.get(key) != row:
                        changed.add((*row, False))
                elif key in before:
                    changed.add((*row, True))
            before = after
            yield changed

    def _passes(self, rows: list[Values]) -> bool:
        if self.having is None:
            return True
        aggregate, op, number = self.having
        value = aggregate.of(rows)
        return value is not None and bool(value > number if op == ">" else value >= number)


class Combinations(Join):
    """All combinations of a join so far, by group."""

    def __init__(self, query: Query) -> None:
        super().__init__(query)
        self.groups: dict[Row, list[Values]] = {}

    def add(self, stream: str, one: dict[str, Any]) -> set[Row]:
        """Keep a tuple, and the combinations that it completes."""
        for values in self.combinations(stream, one):
            key = tuple(value(values) for value in self.shown)
            self.groups.setdefault(key, []).append(values)
        for place in self.places(stream, one):
            self.kept[place].append(one)
        return set()


def grouped(r: random.Random, kind: str, *, tiny: bool = False) -> Grouped:
    """A random query of a kind."""
    make = Maker(r, kind, tiny=tiny)
    query = make.query()
    if r.random() < 0.15:
        count = Aggregate("rows", column(make.aliases[0], "x"))
        return Grouped(query, (), (count, r.choice((">", ">=")), r.choice((0, 1, 2, 2, 3, 5))))
    shown = [_aggregate(make, query) for _ in range(r.choice((1, 1, 1, 2, 2, 3)))]
    if r.random() < (0.6 if kind in ("few", "limited") else 0.1):
        argument = make.other(r.choice(make.aliases), "xy")
        others = [one for one in shown if _own(one) and r.random() < 0.5]
        shown = [Aggregate(r.choice(COUNTS), argument), *others]
    if r.random() < 0.1:
        shown.append(Aggregate("distinct", column(r.choice(make.aliases), "z")))
    having = None
    if r.random() < 0.2:
        one = r.choice(shown) if r.random() < 0.6 else _aggregate(make, query)
        if one.function in ("max", "min"):
            having = (one, r.choice((">", ">=")), make.number())
    return Grouped(query, tuple(shown), having)


def _own(one: Aggregate) -> bool:
    """True if the aggregate reads one source alone."""
    trees = (one.argument, *(() if one.only is None else (one.only,)))
    return len({alias for tree in trees for alias, _ in tree.columns()}) == 1


def _aggregate(make: Maker, query: Query) -> Aggregate:
    r = make.r
    a, b = r.choice(make.aliases), r.choice(make.aliases)
    function = r.choice(("max", "min"))
    x, y = make.other(a, "xy"), make.other(b, "xy")
    values = (
        x,
        of(r.choice("+-"), x, y),
        of("-", x, y),
        of("+", of("*", r.randint(2, 3), x), y),
        of("*", x, y),
        of("abs", of("-", x, y)),
        of("least", x, y),
        of("case", of(">", x, make.number()), y, x),
    )
    argument = r.choices(values, (6, 4, 3, 1, 2, 1, 1, 1))[0]
    compared = [one.parts[0] for one in query.conditions if one.operation in ("<", "<=", ">", ">=")]
    if compared and r.random() < 0.4:
        argument = r.choice(compared)  # often bounded
    if r.random() < 0.1:
        return Aggregate(r.choice(("bool_or", "bool_and")), of(make.side(), x, y))
    only = of(make.side(), make.other(a, "xy"), y if r.random() < 0.5 else make.number())
    return Aggregate(function, argument, only if r.random() < 0.15 else None)
