"""Functions of Python that are missing or fail in a service: it goes on, and no alarm is lost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.unit.edge import plans
from tests.unit.edge.core.test_shard_run import SHARD, batch, started, temps
from tests.unit.edge.plans import TEMP, air, compare, entry, topic
from tests.unit.joiner.test_core import Driver, alarms, joins, plan, report, tuple_of
from tests.unit.registry.conftest import *  # noqa: F403  # its fixtures
from tests.unit.registry.test_status import running, status  # noqa: F401

from tamis.expressions import python_functions
from tamis.expressions.nodes import Call, Column, Literal, Type
from tamis.messaging.records import Frontier
from tamis_edge.core.missing_functions import able, lacking, needed


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(python_functions.SETTING, "tests.fixtures.installed")
    python_functions.clear_caches()
    yield
    python_functions.clear_caches()


def over(name: str, level: float) -> Call:
    value = python_functions.opaque(name, "+", (TEMP,))
    return Call(">", (value, Literal(level, Type.DOUBLE)), Type.BOOLEAN)


def test_an_edge_keeps_what_a_missing_function_would_judge() -> None:
    cold = compare("<", TEMP, 30)
    omits = entry(10, filter=Call("and", (over("nowhere", 3), cold), Type.BOOLEAN))
    values = entry(10, value=python_functions.opaque("nowhere", "+", (TEMP,)))
    whole = plans.plan(air([topic([omits, values])]), [SHARD])
    assert lacking(whole) == ("nowhere",) and needed(whole) == ()
    (kept,) = able(whole).streams[0].topics
    assert kept.entries == (
        replace(omits, filter=cold, value=None, interval=0),
        replace(values, value=None, interval=0),
    )
    known = plans.plan(air([topic([entry(10, filter=over("wear", 3))])]), [SHARD])
    assert able(known) is known


def test_an_edge_keeps_every_tuple_where_a_function_fails() -> None:
    failing = entry(10, value=python_functions.opaque("broken", "+", (TEMP,)), filter=over("broken", 3))
    run = started(plans.plan(air([topic([failing])]), [SHARD]))
    run.take(batch(0, *[("s", time, float(time % 3)) for time in range(6)]), 0)
    assert temps(run) == [0.0, 1.0, 2.0, 0.0, 1.0, 2.0]


def test_an_edge_keeps_every_tuple_where_a_filter_fails() -> None:
    failing = entry(10, filter=over("broken", 3))
    run = started(plans.plan(air([topic([failing])]), [SHARD]))
    run.take(batch(0, *[("s", time, float(time % 3)) for time in range(6)]), 0)
    assert temps(run) == [0.0, 1.0, 2.0, 0.0, 1.0, 2.0]


def test_a_derived_stream_can_not_do_without() -> None:
    made = replace(topic([entry(0)]), select=(("worn", python_functions.opaque("nowhere", "+", (TEMP,))),))
    assert needed(plans.plan(air([made]), [SHARD])) == ("nowhere",)


@pytest.mark.parametrize(("name", "words"), [("nowhere", "set TAMIS_FUNCTIONS"), ("broken", "ValueError")])
def test_the_joiner_goes_on_with_other_alerts_and_tells(name: str, words: str) -> None:
    send = Driver()
    good, bad = joins("good", 1, "a", "b"), joins("bad", 1, "a", "b")
    value = python_functions.opaque(name, "+", (Column("a0", "v", Type.DOUBLE),))
    bad = replace(bad, condition=Call(">", (value, Literal(0.0, Type.DOUBLE)), Type.BOOLEAN))
    out = send(plan(1, bad, good), a=[tuple_of("a", 0)], b=[tuple_of("b", 0)])
    assert [alarm["alert"] for alarm in alarms(out)] == ["good"]
    told = report(send(a=[]))
    assert list(told.unable) == ["bad"] and words in told.unable["bad"]
    # Tuples that meet nothing don't show that it works.
    told = report(send(a=[tuple_of("a", 3_600_000_000)]))
    assert name == "broken" or list(told.unable) == ["bad"]
    # Installed, it raises what comes next.
    fixed = replace(bad, condition=good.condition)
    out = send(plan(2, fixed, good), b=[tuple_of("b", 1, 2)])
    assert {alarm["alert"] for alarm in alarms(out)} == {"good", "bad"}
    assert report(send(a=[])).unable == {}


@pytest.mark.parametrize("name", ["nowhere", "broken"])
def test_the_joiner_goes_on_where_the_function_is_in_a_filter(name: str) -> None:
    send = Driver()
    good, bad = joins("good", 1, "a", "b"), joins("bad", 1, "a", "b")
    value = python_functions.opaque(name, "+", (Column("a0", "v", Type.DOUBLE),))
    judged = Call(">", (value, Literal(0.0, Type.DOUBLE)), Type.BOOLEAN)
    first = replace(bad.inputs[0], filter=judged)
    bad = replace(bad, inputs=(first, *bad.inputs[1:]))
    out = send(plan(1, bad, good), a=[tuple_of("a", 0)], b=[tuple_of("b", 0)])
    assert [alarm["alert"] for alarm in alarms(out)] == ["good"]
    assert list(report(send(a=[])).unable) == ["bad"]


def test_the_alert_is_degraded_with_the_reason(running) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    why = "the function 'wear' isn't installed here; set TAMIS_FUNCTIONS"
    for partition in range(running.partitions):
        running.registry.follow(
            Frontier(partition, running.version, {}, {}, {}, 0, 0, running.now, unable={"q": why})
        )
    assert status(running).state == "degraded"
    assert status(running).why == (f"the joiner can't evaluate it: {why}",)
