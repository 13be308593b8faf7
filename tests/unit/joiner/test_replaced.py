"""Replaced alerts: a combination counts for the definition in force at its least plan version."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest
from tests.stream_records import progress_record
from tests.unit.joiner.test_core import (
    SECOND,
    Driver,
    alarms,
    joins,
    plan,
    report,
    tuple_of,
)

from tamis.declarations.definitions import Window
from tamis.plan.model import Definition, Plan


def with_successor(old: Definition, version: int) -> Plan:
    """The alert replaced by an equal definition in plan `version`."""
    names = "".join(dict.fromkeys(source.stream for source in old.inputs))
    made = plan(version, old, replace(old, version=version), names=names)
    return replace(made, retiring={f"{old.alert}@{old.version}": version})


def counted(output: Any) -> list[tuple[int, list[int]]]:
    """By which definition, and the times of the readings."""
    return sorted(
        (alarm["definition"], [source["ts"] // SECOND for source in alarm["tuples"].values()])
        for alarm in alarms(output)
    )


@pytest.mark.parametrize("window", [None, Window(10 * SECOND, 10 * SECOND)])
def test_a_reading_of_one_stream_counts_for_one_definition(window: Window | None) -> None:
    old = replace(joins("hot", 1, "a"), window=window)
    send = Driver()
    send(plan(1, old, names="a"))
    output = send(with_successor(old, 2), a=[tuple_of("a", 1 * SECOND, 1), tuple_of("a", 2 * SECOND, 2)])
    assert counted(output) == [(1, [1]), (2, [2])]


def test_a_combination_counts_for_the_definition_of_its_least_version() -> None:
    first = joins("close", 1, "a", "b")
    send = Driver()
    send(plan(1, first))
    both = with_successor(first, 3)
    second = both.definitions[1]
    third = replace(
        with_successor(second, 5),
        definitions=(first, second, replace(second, version=5)),
        retiring={"close@1": 3, "close@3": 5},
    )
    send(third, a=[tuple_of("a", n * SECOND, n) for n in (1, 3, 5)])
    output = send(b=[tuple_of("b", n * SECOND, n) for n in (2, 4, 5)])
    # Of three definitions that all raise it, exactly one counts each.
    least = {(a, b): min(a, b) for a in (1, 3, 5) for b in (2, 4, 5) if abs(a - b) <= 5}
    made = {1: 1, 2: 1, 3: 3, 4: 3, 5: 5}
    assert counted(output) == sorted((made[version], [a, b]) for (a, b), version in least.items())


def test_a_tuple_that_comes_again_under_the_new_plan_is_the_successor_s() -> None:
    old = joins("close", 1, "a", "b")
    send = Driver()
    send(plan(1, old), a=[tuple_of("a", SECOND, 1)])
    send(with_successor(old, 2), a=[tuple_of("a", SECOND, 2)])
    assert counted(send(b=[tuple_of("b", SECOND, 2)])) == [(2, [1, 1])]


def test_the_frontier_says_what_waits_for_an_old_definition() -> None:
    old = joins("close", 1, "a", "b")
    send = Driver()
    output = send(plan(1, old), a=[tuple_of("a", SECOND, 1), tuple_of("a", 2 * SECOND, 1, key="y")])
    assert report(output).waiting == {}
    output = send(with_successor(old, 2), a=[tuple_of("a", 3 * SECOND, 2)])
    assert report(output).waiting == {"close@1": 2}
    output = send(b=[progress_record("e/b", 2, 0, 7 * SECOND)])
    assert report(output).waiting == {"close@1": 1}
    state = report(output).topics
    assert {name: one.obeyed for name, one in state.items()} == dict(zip(state, (0, 2), strict=True))
    output = send(b=[progress_record("e/b", 2, 0, 7 * SECOND + 1)])
    assert report(output).waiting == {"close@1": 0}  # what came under the new plan isn't waited for


def test_nothing_of_one_stream_waits() -> None:
    old = joins("hot", 1, "a")
    send = Driver()
    output = send(plan(1, old, names="a"))
    output = send(with_successor(old, 2), a=[progress_record("e/a", 2, 0, None)])
    assert report(output).waiting == {"hot@1": 0}
    assert [state.obeyed for state in report(output).topics.values()] == [2]


def test_a_frontier_record_of_an_older_release_is_read() -> None:
    send = Driver()
    output = send(plan(1, joins("hot", 1, "a"), names="a"))
    document = orjson.loads(output.frontier or b"")
    del document["waiting"]
    found = type(report(output)).from_bytes(orjson.dumps(document))
    assert (found.waiting, found.topics) == ({}, report(output).topics)
