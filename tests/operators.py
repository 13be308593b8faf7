"""Operators of queries, from the plan that a registry would write: nodes go through their JSON form."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tamis.declarations.file_access import UNRESTRICTED, FileAccess
from tamis.operators.build import operator
from tamis.operators.contract import RecordedRun, StandingEvaluator
from tamis.operators.recording_runs import run_recordings
from tamis.plan.model import StandingQuery
from tamis.plan.nodes import Matching, Node, Rows
from tamis.plan.wire import wire_type
from tamis.planning.physical.lowering import lowered, standing_node
from tamis.query.model import Catalog, Query
from tamis.recordings.typed import Recording

# Of a query that never has a row.
NO_ROWS = Rows((), (), Matching(()), ())


def through_json(node: Node) -> Node:
    """The node as a service reads it, which must be the same."""
    wire = wire_type(StandingQuery)
    text = msgspec.json.encode(wire.write(StandingQuery("q", 1, node, (), (), None)))
    read: StandingQuery = wire.decode(text, "plan")
    assert read.node == node
    return read.node


def standing_evaluator(sql: str, name: str, file_access: FileAccess = UNRESTRICTED) -> StandingEvaluator:
    """The operator of the alert or derived stream `name` of self-contained statements, with empty state."""
    return operator(through_json(standing_node(sql, name, file_access)), file_access)


def compile_query(query: Query, catalog: Catalog) -> StandingEvaluator | None:
    """The operator of a query, with empty state; None for a join by time."""
    node = lowered(query, catalog)
    return None if node is None else operator(through_json(node), catalog.file_access)


def run_query(query: Query, catalog: Catalog, recordings: Mapping[str, Recording]) -> RecordedRun:
    """All rows of a query over the recordings of its streams."""
    node = lowered(query, catalog)
    assert node is not None
    return run_recordings(through_json(node), catalog.file_access, recordings)
