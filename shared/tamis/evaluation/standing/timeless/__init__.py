"""Queries over streams without time as standing queries, with bounded synopses.

| file | idea |
|---|---|
| `rows` | the rows of a query without aggregates |
| `unions` | the rows of a UNION from those of its SELECTs |
| `groups` | the changing rows of groups |
| `shown` | the rows that groups have in the result |
| `alternatives` | which way an alternative of a query is evaluated: `alone`, `counting`, `distinct` |
| `sifted` | which tuples belong to an alternative, and their values as numbers |
| `matches` | the rows under SELECT that a batch completes |
| `tallies` | counts, sums and extremes of a column: of tuples, buckets and groups |
| `values` | the values of a column in each group |
| `running`, `kernels` | running sums and extremes of many things at once |
| `kept`, `store` | which columns are kept of tuples, and rows of them |
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
