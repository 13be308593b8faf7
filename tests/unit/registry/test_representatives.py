"""Plans with representatives: only while all services can read them, begun anew with the joiner's state."""

from __future__ import annotations

from dataclasses import replace

import orjson
from tests.unit.registry.test_openapi import Made

from tamis.messaging.heartbeats import JOINER, Heartbeat
from tamis.messaging.records import Ack, Frontier
from tamis_registry.core.declared_keys import excesses

SQL = """
CREATE STREAM s (k INT KEY, x INT NOT NULL) WITH (keys = 5);
CREATE ALERT hot AS SELECT DISTINCT k FROM s WHERE x > 50;
"""
ACK = Ack("s:e1/x", "s", "e1", 0, 0, "waiting", 1)


def made(*began: int) -> Made:
    """A registry with the alert, whose joiner's partitions have begun at these times."""
    one = Made()
    one.registry.seen.frontiers.clear()
    tell(one, *began)
    one.sql(SQL)
    return one


def tell(one: Made, *began: int) -> None:
    for partition, time in enumerate(began):
        one.registry.follow(Frontier(partition, 0, {}, {}, {}, 0, 0, 0, began=time))


def tick(one: Made) -> bool:
    """True if something was due."""
    change = one.registry.tick(one.now)
    if change is not None:
        one.registry.done(change, one.now)
    return change is not None


def since(one: Made) -> tuple[int | None, bool]:
    """What the plan says of the stream, and if it has representatives."""
    (stream,) = one.registry.plan.streams
    (topic,) = stream.topics
    (query,) = one.registry.plan.standing
    (source,) = query.inputs
    (found,) = {entry.representation for entry in topic.entries}
    assert source.representation == found
    return stream.representatives, found is not None


def test_the_plan_has_the_latest_beginning_of_the_joiners_partitions() -> None:
    one = made(7, 9)
    assert since(one) == (9, True)
    assert not tick(one)
    tell(one, 12)
    assert tick(one) and since(one) == (12, True)
    one.registry.take_heartbeat(JOINER, Heartbeat(time=20, lost=15), 20)
    assert tick(one) and since(one) == (15, True)
    # An older checkpoint was restored.
    one.registry.take_heartbeat(JOINER, Heartbeat(time=20), 20)
    tell(one, 7, 9)
    assert tick(one) and since(one) == (9, True)
    assert not tick(one)


def test_edges_publish_every_tuple_until_all_partitions_have_begun() -> None:
    one = made()
    assert since(one) == (None, False)
    tell(one, 7)
    assert not tick(one) and since(one) == (None, False)
    tell(one, 7, 0)
    assert not tick(one) and since(one) == (None, False)
    tell(one, 7, 8)
    assert tick(one) and since(one) == (8, True)


def test_edges_of_an_earlier_release_get_plans_that_they_can_read() -> None:
    earlier = {name: value for name, value in vars(ACK).items() if value is not None}
    del earlier["partials"], earlier["representatives"]
    read = Ack.from_bytes(orjson.dumps(earlier))
    assert (read.partials, read.representatives) == (None, None)
    assert Ack.from_bytes(ACK.to_bytes()) == ACK
    one = made(7, 8)
    one.registry.hear(read, one.now)
    assert tick(one) and since(one) == (None, False)
    one.registry.hear(replace(ACK, plan=one.registry.plan.version), one.now)
    assert tick(one) and since(one) == (8, True)


def test_a_query_that_keeps_more_than_its_bound_tells_of_keys() -> None:
    one = made(7, 8)
    (query,) = one.registry.plan.standing
    name = f"{query.alert}@{query.version}"

    def keep(*entries: int) -> dict[str, str]:
        for partition, count in enumerate(entries):
            one.registry.follow(Frontier(partition, 0, {}, {name: count}, {}, 0, 0, 0, began=7))
        return excesses(one.registry.view(one.now))

    assert query.bound == 5
    assert keep(3, 2) == {}
    assert "alert hot keeps 6 entries, more than its bound of 5" in keep(3, 3)["s"]
