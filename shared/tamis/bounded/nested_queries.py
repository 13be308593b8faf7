"""Memory of queries over rows of other queries: the sum over all of their queries.

A stream of aggregates declares nothing, so its limits follow from the query that makes its rows:

- Its watermark is that of the raw streams or later, and no row comes before its window has ended. So delay,
  max_stall and max_ahead are at most the greatest ones of the raw streams.
- Each group has at most one row in each slide. A window has at most as many groups as their columns have
  combinations of values, or as it has tuples. If the rows show all columns of the group, these are the KEY,
  with this number of keys and one row of a key in a slide. Otherwise the rows of all groups together have
  this rate.

The limits of the rows of a join by time are in `timed_joins`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from tamis.bounded import timed_joins
from tamis.bounded.group_counts import Combinations, group_columns, tuples_in
from tamis.bounded.memory import EMPTY, Memory
from tamis.declarations.definitions import Rate
from tamis.declarations.streams import StreamDef
from tamis.query.model import (
    Catalog,
    InnerQuery,
    JoinByTime,
    NestedQuery,
    OuterQuery,
    RowStream,
    WindowGroupBy,
    last_query,
)

Decide = Callable[[InnerQuery | OuterQuery, Catalog], Memory]


def memory_verdict(query: NestedQuery, catalog: Catalog, decide: Decide) -> Memory:
    """The verdict on a nested query; `decide` gives the verdict on each of its queries.

    If an inner query has no number, or isn't bounded, this decides: the outer one can't have a number then.
    """
    inner = [decide(one.query, catalog) for one in query.streams]
    failing = next((one for one in inner if one.verdict != "bounded"), None)
    if failing is not None:
        return failing
    found = decide(query.query, catalog_of(query, catalog))
    every = [*inner, found]
    never = next((one for one in every if one.theorem == EMPTY), None)
    if never is not None:
        # The other queries keep their tuples all the same.
        total = [one.bound for one in every]
        known = None if None in total else sum(one for one in total if one is not None)
        return replace(never, bound=known, formula=" + ".join(one.formula for one in every if one.formula))
    if found.verdict != "bounded":
        return found
    open_ = next((one for one in every if one.bound is None), None)
    bounds = [one.bound for one in every if one.bound is not None]
    kept = [one for one in every if one.bound != 0] or every[:1]
    theorem = " and ".join(dict.fromkeys(one.theorem for one in kept))
    formula = " + ".join(one.formula for one in kept)
    told = open_ or inner[0]
    names = tuple(one.name for one in query.streams)
    repairs = tuple(one for one in told.repairs if not any(f"in stream {name}" in one for name in names))
    return Memory("bounded", sum(bounds) if open_ is None else None, formula, theorem, told.reason, repairs)


def catalog_of(query: NestedQuery, catalog: Catalog) -> Catalog:
    """The catalogue that also has the streams of aggregates of a nested query, with their limits."""
    found = catalog.copy()
    for stream in query.streams:
        found.streams[stream.name] = _limited(stream, catalog)
    return found


def _limited(stream: RowStream, catalog: Catalog) -> StreamDef:
    """A stream of aggregates with the limits that follow from its query."""
    made = stream.query
    if isinstance(made, JoinByTime):
        return timed_joins.limited(stream, made, catalog)
    query, known = last_query(made), catalog_of(made, catalog) if isinstance(made, NestedQuery) else catalog
    assert isinstance(query, WindowGroupBy), "only aggregates of windows are streams of rows"
    bases = [known.streams[one.stream] for one in query.sources if one.stream in known.streams]
    ahead = [one.max_ahead for one in bases]
    lags = replace(
        stream,
        delay=max(one.delay for one in bases),
        max_stall=max(one.max_stall for one in bases),
        max_ahead=None if None in ahead else max(one for one in ahead if one is not None),
    )
    groups = _groups(query, known)
    every = {output.expr for output in query.select}
    if all(column in every for column in group_columns(query.grouping)):
        return replace(lags, keys=groups, rate=Rate(1, query.window.slide))
    columns = tuple(replace(column, key=False) for column in lags.columns)
    return replace(lags, columns=columns, rate=None if groups is None else Rate(groups, query.window.slide))


def _groups(query: WindowGroupBy, catalog: Catalog) -> int | None:
    """The greatest number of groups in a window; None if nothing limits it."""
    window, combinations = query.window, Combinations.of(query, catalog)
    if combinations is None:
        return 1
    (source,) = query.windowed
    found = combinations.entries(tuples_in(catalog.streams[source.stream], window.size, "a window")).groups
    return None if found.count == math.inf else max(1, int(found.count))
