"""How much memory the aggregates of windows need, as a formula and, where enough is declared, a number.

Windows begin at multiples of their slide, and are kept in panes as long as that: of each pane an entry for
each group, with counts, sums and extremes. Of what `median` and `count(DISTINCT)` are asked, every value is
an entry besides. A pane goes once the watermark has passed the end of the last window that has it, which is
the window that begins with it. The watermark is at most `delay + max_stall` behind the present, and no tuple
is ahead of it by more than `max_ahead` (as in `bounds`). So the panes that are kept begin in a span of

    X = size + delay + max_stall + max_ahead,    of which there are at most  X / slide,  rounded up.

A pane has at most as many groups as their columns have values by the conditions, CHECK and BOOLEAN, where
`keys` limits the KEY columns together; and no more groups or values than tuples, of which `rate` and `keys`
limit the number: keys * count * (slide / per, rounded up).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tamis.bounded.bound import Factor, terms
from tamis.bounded.closure import Bound
from tamis.expressions.nodes import Call, Column, Expr, Literal, Type
from tamis.expressions.sql_text import identifier
from tamis.planning.bounds import EMPTY, Memory
from tamis.planning.plan import Kept
from tamis.planning.spans import seconds
from tamis.planning.timeless.grouped import whole
from tamis.planning.timeless.repairs import MOST_REPAIRS
from tamis.planning.timeless.translate import translate
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
class _Part:
    """At most `count` things in a pane, and why; infinity where nothing limits them."""

    count: Bound
    text: str


def group_columns(grouping: Grouping) -> tuple[Column, ...]:
    """What GROUP BY names besides the window."""
    return tuple(column for column in grouping.by if column.name not in WINDOW_COLUMNS)


def memory(query: Query, catalog: Catalog) -> Memory:
    """How much memory a query with aggregates over windows needs."""
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
        for column in dict.fromkeys(one.column for one in grouping.aggregates if whole(one))
        if column is not None
    }
    parts = [groups, *values.values()]
    each = " + ".join([f"{groups.text} groups", *(f"{one.text} values" for one in values.values())])
    formula = f"{panes} (panes of {seconds(window.slide)} in {seconds(span)}) * ({each})"
    if any(one.count == math.inf for one in parts):
        endless = [column for column, one in values.items() if one.count == math.inf]
        reason = _no_number(stream, [*(by if groups.count == math.inf else ()), *endless])
        return Memory("bounded", None, formula, WINDOWED, reason)
    total = panes * sum(int(one.count) for one in parts)
    reason = f"a group is kept until the watermark passes the end of its window of {seconds(window.size)}"
    if values:
        reason += ", with the values that median and count(DISTINCT) need"
    return Memory("bounded", total, formula, WINDOWED, reason)


def kept(query: Query, catalog: Catalog) -> Kept | None:
    """The bound as entries of a pane, and how long a pane is kept: where a topic's frontier waits for what
    edges hold for others that read it, panes are kept longer. None where the bound is no number.
    """
    found = _bounded(query, catalog)
    assert query.window is not None
    slide, span = query.window.slide, _span(catalog.streams[query.sources[0].stream], query.window)
    return None if found.bound is None else Kept(span - 1, found.bound // -(-span // slide), slide)


def _span(stream: StreamDef, window: Window) -> int:
    """X of the module's docstring, microseconds."""
    return window.size + stream.delay + stream.max_stall + (stream.max_ahead or 0)


def _cases(query: Query, catalog: Catalog, shown: Sequence[Column]) -> list[tuple[Factor, ...]] | None:
    """For each alternative of the conditions, how many values columns have; None where there is none."""
    outputs = tuple(Output(f"{column.alias}.{column.name}", column) for column in shown)
    found = translate(Query(query.sources, query.conjuncts, outputs, True, True), catalog)
    if found.contradiction is not None or not found.branches:
        return None
    return [terms(one.conjunction, one.closure)[0].factors for one in found.branches]


