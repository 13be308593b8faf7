"""The readings that can pass the filters of a watched stream: often only those that match a pattern."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tamis.expressions.nodes import COMPARISONS, Call, Column, Expr
from tamis.plan.model import StreamPlan
from tamis.query.watches import AnyWatch, Watch
from tamis.watching.watched_columns import AddedColumns, WatchedColumns
from tamis_edge.core.messages.keys import Int64s


def needed_matches(filter_: Expr | None, watches: Sequence[AnyWatch]) -> frozenset[int] | None:
    """Watches of which one matches at each reading that passes the filter, as places in `watches`; None if a
    reading may pass at which no pattern matches.
    """
    places = {
        column: place
        for place, watch in enumerate(watches)
        if isinstance(watch, Watch)
        for column in watch.columns
    }
    return None if filter_ is None else _needed(filter_, places)


def _needed(filter_: Expr, places: Mapping[Column, int]) -> frozenset[int] | None:
    match filter_:
        case Call("and", parts):
            known = [found for part in parts if (found := _needed(part, places)) is not None]
            return min(known, key=len, default=None)
        case Call("or", parts):
            all_parts = [_needed(part, places) for part in parts]
            return None if None in all_parts else frozenset().union(*filter(None, all_parts))
        case Call("not", (Call("is_null", (Column() as column,)),)) if column in places:
            return frozenset((places[column],))
        case Call(op, arguments) if op in COMPARISONS:
            # A comparison with NULL is not true.
            compared = [places[one] for one in arguments if isinstance(one, Column) and one in places]
            return frozenset(compared[:1]) or None
    return None


class MatchingRows:
    """The readings of a batch that a watched stream must look at."""

    def __init__(self, stream: StreamPlan) -> None:
        filters = [entry.filter for topic in stream.topics for entry in topic.entries]
        found = [needed_matches(one, stream.all_watches) for one in filters]
        self._all = None in found
        self._watches = sorted(frozenset().union(*filter(None, found)))

    def of(self, columns: Sequence[AddedColumns], count: int) -> Int64s:
        """The rows, ascending. `columns`: of the stream's watches, in a batch of `count` readings."""
        if self._all:
            return np.arange(count)
        matching = (columns[place] for place in self._watches)
        return _union(one.rows for one in matching if isinstance(one, WatchedColumns))


def _union(rows: Iterable[Int64s]) -> Int64s:
    return np.unique(np.concatenate([np.empty(0, np.int64), *rows]))
