"""Examples by which linear conditions between two streams need unlimited memory.

For `s.x + t.x > 150 AND s.y + t.y > 90` take tuples of s with x rising and y falling by the same step, and
tuples of t with x falling and y rising. With the first condition the k-th tuple of s joins the i-th one of t
only if k >= i, and with the second only if k <= i. So each tuple of t tells whether one tuple of s was there,
for any number of tuples, with values that grow only with this number. An evaluator with a limited number of
values has too few states. `linear_steps` has the steps.

- A greatest value is reached by the numbers z with `z <= f`, the second condition: let f fall where the first
  condition rises. The i-th tuple of t joins those of s from the i-th one on, and shows whether that one was
  there, because its f is the greatest.
- Counts, sums and rows without DISTINCT need one condition. The rows with the i-th tuple of t are more than
  those without the i-th tuple of s, and a mean changes, because it has the least or the greatest value of
  these tuples.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tamis.analysis.conjuncts import flatten_and
from tamis.bounded.examples.proof import admitted
from tamis.bounded.examples.rows_as_written import RowsAsWritten
from tamis.bounded.examples.sql_values import SqlTuple
from tamis.bounded.representatives.aggregates import NUMBERS, written
from tamis.bounded.representatives.linear_steps import Linear, Steps, between, steps, total
from tamis.bounded.timeless.differences import one_to_one
from tamis.declarations.aggregates import Aggregate
from tamis.declarations.streams import StreamDef
from tamis.expressions.nodes import Column, Expr, Type, columns
from tamis.expressions.sql_text import to_sql
from tamis.expressions.vectors import Value
from tamis.query.model import Catalog, TimelessGroupBy, TimelessSelect

# The example is run with so many tuples of each stream: three show the step, eight that it goes on.
_RUNS = (3, 8)
_DEFAULTS: Mapping[Type, Value] = {Type.BOOLEAN: False, Type.VARCHAR: "x", Type.DOUBLE: 1.0}
_NUMBER = Column(NUMBERS, "0", Type.BIGINT)

_Query = TimelessSelect | TimelessGroupBy


@dataclass(frozen=True)
class Staircase:
    """Tuples of two streams: the k-th one of the second tells whether the k-th one of the first was there."""

    stream: str
    columns: tuple[str, ...]  # those of the first stream that differ
    stored: tuple[Mapping[str, Value], ...]
    other: str
    reason: str

    def scenario(self) -> str:
        """The example for people."""
        shown = ", ".join(
            "(" + ", ".join(str(one[name]) for name in self.columns) + ")" for one in self.stored
        )
        return (
            f"any number of tuples of {self.stream} with ({', '.join(self.columns)}) = {shown}, …: later"
            f" tuples of {self.other} give different rows for each subset of these"
        )


def staircase(query: _Query, catalog: Catalog) -> Staircase | None:
    """The example by which a join of two streams is unbounded; None if it has none of these forms, or if the
    conditions as they are written don't hold for it.
    """
    streams = {source.alias: catalog.streams[source.stream] for source in query.sources}
    if len(streams) != 2 or len({one.name for one in streams.values()}) != 2 or _hiding(query):
        return None
    parts = [part for one in query.conjuncts for part in flatten_and(one.expr)]
    for first, second in itertools.permutations(streams):
        for found in _candidates(query, parts, first, second):
            if not _free(found, query, parts, streams):
                continue
            made = [_tuples(found.steps, streams, (first, second), size) for size in _RUNS]
            if all(_told(query, catalog, size, one) for size, one in zip(_RUNS, made, strict=True)):
                moving = {c.name for c, step in found.steps.step.items() if c.alias == first and step}
                stored = tuple(values for _, values in made[0][: _RUNS[0]])
                names = streams[first].name, streams[second].name
                return Staircase(names[0], tuple(sorted(moving)), stored, names[1], found.reason)
    return None


@dataclass(frozen=True)
class _Candidate:
    """Steps along which all but `used` conditions must not change, and why they need memory."""

    steps: Steps
    used: int
    reason: str


def _candidates(query: _Query, parts: Sequence[Expr], first: str, second: str) -> Iterator[_Candidate]:
    """The steps by pairs of conditions and aggregates, with the kept tuples in the source `first`."""
    conditions = [(to_sql(part), one) for part in parts if (one := between(part, first, second)) is not None]
    shown = _shown(query)
    pairs = [(left, right, 2) for left, right in itertools.combinations(conditions, 2)]
    for aggregate in shown:
        if aggregate.function in ("min", "max") and aggregate.column is not None:
            argument = written(aggregate.column, query)
            value = total(argument)
            if value is not None and value.of(first):
                reached = value.reached(_NUMBER, greatest=aggregate.function == "max")
                text = f"{aggregate.function}({to_sql(argument)})"
                pairs += ((left, (text, reached), 1) for left in conditions)
    plain = isinstance(query, TimelessSelect) and not query.distinct
    for (left_text, left), (right_text, right), used in () if plain else pairs:
        found = steps(left, right, first)
        if found is not None:
            by = f"{left_text} and {right_text}"
            why = f"later tuples of {second} may tell any two tuples of {first} apart, by {by}"
            yield _Candidate(found, used, why)
    counted = [one for one in shown if one.function in ("count", "sum", "avg") and not one.distinct]
    for text, left in conditions if plain or counted else ():
        found = steps(left, Linear(left.of(first), 0).reached(_NUMBER, greatest=False), first)
        if found is not None:
            why = (
                f"the number of tuples of {first} that a later tuple of {second} joins depends on all of"
                f" their values so far ({text}), and nothing bounds these"
            )
            yield _Candidate(_with_arguments(found, counted, query, first), 1, why)


def _hiding(query: _Query) -> bool:
    """True if HAVING may hide the rows by which tuples are told apart: if it reads an aggregate."""
    having = query.grouping.having if isinstance(query, TimelessGroupBy) else None
    return having is not None and any(not column.alias for column in columns(having))


def _shown(query: _Query) -> list[Aggregate]:
    """The aggregates whose values SELECT shows, with linear arguments."""
    if not isinstance(query, TimelessGroupBy):
        return []
    grouping = query.grouping
    seen = {one_to_one(output.expr) for output in query.select}
    every = [one for number, one in enumerate(grouping.aggregates) if grouping.value(number) in seen]
    return [one for one in every if one.column is None or total(written(one.column, query)) is not None]


def _with_arguments(found: Steps, counted: Sequence[Aggregate], query: _Query, first: str) -> Steps:
    """The steps in which arguments of aggregates differ, too: a mean of equal values never changes."""
    base, step = {**found.base}, {**found.step}
    for one in counted:
        for column in () if one.column is None else columns(written(one.column, query)):
            if column.alias == first and column not in base:
                base[column] = step[column] = 1
    return replace(found, base=base, step=step)


def _free(found: _Candidate, query: _Query, parts: Sequence[Expr], streams: Mapping[str, StreamDef]) -> bool:
    """True if nothing else limits the columns that move, and no column that tells rows apart moves."""
    moving = {*found.steps.base} - {_NUMBER}
    telling = [output.expr for output in query.select]
    if isinstance(query, TimelessGroupBy):
        telling = [written(column, query) for column in query.grouping.by]
    elif not query.distinct:
        telling = []
    if any(moving & set(columns(one)) for one in telling):
        return False
    if sum(bool(moving & set(columns(part))) for part in parts) != found.used:
        return False
    for column in moving:
        stream = streams[column.alias]
        definition = stream.column(column.name)
        checked = {one.name for other in stream.columns if other.check for one in columns(other.check)}
        if definition is None or definition.computed is not None or column.name in {*checked, *stream.key}:
            return False
    return True


def _tuples(
    found: Steps, streams: Mapping[str, StreamDef], order: Sequence[str], size: int
) -> list[SqlTuple]:
    """So many tuples of each source."""
    made: list[SqlTuple] = []
    for alias in order:
        for number in range(size):
            values = {
                column.name: value + number * found.step.get(column, 0)
                for column, value in found.base.items()
                if column.alias == alias
            }
            made.append((streams[alias].name, {**_others(streams[alias]), **values}))
    return made


def _others(stream: StreamDef) -> dict[str, Value]:
    return {one.name: _DEFAULTS.get(one.type, 1) for one in stream.columns if one.computed is None}


def _told(query: _Query, catalog: Catalog, size: int, tuples: list[SqlTuple]) -> bool:
    """True if the query as it is written gives different rows for each subset of the first tuples."""
    if not admitted(catalog, tuples):
        return False
    rows = RowsAsWritten(query, catalog, tuples)
    later = [frozenset((size + one,)) for one in range(size)]
    subsets = (
        frozenset(one) for count in range(size + 1) for one in itertools.combinations(range(size), count)
    )
    seen = {tuple(rows.added(one, more) for more in later) for one in subsets}
    return bool(len(seen) == 2**size)
