"""Alarms over spans in which edges shed tuples are marked; spans are kept as long as needed."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import orjson
import pytest
from tests.stream_records import progress_record
from tests.unit.joiner.test_core import (
    SECOND,
    A,
    B,
    Driver,
    alarms,
    joins,
    plan,
    report,
    tuple_of,
)

from tamis.messaging.dead_letters import Reason
from tamis.plan.model import Definition
from tamis_joiner.core import shed_spans as shed
from tamis_joiner.core.frontiers import Frontiers
from tamis_joiner.core.shed_spans import ShedSpans


def told(stream: str, first: int, last: int, event_time: int | None = None, version: int = 1) -> bytes:
    return progress_record(f"e/{stream}", version, 0, event_time, (first, last))


def spans(driver: Driver) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(driver.state["meta"])["shed"]
    return found


def marked(found: list[dict[str, Any]]) -> list[tuple[int, bool]]:
    return [(alarm["tuples"]["b1"]["ts"] // SECOND, alarm.get("incomplete", False)) for alarm in found]


def test_alarms_within_reach_of_a_span_are_marked_and_others_are_not() -> None:
    driver = Driver()
    driver(plan(1, joins("q", 1, "a", "b")))
    times = [t * SECOND for t in (80, 94, 95, 100, 104, 116, 140)]
    out = driver(
        a=[told("a", 100 * SECOND, 110 * SECOND), *(tuple_of("a", t) for t in times)],
        b=[tuple_of("b", t) for t in times],
    )
    found = {alarm["tuples"]["a0"]["ts"] // SECOND: alarm.get("incomplete", False) for alarm in alarms(out)}
    # A shed tuple of a at 100 would have met b at 95, though not at 94.
    assert found == {80: False, 94: True, 95: True, 100: True, 104: True, 116: False, 140: False}
    pairs = {
        (a["tuples"]["a0"]["ts"] // SECOND, a["tuples"]["b1"]["ts"] // SECOND): a.get("incomplete", False)
        for a in alarms(out)
    }
    assert pairs[94, 94] is False
    assert pairs[94, 95] is True


def test_a_span_is_remembered_until_no_alarm_can_be_over_it() -> None:
    driver = Driver()
    driver(plan(1, joins("q", 1, "a", "b")))
    driver(a=[told("a", 100 * SECOND, 110 * SECOND)])
    assert spans(driver) == {A: [[100 * SECOND, 110 * SECOND]]}
    out = driver(a=[tuple_of("a", 101 * SECOND)], b=[tuple_of("b", 102 * SECOND)])
    assert marked(alarms(out)) == [(102, True)]
    for stream in "ab":
        driver(**{stream: [progress_record(f"e/{stream}", 1, 0, 120 * SECOND)]})
    assert spans(driver) == {A: [[100 * SECOND, 110 * SECOND]]}
    driver(a=[progress_record("e/a", 1, 0, 121 * SECOND)])
    assert spans(driver) == {A: [[100 * SECOND, 110 * SECOND]]}  # b's may still come at 120
    driver(b=[progress_record("e/b", 1, 0, 121 * SECOND)])
    assert spans(driver) == {}


def test_a_span_alone_says_nothing_of_progress_and_one_with_progress_does() -> None:
    driver = Driver()
    driver(plan(1, joins("q", 1, "a", "b")))
    assert report(driver(a=[told("a", 0, 9)])).topics[A].frontier is None
    assert report(driver(a=[told("a", 0, 9, 7)])).topics[A].frontier == 7


def test_a_span_of_a_plan_that_is_not_known_waits_for_it() -> None:
    driver = Driver()
    driver(plan(1, joins("q", 1, "a", "b")))
    driver(a=[told("a", 0, 9, version=2)])
    assert spans(driver) == {}
    driver(plan(2, joins("q", 1, "a", "b")))
    assert spans(driver) == {A: [[0, 9]]}


def test_state_from_before_there_were_spans_is_read() -> None:
    driver = Driver()
    driver(plan(1, joins("q", 1, "a", "b")))
    meta = orjson.loads(driver.state["meta"])
    del meta["shed"]
    driver.state["meta"] = orjson.dumps(meta)
    driver(a=[told("a", 0, 9)])
    assert spans(driver) == {A: [[0, 9]]}


@pytest.mark.parametrize("span", [[5], [9, 5], ["a", 9], [0, 1 << 60], 7, [0.5, 1]])
def test_what_is_no_span_is_a_dead_letter(span: object) -> None:
    driver = Driver()
    driver(plan(1, joins("q", 1, "a", "b")))
    record = {"kind": "progress", "shard": "e/a", "plan": 1, "activation": 0, "event_time": 3, "shed": span}
    (letter,) = driver(a=[orjson.dumps({"_": record})]).dead_letters
    assert letter.reason is Reason.FOREIGN


def test_spans_that_touch_are_one() -> None:
    found = ShedSpans()
    for span in ((0, 9), (20, 29), (40, 49), (10, 12), (25, 41)):
        found.add(A, span)
    assert found.to_json() == {A: [(0, 12), (20, 49)]}
    assert ShedSpans(orjson.loads(orjson.dumps(found.to_json()))).to_json() == found.to_json()


def test_too_many_spans_become_fewer_and_wider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shed, "MAX_SPANS", 3)
    found = ShedSpans()
    for span in ((0, 1), (10, 11), (15, 16), (30, 31)):
        found.add(A, span)
    assert found.to_json() == {A: [(0, 1), (10, 16), (30, 31)]}


def test_topics_that_nothing_reads_are_forgotten() -> None:
    found = ShedSpans()
    found.add(A, (0, 9))
    found.add("tamis.stream.z.1", (0, 9))
    found.trim([joins("q", 1, "a", "b")], Frontiers())
    assert found.to_json() == {A: [(0, 9)]}
    found.trim([], Frontiers())
    assert found.to_json() == {}


def test_over_is_what_trying_every_tick_finds() -> None:
    r = random.Random(5)
    touched = 0
    for _ in range(300):
        lo = r.randint(-5, 2)
        definition = within(joins("q", 1, "a", "b", lo=lo, hi=lo + r.randint(0, 6)), r)
        found = ShedSpans()
        told_of = {A: [r.randint(0, 30)], B: [r.randint(0, 30)] if r.random() < 0.3 else []}
        for topic, starts in told_of.items():
            for start in starts:
                found.add(topic, (start, start + 2))
        times = np.array([[r.randint(0, 30)] for _ in range(2)])
        times[1, 0] = times[0, 0] - r.randint(lo, definition.bounds[0].hi or 0)
        expected = over(definition, times[:, 0].tolist(), told_of)
        assert found.overlapped(definition, times).tolist() == [expected], (definition, times, told_of)
        touched += expected
    assert 50 < touched < 250


def within(definition: Definition, r: random.Random) -> Definition:
    """The same with omission."""
    from dataclasses import replace

    inputs = tuple(replace(source, interval=r.choice([0, 3])) for source in definition.inputs)
    return replace(definition, inputs=inputs)


def over(definition: Definition, times: list[int], told_of: dict[str, list[int]]) -> bool:
    """True if a shed span may hold a tuple of the result, or a tuple that joins with one of it. Found by
    trying every tick, and every time for which the tuple at this tick may stand.
    """
    bound = definition.bounds[0]
    assert bound.lo is not None
    assert bound.hi is not None
    for i, source in enumerate(definition.inputs):
        for start in told_of[source.topic]:
            for tick in range(start, start + 3):
                for stood_for in range(tick - source.interval, tick + source.interval + 1):
                    apart = (stood_for - times[1]) if i == 0 else (times[0] - stood_for)
                    if stood_for == times[i] or bound.lo <= apart <= bound.hi:
                        return True
    return False
