"""Counts of the groups and values of aggregates over the tuples of a span of event time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from tamis.bounded.joined_tables import JoinedTables, ValueLimits
from tamis.bounded.memory import Memory
from tamis.bounded.timeless.repairs import MOST_CHANGES
from tamis.declarations.aggregates import needs_all_values
from tamis.declarations.definitions import WINDOW_COLUMNS, Rate
from tamis.declarations.streams import StreamDef
from tamis.difference_bounds import Bound
from tamis.durations import seconds
from tamis.expressions.nodes import Call, Column, Expr, Literal, Type
from tamis.expressions.sql_text import identifier
from tamis.query.model import Catalog, Conjunct, Grouping, SessionGroupBy, WindowGroupBy

_GroupBy = TypeVar("_GroupBy", WindowGroupBy, SessionGroupBy)


@dataclass(frozen=True)
class Count:
    """A limit for a number of entries, and its formula; infinity where nothing limits them."""

    count: Bound
    text: str


def group_columns(grouping: Grouping) -> tuple[Column, ...]:
    """The columns in GROUP BY, without those of the window."""
    return tuple(column for column in grouping.by if column.name not in WINDOW_COLUMNS)


@dataclass(frozen=True)
class Combinations:
    """Numbers of combinations of values that the conditions allow: for the groups, and for each column of
    which all values are needed. `keys_of`: the stream whose keys the groups are, if they are.
    """

    groups: ValueLimits
    values: dict[Column, ValueLimits]
    keys_of: str = ""

    @staticmethod
    def of(query: WindowGroupBy | SessionGroupBy, catalog: Catalog) -> Combinations | None:
        """Those of a query; None if it never has a row. Raises InputError if a table can't be read."""
        by, joined = group_columns(query.grouping), JoinedTables(query, catalog)
        if joined.contradiction is not None:
            return None
        read = dict.fromkeys(one.column for one in query.grouping.aggregates if needs_all_values(one))
        return Combinations(
            joined.limits(by),
            {
                column: joined.limits(tuple(dict.fromkeys((*by, column))))
                for column in read
                if column is not None
            },
            _stream_of_keys(query, catalog),
        )

    def entries(self, tuples: Count) -> Entries:
        """The entries of a span in which there are so many tuples."""
        groups = fewer(tuples, self.groups)
        if groups.count == math.inf and self.keys_of:
            groups = Count(math.inf, f"keys({self.keys_of})")
        return Entries(groups, {column: fewer(tuples, one) for column, one in self.values.items()})


def _stream_of_keys(query: WindowGroupBy | SessionGroupBy, catalog: Catalog) -> str:
    """The stream of a query whose groups are no more than its keys; empty for other groups."""
    by = group_columns(query.grouping)
    if len(query.sources) > 1 or not by:
        return ""
    stream = catalog.streams[query.sources[0].stream]
    return stream.name if {column.name for column in by} <= set(stream.key) else ""


@dataclass(frozen=True)
class Entries:
    """Limits for the entries of one span: its groups, and the values of columns with their groups."""

    groups: Count
    values: dict[Column, Count]

    @property
    def count(self) -> Bound:
        """All of them together."""
        return self.groups.count + sum(one.count for one in self.values.values())

    @property
    def text(self) -> str:
        """The formula."""
        return " + ".join(
            [f"{self.groups.text} groups", *(f"{one.text} values" for one in self.values.values())]
        )

    def unlimited(self, by: Sequence[Column]) -> list[Column]:
        """The columns that nothing limits; `by` are those of the groups."""
        values = [column for column, one in self.values.items() if one.count == math.inf]
        return [*(by if self.groups.count == math.inf else ()), *values]


def fewer(tuples: Count, limits: ValueLimits) -> Count:
    """The number of combinations of values, or that of the tuples with rows of tables if it is smaller."""
    cases = limits.cases
    often = math.prod(factor.count for factor in limits.each)
    text = "".join(f" * {factor.count} ({factor.of})" for factor in limits.each)
    tuples = Count(tuples.count * often, tuples.text + text)
    total = sum((math.prod(factor.count for factor in case) for case in cases), 0)
    if total >= tuples.count:
        return tuples
    texts = [" * ".join(f"{factor.count} ({factor.of})" for factor in case) or "1" for case in cases]
    alike = [
        text if texts.count(text) == 1 else f"{texts.count(text)} * {text}" for text in dict.fromkeys(texts)
    ]
    return Count(total, alike[0] if len(alike) == 1 else f"({' + '.join(alike)})")


