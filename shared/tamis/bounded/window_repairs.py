"""Declarations and conditions that would give the bound of aggregates over windows a number."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from tamis.bounded.group_counts import group_columns
from tamis.bounded.joined_tables import JoinedTables
from tamis.bounded.memory import Memory
from tamis.bounded.timeless.aggregates import needs_all_values
from tamis.bounded.timeless.repairs import MOST_CHANGES
from tamis.expressions.nodes import Call, Expr, Literal, Type
from tamis.expressions.sql_text import identifier
from tamis.query.model import Catalog, Conjunct, Query, Rate, StreamDef


@dataclass(frozen=True)
class _Change:
    """A declaration of the stream, or a further condition, and its SQL."""

    text: str
    declared: StreamDef | None = None
    condition: Expr | None = None


def repairs(query: Query, catalog: Catalog, bounded: Callable[[Query, Catalog], Memory]) -> Iterator[str]:
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


def _changes(query: Query, catalog: Catalog, stream: StreamDef) -> Iterator[_Change]:
    """Single changes: missing declarations, and limits of the columns that the bound counts."""
    assert query.grouping is not None
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


def _changed(query: Query, catalog: Catalog, chosen: Sequence[_Change]) -> tuple[Query, Catalog]:
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
