"""Topics with partial aggregates: up to a limit of each stream, and those that had them keep them."""

from __future__ import annotations

from tests.fixtures.in_process_fleet import InProcessRegistry

from tamis.messaging.heartbeats import JOINER, Heartbeat
from tamis.plan.model import partial_topics
from tamis.sharing.topic_assignment import MOST_PARTIAL
from tamis_registry.core.plan.planner import PLANNER
from tamis_registry.core.registry import Registry
from tamis_registry.core.state.model import State
from tamis_registry.core.state.records import records, recover

NOW = 1_760_000_000_000_000
STREAM = "CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, v DOUBLE, WATERMARK FOR ts AS ts);"


def windows(*numbers: int) -> str:
    """Alerts with different filters, so that none shares a topic."""
    return "".join(
        f"CREATE ALERT q{number} AS SELECT window_end, count(*) AS n"
        f" FROM TUMBLE(air, ts, INTERVAL '5' SECOND) WHERE v > {number} GROUP BY window_end;"
        for number in numbers
    )


def test_a_stream_has_no_more_than_fit_beside_an_offset() -> None:
    service = InProcessRegistry(STREAM + windows(*range(MOST_PARTIAL - 1)), NOW)
    assert len(partial_topics(service.plan)) == MOST_PARTIAL - 1
    for number in range(MOST_PARTIAL - 1, MOST_PARTIAL + 3):
        service.apply(windows(number), NOW)
    first = partial_topics(service.plan)
    assert len(first) == MOST_PARTIAL
    service.apply(windows(*range(100, 120)), NOW)
    assert partial_topics(service.plan) == first
    # Where one ends, another one takes its place; the others stay.
    service.apply("DROP ALERT q3;", NOW)
    kept = partial_topics(service.plan)
    assert len(kept) == MOST_PARTIAL
    assert len(first - kept) == 1
    state = recover(records(service.registry.state))
    assert state is not None
    version = service.plan.version
    again = Registry(PLANNER, state.draft(), state, version, NOW, partials=kept).begin(NOW)
    assert again.plan is not None
    assert partial_topics(again.plan) == kept


def test_there_are_none_until_all_services_know_them() -> None:
    service = InProcessRegistry("", NOW)
    service.registry = Registry(PLANNER, State(1), None, 0, NOW)
    service.registry.take_heartbeat(JOINER, Heartbeat(time=NOW), NOW)
    service.begin(NOW)
    service.apply(STREAM + windows(1), NOW)
    assert not partial_topics(service.plan)
    service.registry.take_heartbeat(JOINER, Heartbeat(time=NOW, partials=True), NOW)
    assert service.tick(NOW) is not None
    assert partial_topics(service.plan)
    # An older joiner that comes back changes nothing: it can't read the plan in any case.
    service.registry.take_heartbeat(JOINER, Heartbeat(time=NOW), NOW)
    assert service.tick(NOW) is None
