"""Placement: which half of an operator runs at edges.

Edges run the lower half of aggregates of windows: they publish partial aggregates of panes in place of
tuples. All other operators run at the joiner as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping

from tamis.expressions.nodes import Expr
from tamis.operators.windows.shared_panes import group_expressions
from tamis.plan.model import PaneGrid, PartialAggregation
from tamis.plan.nodes import (
    ApplicationTime,
    Grouping,
    Groups,
    LatestValues,
    Nested,
    Node,
    Representatives,
    Rows,
    Sessions,
    TimeJoin,
    Union,
    Windows,
)
from tamis.query.model import AlertDef
from tamis.sharing.partial_groupings import mergeable

RAW = "WITH (edge = 'raw')"

# Why an operator runs at the joiner as a whole.
_WHOLE: Mapping[type[Node], str] = {
    LatestValues: "each of them can be the latest: another shard, a tie in time or a late reading can tell"
    " equal values apart",
    Sessions: "a session in parts can begin before and end after the time that the joiner has reached without"
    " a shard that was gone",
    ApplicationTime: "each of them can be combined with readings of any later time",
    Rows: "streams without time have no panes that end",
    Union: "streams without time have no panes that end",
    Representatives: "streams without time have no panes that end",
    Groups: "each of them may give a row at once",
    TimeJoin: "a join needs the readings themselves",
    Nested: "they are read by a query over the rows of others",
}


def lower_half(alert: AlertDef, node: Node) -> Grouping | str:
    """The grouping of the partial aggregates that edges publish for an alert; or why they publish
    readings one by one, for people.
    """
    if why := why_readings(alert):
        return why
    if not isinstance(node, Windows):
        return _WHOLE[type(node)]
    if node.tables:
        return "readings are joined with a table"
    python = "functions of Python may fail, or give another value, when a reading is read again"
    return mergeable(node) or python


def why_readings(alert: AlertDef) -> str:
    """Why edges publish every reading for an alert, whatever its query is; empty if nothing asks for it."""
    if alert.options.edge == "raw":
        return f"the alert says {RAW}"
    if alert.options.from_ is not None:
        return "readings from before the alert was created count, too"
    if alert.query.watched:
        return "edges add values of patterns and window functions to each of them"
    return ""


def partial_aggregation(
    alert: AlertDef, node: Node, lower: Grouping | str, version: int
) -> PartialAggregation | None:
    """The partial aggregates that edges publish for an alert of plan `version`, of which `lower` is the lower
    half; None for readings.
    """
    if not isinstance(node, Windows) or isinstance(lower, str):
        return None
    window = node.window
    grid = PaneGrid(f"{alert.name}@{version}", version, window.slide, window.offset)
    return PartialAggregation(lower, (grid,))


def groups_of(lower: Grouping | str) -> tuple[Expr, ...] | None:
    """The expressions by which a lower half groups. Alerts share partial aggregates only if theirs are the
    same. None if edges publish readings.
    """
    return None if isinstance(lower, str) else tuple(group_expressions(lower))
