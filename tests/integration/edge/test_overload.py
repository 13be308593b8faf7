"""The edge under overload while a real Kafka is away.

By default its sources are paused and nothing is lost. If it may shed, the lost tuples are counted and
reported.
"""

from __future__ import annotations

import time

from tests.integration.edges import (
    PARTITIONS,
    Bench,
    Reader,
    RunningEdge,
    everything,
    wait_for,
)
from tests.unit.edge.plans import TOPIC

from tamis.messaging.partitioner import partition_of
from tamis.messaging.records import canonical_key
from tamis.messaging.topics import ACKS, DEAD_LETTERS
from tamis.plan.model import Plan

T0 = 1_700_000_000_000_000
APART = 5_000  # microseconds between readings
SIZE = 20  # readings of a request


def station(i: int) -> str:
    return f"s{i % 5}"


def partition(i: int) -> int:
    return partition_of(canonical_key((station(i),)), PARTITIONS)


class Poster:
    """Sends readings in order; `accepted` are the numbers of those that were taken."""

    def __init__(self, edge: RunningEdge) -> None:
        self.edge = edge
        self.accepted: list[int] = []

    def post(self) -> int:
        """One request; returns the status."""
        first = len(self.accepted)
        numbers = range(first, first + SIZE)
        readings = [{"station": station(i), "ts": T0 + i * APART, "temp": float(i % 50)} for i in numbers]
        status = self.edge.post("air", readings).status_code
        if status == 202:
            self.accepted += numbers
        return status


def came(reader: Reader) -> set[int]:
    return {(m.tuple["ts"] - T0) // APART for m in reader.of("tuple")}


def spans(reader: Reader) -> list[tuple[int, list[int]]]:
    """What was told to be shed: output partition, first and last event time."""
    return [(m.partition, m.envelope["shed"]) for m in reader.of("progress") if "shed" in m.envelope]


def await_all(reader: Reader, numbers: list[int]) -> None:
    wait_for(f"{len(numbers)} readings", lambda: len(came(reader)) >= len(numbers))
    assert came(reader) == set(numbers)


def test_a_full_spool_pauses_the_sources_and_nothing_is_lost(bench: Bench) -> None:
    bench.publish(everything("air:h/http"))
    edge = bench.edge("h", "limits: {spool: 20000}\n").start()
    poster = Poster(edge)
    assert poster.post() == 202
    await_all(bench.reader(TOPIC), poster.accepted)
    bench.broker.stop()

    def refused() -> bool:
        time.sleep(0.15)
        return poster.post() == 503

    wait_for("503 with the spool full", refused)
    assert wait_for("a pause", lambda: edge.metric("tamis_edge_paused")) == 1
    assert [poster.post() for _ in range(3)] == [503] * 3
    bench.broker.start()
    wait_for("202 again", lambda: poster.post() == 202)
    reader = bench.reader(TOPIC)
    await_all(reader, poster.accepted)
    wait_for("going on", lambda: edge.metric("tamis_edge_paused") == 0)
    assert edge.metric("tamis_edge_shed_tuples_total") == 0
    assert spans(reader) == []
    edge.stop()


def test_a_full_journal_refuses_and_nothing_is_lost(bench: Bench) -> None:
    bench.publish(everything("air:another/http"))
    edge = bench.edge("h", "limits: {journal: 20000}\n").start()
    poster = Poster(edge)
    # No plan lists the shard: what comes waits in the journal.
    wait_for("503 with the journal full", lambda: poster.post() == 503)
    assert 300 < len(poster.accepted) < 500  # of some fifty bytes each
    edge.kill()
    edge.start()
    assert poster.post() == 503
    listed = everything("air:another/http", "air:h/http")
    bench.publish(Plan(2, PARTITIONS, listed.streams, since=listed.since, shard_streams=listed.shard_streams))
    reader = bench.reader(TOPIC)
    await_all(reader, poster.accepted)
    wait_for("202 again", lambda: poster.post() == 202)
    await_all(reader, poster.accepted)
    edge.stop()


def test_what_is_shed_is_counted_and_told(bench: Bench) -> None:
    bench.publish(everything("air:h/http"))
    edge = bench.edge("h", "limits: {spool: 80000}\noverload: {shed: true}\n").start()
    poster = Poster(edge)
    assert poster.post() == 202
    await_all(bench.reader(TOPIC, ACKS, DEAD_LETTERS), poster.accepted)
    bench.broker.stop()
    until = time.monotonic() + 16
    while time.monotonic() < until:
        assert poster.post() == 202  # nothing pauses
        time.sleep(0.1)
    wait_for("shedding", lambda: edge.metric("tamis_edge_shed_tuples_total"))
    assert edge.metric("tamis_edge_paused") == 0
    assert edge.metric("tamis_edge_spool_bytes") < 80_000
    assert edge.metric("tamis_edge_spool_limit_bytes") == 80_000
    bench.broker.start()
    wait_for("an empty spool", lambda: edge.metric("tamis_edge_spool_records") == 0)
    during = len(poster.accepted)
    for _ in range(5):
        assert poster.post() == 202
    reader = bench.reader(TOPIC)
    wait_for("the last ones", lambda: set(poster.accepted[during:]) <= came(reader))
    missing = set(poster.accepted) - came(reader)
    assert len(missing) == edge.metric("tamis_edge_shed_tuples_total") > 0
    told = spans(reader)
    for i in missing:
        assert any(p == partition(i) and a <= T0 + i * APART <= b for p, (a, b) in told)
    # What went before the overload isn't under suspicion.
    assert min(a for _, (a, _) in told) > T0 + SIZE * APART
    # A sample of the outage is left, not only its beginning.
    assert any(min(missing) < i < max(missing) for i in came(reader))
    edge.stop()
