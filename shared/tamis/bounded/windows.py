"""Memory of the aggregates of windows, as a formula and, where enough is declared, as a number.

Windows begin at multiples of their slide. The state is divided into *panes*, which are one slide long. A pane
has an entry for each group, with counts, sums and extremes. For `median`, percentiles and
`count(DISTINCT)`, it also has an entry for each value.

A pane is dropped when the watermark passes the end of the last window that contains the pane. This is the
window that begins with the pane. The watermark is at most `delay + max_stall` behind the present, and no
tuple is ahead of the present by more than `max_ahead` (as in `join_bounds`; without `max_ahead` there is no
number). So the panes that are kept begin in a span of

    X = size + delay + max_stall + max_ahead,    of which there are at most  X / slide,  rounded up.

The number of groups in a pane is limited in two ways. It is at most the number of combinations of values of
the grouped columns, which follows from conditions, CHECKs, BOOLEAN and, for all KEY columns together, `keys`.
It is also at most the number of tuples in the pane, which follows from `rate` and `keys`: keys * count *
(slide / per, rounded up). The number of values is limited by the number of tuples in the same way.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tamis.bounded.conjunctive.bound import Factor, terms
from tamis.bounded.conjunctive.difference_bounds import Bound
from tamis.bounded.memory import EMPTY, Memory, no_number, sentences, undeclared
from tamis.bounded.timeless.aggregates import needs_all_values
from tamis.bounded.timeless.repairs import MOST_CHANGES, MOST_REPAIRS
from tamis.bounded.timeless.translate import translate
from tamis.durations import seconds
from tamis.expressions.nodes import Call, Column, Expr, Literal, Type
from tamis.expressions.sql_text import identifier
from tamis.plan.model import Kept
from tamis.query.computed_columns import limited, with_computed
from tamis.query.model import (
    WINDOW_COLUMNS,
    Catalog,
    Conjunct,
    Grouping,
    Output,
    Query,
    Rate,
    StreamDef,
    Window,
)

WINDOWED = "aggregates of windows (groups x panes)"


@dataclass(frozen=True)
class _Count:
    """A limit for the entries of a pane, and its formula; infinity where nothing limits them."""

    count: Bound
    text: str


def group_columns(grouping: Grouping) -> tuple[Column, ...]:
    """The columns in GROUP BY, without those of the window."""
    return tuple(column for column in grouping.by if column.name not in WINDOW_COLUMNS)


def memory_verdict(query: Query, catalog: Catalog) -> Memory:
    """The verdict on a query with aggregates over windows."""
    catalog = with_computed(catalog, query)
    found = _bounded(query, catalog)
    if found.bound is not None:
        return found
    return replace(found, repairs=tuple(itertools.islice(_repairs(query, catalog), MOST_REPAIRS)))


def _bounded(query: Query, catalog: Catalog) -> Memory:
    grouping, window = query.grouping, query.window
    assert grouping is not None
    assert window is not None
    stream = catalog.streams[query.sources[0].stream]
    by = group_columns(grouping)
    cases = _cases(query, catalog, by)
    if cases is None:
        what = "warning: the conditions contradict each other, so the query never has a row"
        return Memory("bounded", 0, "0", EMPTY, what)
    span = _span(stream, window)
    panes = -(-span // window.slide)
    tuples = _tuples(stream, window)
    groups = _fewer(tuples, cases)
    values = {
        column: _fewer(tuples, _cases(query, catalog, tuple(dict.fromkeys((*by, column)))) or [])
        for column in dict.fromkeys(one.column for one in grouping.aggregates if needs_all_values(one))
        if column is not None
    }
    parts = [groups, *values.values()]
    each = " + ".join([f"{groups.text} groups", *(f"{one.text} values" for one in values.values())])
    ahead = f" + max_ahead({stream.name})" if stream.max_ahead is None else ""
    formula = f"{panes} (panes of {seconds(window.slide)} in {seconds(span)}{ahead}) * ({each})"
    if stream.max_ahead is None:
        missing = undeclared(replace(stream, keys=1, rate=stream.rate or Rate(1, 1)))
        return Memory("bounded", None, formula, WINDOWED, no_number([missing] if missing else []))
    if any(one.count == math.inf for one in parts):
        unlimited = [column for column, one in values.items() if one.count == math.inf]
        reason = _no_number(stream, [*(by if groups.count == math.inf else ()), *unlimited])
        return Memory("bounded", None, formula, WINDOWED, reason)
    total = panes * sum(int(one.count) for one in parts)
    reason = f"a group is kept until the watermark passes the end of its window of {seconds(window.size)}"
    if values:
        reason += ", with the values that median, percentiles and count(DISTINCT) need"
    return Memory("bounded", total, formula, WINDOWED, reason)


def kept(query: Query, catalog: Catalog) -> Kept | None:
    """The bound as entries of a pane, and the time for which a pane is kept; None if the bound is no
    number.

    Panes are kept longer if the frontier of a topic waits for tuples that edges hold back for other readers
    of the topic.
    """
    found = _bounded(query, with_computed(catalog, query))
    assert query.window is not None
    slide, span = query.window.slide, _span(catalog.streams[query.sources[0].stream], query.window)
    return None if found.bound is None else Kept(span - 1, found.bound // -(-span // slide), slide)


def _span(stream: StreamDef, window: Window) -> int:
    """X of the module's docstring, in microseconds."""
    return window.size + stream.delay + stream.max_stall + (stream.max_ahead or 0)


