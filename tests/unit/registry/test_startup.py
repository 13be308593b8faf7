"""Start of a registry: lost statements are told from dropped ones by the newest plan and its version."""

from __future__ import annotations

import pytest
from tests.unit.edge.plans import air

from tamis.plan.json_form import encode_plan
from tamis.plan.model import Plan
from tamis_registry.core.state.model import State, Stored
from tamis_registry.plans import History, Origin
from tamis_registry.startup import statements_lost

VERSION = 7
STREAM = "CREATE STREAM air (station VARCHAR KEY, ts TIMESTAMP, WATERMARK FOR ts AS ts);"


def history(*, streams: bool) -> History:
    found = History()
    found.add(VERSION - 1, encode_plan(Plan(VERSION - 1, 2)), Origin(0))
    found.add(VERSION, encode_plan(Plan(VERSION, 2, streams=(air([]),) if streams else ())), Origin(0))
    return found


def state(version: int, *, stream: bool = False) -> State:
    made = State(2, version=version)
    if stream:
        made.statements["stream/air"] = Stored("stream", "air", STREAM, 1, version)
    return made


@pytest.mark.parametrize(
    ("before", "lost"),
    [
        pytest.param(None, True, id="no topic"),
        pytest.param(state(VERSION), True, id="a start after the loss wrote the fleet's record"),
        pytest.param(state(VERSION + 1), False, id="the last stream was dropped, and no plan written yet"),
        pytest.param(state(VERSION, stream=True), False, id="nothing is lost"),
    ],
)
def test_statements_are_lost_if_only_the_newest_plan_has_streams(before: State | None, lost: bool) -> None:
    assert statements_lost(before, history(streams=True)) is lost
    assert not statements_lost(before, history(streams=False))


def test_the_first_start_of_a_fleet_has_lost_nothing() -> None:
    assert not statements_lost(None, History())


def test_a_plan_of_another_release_is_replaced() -> None:
    plans = history(streams=True)
    plans.add(VERSION + 1, b'{"version":8,"format":99}', Origin(0))
    assert not statements_lost(None, plans)
