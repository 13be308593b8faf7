"""Operators from the nodes of a plan."""

from __future__ import annotations

from typing import assert_never

from tamis.declarations.file_access import UNRESTRICTED, FileAccess
from tamis.operators.application_time.query import ApplicationTimeQuery
from tamis.operators.contract import StandingEvaluator
from tamis.operators.latest_values import LatestValues
from tamis.operators.nested import NestedEvaluator
from tamis.operators.representatives.query import Representatives
from tamis.operators.time_join.rows_by_time import TimedJoin
from tamis.operators.timeless.groups import Groups
from tamis.operators.timeless.rows import SelectProjectJoin, Union
from tamis.operators.windows.groups import WindowedGroups
from tamis.operators.windows.sessions import SessionGroups
from tamis.plan import nodes


def operator(node: nodes.Node, file_access: FileAccess = UNRESTRICTED) -> StandingEvaluator:
    """The operator of a node and of those below it, with empty state.

    `file_access` limits the paths of tables. Raises InputError if the file of a table can't be read, and
    RefusedError if it is outside of the permitted directories or has other rows than those of the plan.
    """
    match node:
        case nodes.Windows():
            return WindowedGroups(node, file_access)
        case nodes.Sessions():
            return SessionGroups(node)
        case nodes.LatestValues():
            return LatestValues(node)
        case nodes.TimeJoin():
            return TimedJoin(node)
        case nodes.Rows():
            return SelectProjectJoin(node)
        case nodes.Union():
            return Union(node)
        case nodes.Representatives():
            return Representatives(node)
        case nodes.Groups():
            return Groups(node)
        case nodes.ApplicationTime():
            return ApplicationTimeQuery(node, file_access)
        case nodes.Nested():
            inner = [(one, operator(one.node, file_access)) for one in node.inner]
            return NestedEvaluator(inner, operator(node.outer, file_access))
        case _:
            assert_never(node)
