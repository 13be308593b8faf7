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

If the stream is joined with tables, the values of a table's columns are counted in the table's rows, and each
tuple counts as often as these have different values. A column of the stream that must equal a column of a
table has no other values than that. The rows of tables aren't entries: they don't change.

Of cumulative windows, the panes up to the end of the last window that has ended are one pane, as long as the
size at most. The other panes begin in a span of slide + delay + max_stall + max_ahead.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

from tamis.bounded.group_counts import Combinations, group_columns, repairs, tuples_in
from tamis.bounded.joined_tables import JoinedTables
from tamis.bounded.memory import EMPTY, Memory, no_number, sentences, undeclared
from tamis.bounded.timeless.repairs import MOST_REPAIRS
from tamis.declarations.definitions import Rate, Window
from tamis.declarations.streams import StreamDef
from tamis.durations import seconds
from tamis.expressions.nodes import Column
from tamis.plan.model import Kept
from tamis.query.model import Catalog, WindowGroupBy

WINDOWED = "aggregates of windows (groups x panes)"


def memory_verdict(query: WindowGroupBy, catalog: Catalog) -> Memory:
    """The verdict on a query with aggregates over windows."""
    found = _bounded(query, catalog)
    if found.bound is not None:
        return found
    return replace(found, repairs=tuple(itertools.islice(repairs(query, catalog, _bounded), MOST_REPAIRS)))


def _bounded(query: WindowGroupBy, catalog: Catalog) -> Memory:
    grouping, window = query.grouping, query.window
    (source,) = query.windowed
    stream = catalog.streams[source.stream]
    combinations = Combinations.of(query, catalog)
    if combinations is None:
        what = f"warning: {JoinedTables(query, catalog).contradiction}, so the query never has a row"
        return Memory("bounded", 0, "0", EMPTY, what)
    span = _span(stream, window)
    panes = -(-span // window.slide)
    entries = combinations.entries(tuples_in(stream, window.slide, "a pane"))
    ahead = f" + max_ahead({stream.name})" if stream.max_ahead is None else ""
    formula = f"{panes} (panes of {seconds(window.slide)} in {seconds(span)}{ahead}) * ({entries.text})"
    begun = combinations.entries(tuples_in(stream, window.size, "a window")) if window.cumulative else None
    if begun is not None:
        formula += f" + {begun.text} (of the windows that have begun)"
    if stream.max_ahead is None:
        missing = undeclared(replace(stream, keys=1, rate=stream.rate or Rate(1, 1)))
        return Memory("bounded", None, formula, WINDOWED, no_number([missing] if missing else []))
    if entries.count == math.inf:
        unlimited = entries.unlimited(group_columns(grouping))
        reason = _no_number(stream, [column for column in unlimited if column.alias == source.alias])
        return Memory("bounded", None, formula, WINDOWED, reason)
    total = panes * int(entries.count) + (0 if begun is None else int(begun.count))
    reason = f"a group is kept until the watermark passes the end of its window of {seconds(window.size)}"
    if entries.values:
        reason += ", with the values that median, percentiles and count(DISTINCT) need"
    return Memory("bounded", total, formula, WINDOWED, reason)


def kept(query: WindowGroupBy, catalog: Catalog) -> Kept | None:
    """The bound as entries of a pane, and the time for which a pane is kept; None if the bound is no
    number.

    Panes are kept longer if the frontier of a topic waits for tuples that edges hold back for other readers
    of the topic.
    """
    found, window = _bounded(query, catalog), query.window
    stream = catalog.streams[query.windowed[0].stream]
    combinations = Combinations.of(query, catalog)
    if found.bound is None or combinations is None:
        return None if found.bound is None else Kept(0, 0, 1)
    panes = -(-_span(stream, window) // window.slide)
    of_pane = int(combinations.entries(tuples_in(stream, window.slide, "a pane")).count)
    return Kept(_span(stream, window) - 1, of_pane, window.slide, found.bound - panes * of_pane)


def _span(stream: StreamDef, window: Window) -> int:
    """X of the module's docstring, in microseconds."""
    own = window.slide if window.cumulative else window.size
    return own + stream.delay + stream.max_stall + (stream.max_ahead or 0)


def _no_number(stream: StreamDef, unlimited: Sequence[Column]) -> str:
    named = " and ".join(dict.fromkeys(map(_named, unlimited)))
    missing = undeclared(stream)
    return sentences(
        no_number([f"nothing limits {named}", *([missing] if missing else [])]),
        "a group is kept until the watermark passes the end of its window",
    )


def _named(column: Column) -> str:
    """A column as in SQL. The name of a computed one is its expression."""
    return column.name if column.name.startswith("(") else f"{column.alias}.{column.name}"