def tuples_in(stream: StreamDef, span: int, what: str) -> Count:
    """The number of tuples of a half-open span of event time in microseconds, which the formula calls
    `what`.
    """
    keys = stream.keys if stream.key else 1
    texts = f"keys({stream.name})" if keys is None else str(keys)
    named = f" (tuples of {stream.name} in {what})"
    if stream.rate is None:
        return Count(math.inf, f"{texts} * rate({stream.name}) over {seconds(span)}{named}")
    times = -(-span // stream.rate.per)
    count = math.inf if keys is None else keys * stream.rate.count * times
    return Count(count, f"{texts} * {stream.rate.count} * {times}{named}")


@dataclass(frozen=True)
class _Change:
    """A declaration of the stream, or a further condition, and its SQL."""

    text: str
    declared: StreamDef | None = None
    condition: Expr | None = None


def repairs(
    query: _GroupBy, catalog: Catalog, bounded: Callable[[_GroupBy, Catalog], Memory]
) -> Iterator[str]:
    """Declarations and conditions that would give the bound a number, the smallest number of them first. Each
    is tried with `bounded`.
    """
    stream = catalog.streams[query.windowed[0].stream]
    if stream.max_ahead is None:
        yield f"WITH (max_ahead = '10 minutes') in stream {stream.name}"
        return
    changes = list(_changes(query, catalog, stream))
    for count in range(1, MOST_CHANGES + 1):
        found = False
        for chosen in itertools.combinations(changes, count):
            if bounded(*_changed(query, catalog, chosen)).bound is not None:
                found = True
                yield " and ".join(
                    f"{one.text} in stream {stream.name}"
                    if one.declared is not None
                    else one.text.replace("AND ", "the condition " if at else "AND ", 1)
                    for at, one in enumerate(chosen)
                )
        if found:
            return


def _changes(query: WindowGroupBy | SessionGroupBy, catalog: Catalog, stream: StreamDef) -> Iterator[_Change]:
    """Single changes: missing declarations, and limits of the columns that the bound counts."""
    if stream.rate is None:
        yield _Change("WITH (rate = '10/s')", declared=replace(stream, rate=Rate(10, 1_000_000)))
    if stream.keys is None and stream.key:
        yield _Change("WITH (keys = 1000)", declared=replace(stream, keys=1000))
    read = [
        one.column for one in query.grouping.aggregates if needs_all_values(one) and one.column is not None
    ]
    for column in JoinedTables(query, catalog).of_stream((*group_columns(query.grouping), *read)):
        name = f"{identifier(column.alias)}.{identifier(column.name)}"
        if column.type is Type.VARCHAR:
            equal = Call("=", (column, Literal("…", Type.VARCHAR)), Type.BOOLEAN)
            yield _Change(f"AND {name} = '…'", condition=equal)
        elif column.type.integral and column.name != stream.time:
            low = Call(">=", (column, Literal(0, column.type)), Type.BOOLEAN)
            high = Call("<=", (column, Literal(100, column.type)), Type.BOOLEAN)
            within = Call("and", (low, high), Type.BOOLEAN)
            yield _Change(f"AND {name} BETWEEN 0 AND 100", condition=within)


def _changed(query: _GroupBy, catalog: Catalog, chosen: Sequence[_Change]) -> tuple[_GroupBy, Catalog]:
    """The query and the catalogue with some changes."""
    catalog = catalog.copy()
    for one in chosen:
        if one.declared is not None:
            before = catalog.streams[one.declared.name]
            catalog.streams[before.name] = replace(
                before, rate=one.declared.rate or before.rate, keys=one.declared.keys or before.keys
            )
        if one.condition is not None:
            query = replace(query, conjuncts=(*query.conjuncts, Conjunct(one.condition, "")))
    return query, catalog
