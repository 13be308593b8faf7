"""Which queries are evaluated in application time."""

from __future__ import annotations

from tamis.planning.analysis import analyse
from tamis.query.model import Catalog, Query


def open_ended(query: Query, catalog: Catalog) -> bool:
    """Is it a join over event time in which two tuples may lie apart as far as they like? The join by time
    would keep all tuples for ever.
    """
    if query.timeless or query.in_time or query.grouping is not None or query.window is not None:
        return False
    if len(query.sources) < 2:
        return False
    found = analyse(query, catalog)
    return not found.refused and found.contradiction is None and bool(found.closure.unconnected())