def _fewer(tuples: _Part, cases: Sequence[tuple[Factor, ...]]) -> _Part:
    """As many as the columns have values together, or the tuples of a pane where these are fewer."""
    total = sum((math.prod(factor.count for factor in case) for case in cases), 0)
    if total >= tuples.count:
        return tuples
    said = [" * ".join(f"{factor.count} ({factor.of})" for factor in case) or "1" for case in cases]
    alike = [
        text if said.count(text) == 1 else f"{said.count(text)} * {text}" for text in dict.fromkeys(said)
    ]
    return _Part(total, alike[0] if len(alike) == 1 else f"({' + '.join(alike)})")


def _tuples(stream: StreamDef, window: Window) -> _Part:
    """The tuples of a pane."""
    keys = stream.keys if stream.key else 1
    said = f"keys({stream.name})" if keys is None else str(keys)
    if stream.rate is None:
        return _Part(math.inf, f"{said} * rate({stream.name}) over {seconds(window.slide)}")
    times = -(-window.slide // stream.rate.per)
    count = math.inf if keys is None else keys * stream.rate.count * times
    return _Part(count, f"{said} * {stream.rate.count} * {times} (tuples of {stream.name} in a pane)")


def _no_number(stream: StreamDef, columns: Sequence[Column]) -> str:
    named = " and ".join(dict.fromkeys(f"{column.alias}.{column.name}" for column in columns))
    lacks = [name for name, value in (("keys", stream.keys), ("rate", stream.rate)) if value is None]
    if not stream.key:
        lacks = [name for name in lacks if name != "keys"]
    return (
        "bounded by time, since a group is kept until the watermark passes the end of its window; no number,"
        f" since nothing limits {named}, and stream {stream.name} declares no {' and no '.join(lacks)}"
    )


def _repairs(query: Query, catalog: Catalog) -> Iterator[str]:
    """What would give the bound a number, each tried, the fewest first."""
    assert query.grouping is not None
    stream = catalog.streams[query.sources[0].stream]
    read = [one.column for one in query.grouping.aggregates if whole(one) and one.column is not None]
    changes: list[tuple[str, StreamDef | None, Expr | None]] = []
    if stream.rate is None:
        changes.append(("WITH (rate = '10/s')", replace(stream, rate=Rate(10, 1_000_000)), None))
    if stream.keys is None and stream.key:
        changes.append(("WITH (keys = 1000)", replace(stream, keys=1000), None))
    for column in dict.fromkeys((*group_columns(query.grouping), *read)):
        name = f"{identifier(column.alias)}.{identifier(column.name)}"
        if column.type is Type.VARCHAR:
            literal = Literal("…", Type.VARCHAR)
            changes.append((f"AND {name} = '…'", None, Call("=", (column, literal), Type.BOOLEAN)))
        elif column.type.integral and column.name != stream.time:
            low, high = Literal(0, column.type), Literal(100, column.type)
            ends = (
                Call(">=", (column, low), Type.BOOLEAN),
                Call("<=", (column, high), Type.BOOLEAN),
            )
            changes.append((f"AND {name} BETWEEN 0 AND 100", None, Call("and", ends, Type.BOOLEAN)))
    found = False
    for count in (1, 2, 3):
        for chosen in itertools.combinations(changes, count):
            changed = query
            known = catalog.copy()
            for _, declared, condition in chosen:
                if declared is not None:
                    before = known.streams[stream.name]
                    both = replace(
                        before, rate=declared.rate or before.rate, keys=declared.keys or before.keys
                    )
                    known.streams[stream.name] = both
                if condition is not None:
                    conjuncts = (*changed.conjuncts, Conjunct(condition, ""))
                    changed = replace(changed, conjuncts=conjuncts)
            if _bounded(changed, known).bound is not None:
                found = True
                yield " and ".join(
                    text if condition is not None else f"{text} in stream {stream.name}"
                    for text, _, condition in chosen
                )
        if found:
            return
