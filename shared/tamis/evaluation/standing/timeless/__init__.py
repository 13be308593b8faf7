"""Queries over streams without time as standing queries, with bounded synopses.

| file | idea |
|---|---|
| `conjunct` | one alternative of a query |
| `arrivals` | batches of several streams in their order |
| `rows` | the rows of a query without aggregates |
| `unions` | the rows of a UNION from those of its SELECTs |
| `tallies` | counts, sums and extremes of a bucket or group |
| `groups` | the changing rows of groups |
| `state` | what they keep as bytes |
"""

from tamis.evaluation.standing.timeless.groups import Groups
from tamis.evaluation.standing.timeless.rows import Given, SelectProjectJoin
from tamis.evaluation.standing.timeless.unions import Union
from tamis.query.model import Catalog, Query

__all__ = ["timeless"]


def timeless(query: Query, catalog: Catalog) -> Union | Groups | SelectProjectJoin:
    """A query over streams without time, fresh."""
    if query.members:
        return Union(query, catalog)
    if query.grouping is not None:
        return Groups(query, query.grouping, catalog)
    return SelectProjectJoin(query, catalog, Given() if query.distinct else None)
