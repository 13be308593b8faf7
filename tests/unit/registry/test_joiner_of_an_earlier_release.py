"""A joiner of an earlier release reads queries that keep synopses as SQL; this one reads nodes."""

from __future__ import annotations

from tests.unit.registry.test_standing import say, started

from tamis.messaging.heartbeats import JOINER, Heartbeat
from tamis.plan.json_form import decode_plan
from tamis_registry.core.plan.change import Change

SQL = """
CREATE STREAM s (k VARCHAR KEY, v INT CHECK (v BETWEEN 0 AND 9)) WITH (keys = 3);
CREATE ALERT many AS SELECT k, count(*) AS n FROM s GROUP BY k HAVING count(*) > 3;
"""


def forms(change: Change) -> set[tuple[bool, bool]]:
    """For each query of a written plan, whether it has nodes, and whether it has SQL."""
    assert change.written is not None
    return {(one.node is not None, bool(one.sql)) for one in decode_plan(change.written.json).standing}


def test_the_registry_writes_what_its_joiner_reads() -> None:
    registry = started()
    say(registry, SQL)
    assert registry.plan.standing
    assert registry.tick(1) is None
    registry.take_heartbeat(JOINER, Heartbeat(time=1), 1)
    older = registry.tick(2)
    assert older is not None
    assert forms(older) == {(False, True)}
    registry.done(older, 2)
    assert registry.tick(3) is None
    registry.take_heartbeat(JOINER, Heartbeat(time=3, nodes=True), 3)
    newer = registry.tick(4)
    assert newer is not None
    assert forms(newer) == {(True, False)}