def _cases(query: Query, catalog: Catalog, shown: Sequence[Column]) -> list[tuple[Factor, ...]] | None:
    """For each alternative of the conditions, how many values columns have; None if there is no
    alternative.
    """
    outputs = tuple(
        Output(f"{column.alias}.{column.name}", column) for column in limited(shown, query, catalog)
    )
    found = translate(Query(query.sources, query.conjuncts, outputs, True, True), catalog)
    if found.contradiction is not None or not found.branches:
        return None
    return [terms(one.conjunction, one.closure)[0].factors for one in found.branches]


def _fewer(tuples: _Count, cases: Sequence[tuple[Factor, ...]]) -> _Count:
    """The number of combinations of values, or the number of tuples in a pane if that is smaller."""
    total = sum((math.prod(factor.count for factor in case) for case in cases), 0)
    if total >= tuples.count:
        return tuples
    texts = [" * ".join(f"{factor.count} ({factor.of})" for factor in case) or "1" for case in cases]
    alike = [
        text if texts.count(text) == 1 else f"{texts.count(text)} * {text}" for text in dict.fromkeys(texts)
    ]
    return _Count(total, alike[0] if len(alike) == 1 else f"({' + '.join(alike)})")


def _tuples(stream: StreamDef, window: Window) -> _Count:
    """The number of tuples in a pane."""
    keys = stream.keys if stream.key else 1
    texts = f"keys({stream.name})" if keys is None else str(keys)
    if stream.rate is None:
        return _Count(math.inf, f"{texts} * rate({stream.name}) over {seconds(window.slide)}")
    times = -(-window.slide // stream.rate.per)
    count = math.inf if keys is None else keys * stream.rate.count * times
    return _Count(count, f"{texts} * {stream.rate.count} * {times} (tuples of {stream.name} in a pane)")


def _no_number(stream: StreamDef, columns: Sequence[Column]) -> str:
    named = " and ".join(dict.fromkeys(f"{column.alias}.{column.name}" for column in columns))
    missing = undeclared(stream)
    return sentences(
        no_number([f"nothing limits {named}", *([missing] if missing else [])]),
        "a group is kept until the watermark passes the end of its window",
    )


@dataclass(frozen=True)
class _Change:
    """A declaration of the stream, or a further condition, and its SQL."""

    text: str
    declared: StreamDef | None = None
    condition: Expr | None = None


def _repairs(query: Query, catalog: Catalog) -> Iterator[str]:
    """Declarations and conditions that would give the bound a number, the smallest number of them first. Each
    is tried.
    """
    stream = catalog.streams[query.sources[0].stream]
    if stream.max_ahead is None:
        yield f"WITH (max_ahead = '10 minutes') in stream {stream.name}"
        return
    changes = list(_changes(query, catalog, stream))
    for count in range(1, MOST_CHANGES + 1):
        found = False
        for chosen in itertools.combinations(changes, count):
            if _bounded(*_changed(query, catalog, chosen)).bound is not None:
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
    for column in limited((*group_columns(query.grouping), *read), query, catalog):
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
