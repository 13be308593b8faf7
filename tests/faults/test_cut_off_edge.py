"""Fault 3: an edge is cut off from Kafka for ten minutes of data and more, and is killed meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate, repeat
from pathlib import Path

import pytest
from tests.integration.edge.slow_link import SlowLink
from tests.integration.edge.test_full_disk import answers
from tests.integration.edges import PARTITIONS, Bench, Message, wait_for
from tests.unit.edge.plans import TOPIC, air, entry, plan, topic

from tamis.local.broker import EmbeddedKafka
from tamis.local.broker_settings import Listener
from tamis.local.service_process import free_ports
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of

STATIONS, SECONDS = 50, 600
AT_ONCE = 10  # event seconds in one request
LIMIT = 12 * 2**20  # bytes of the spool: more than ten minutes of readings, less than half an hour
SECOND = 1_000_000
T0 = 1_700_000_000 * SECOND
CONFIG = f"sources:\n  - {{kind: http, name: http}}\nlimits: {{spool: {LIMIT}}}\n"
# Beside the topic of all tuples, one of partial aggregates.
CUTS = f"{TOPIC}1"
PANE = 10  # seconds
COUNTED = f"""
CREATE STREAM air (station VARCHAR KEY, ts TIMESTAMP, temp DOUBLE, WATERMARK FOR ts AS ts)
WITH (keys = {STATIONS}, rate = '{STATIONS}/s');
CREATE ALERT counted AS
SELECT station, window_end, count(*) AS n FROM TUMBLE(air, ts, INTERVAL '{PANE}' SECOND)
GROUP BY station, window_end;
"""
pytestmark = [pytest.mark.faults, pytest.mark.timeout(1200)]


@pytest.fixture
def ports() -> tuple[int, int]:
    """The broker's port behind the link, and the port in front of it."""
    behind, front = free_ports(2)
    return behind, front


@pytest.fixture
def far(tmp_path: Path, ports: tuple[int, int]) -> Iterator[Bench]:
    behind, front = ports
    listener = Listener("FAR", behind, advertised=front)
    with EmbeddedKafka(tmp_path / "kafka", listeners=[listener]) as broker:
        made = Bench(broker, tmp_path)
        yield made
        made.close()


def test_an_edge_is_cut_off(far: Bench, ports: tuple[int, int]) -> None:
    behind, front = ports
    accepted = 0  # event seconds, each with a reading of each station

    def post() -> bool:
        nonlocal accepted
        rows = [
            {"station": f"k{station}", "ts": T0 + second * SECOND + station, "temp": 20.0, "site": "x" * 60}
            for second in range(accepted, accepted + AT_ONCE)
            for station in range(STATIONS)
        ]
        status = edge.post("air", rows).status_code
        assert status in (202, 503)
        accepted += AT_ONCE * (status == 202)
        return status == 202

    def spools() -> bool:
        return post() and edge.metric("tamis_edge_spool_records") > 0

    ((counted,),) = (
        stream.topics for stream in first_plan(catalog_of(COUNTED), partitions=PARTITIONS).streams
    )
    topics = [topic([entry(0)]), replace(counted, name=CUTS)]
    far.publish(plan(air(topics), ["air:far/http"], partitions=PARTITIONS))
    reader, cuts = far.reader(TOPIC), far.reader(CUTS)
    with SlowLink(front, behind, 1e9):
        edge = far.edge("far", CONFIG)
        edge.process.environment["TAMIS_KAFKA_BOOTSTRAP"] = f"127.0.0.1:{front}"
        edge.start()
        assert post()
        wait_for("the first tuples", lambda: len(_first(reader.of("tuple"))) == accepted * STATIONS)
    # No byte passes the link any more. Until the edge notices, records are in flight, and not in the spool.
    wait_for("a spool", spools)
    before = accepted
    while accepted < before + SECONDS:
        assert post(), "ten minutes of readings fit into the spool"
        if accepted == before + SECONDS // 2:
            edge.kill()
            edge.process.start()
            wait_for("it listens", lambda: answers(edge.http))
    wait_for("a spool after the kill", spools)
    while post():
        assert accepted < 100 * SECONDS, "the limit of the spool holds"
    stored = edge.metric("tamis_edge_spool_bytes")
    files = sum(file.stat().st_size for file in (far.directory / "far").rglob("*.db*"))
    assert 0.9 * LIMIT < stored < 1.2 * LIMIT
    assert files < 5 * LIMIT, "the journal keeps the readings of records in flight"
    full = accepted
    with SlowLink(front, behind, 1e9):
        wait_for("an empty spool", lambda: edge.metric("tamis_edge_spool_records") == 0)
        wait_for("readings are accepted again", post)
        wait_for("all tuples", lambda: len(_first(reader.of("tuple"))) >= accepted * STATIONS)
        wait_for("all cuts", lambda: len(_counts(cuts.of("cut"))) >= (accepted // PANE - 1) * STATIONS)
        edge.stop()
    found = _first(reader.of("tuple"))
    assert found.keys() == {
        (f"k{k}", T0 + at * SECOND + k) for at in range(accepted) for k in range(STATIONS)
    }
    # The last pane is still open.
    assert _counts(cuts.of("cut")) == {
        (f"k{k}", T0 + at * SECOND): PANE for at in range(0, accepted - PANE, PANE) for k in range(STATIONS)
    }
    for partition in {message.partition for message in found.values()}:
        times = [m.tuple["ts"] for m in found.values() if m.partition == partition]
        assert times == sorted(times), "the spool drains in order"
    print(
        f"\nedge cut off: {full * STATIONS:,} readings accepted, spool {stored:,.0f} of {LIMIT:,} bytes,"
        f" files {files:,} bytes; missed 0, {len(reader.of('tuple')) - len(found)} records repeated"
    )


def _first(messages: list[Message]) -> dict[tuple[str, int], Message]:
    """The first record of each tuple, by station and time, in the order of the topic."""
    found: dict[tuple[str, int], Message] = {}
    for message in messages:
        found.setdefault((message.tuple["station"], message.tuple["ts"]), message)
    return found


def _counts(messages: list[Message]) -> Counter[tuple[str, int]]:
    """The number of readings of each station and pane in cuts. A record that comes again counts once."""
    first: dict[tuple[int, ...], Message] = {}
    for message in messages:
        first.setdefault((message.partition, *message.envelope["place"]), message)
    counts: Counter[tuple[str, int]] = Counter()
    for rows in (message.tuple for message in first.values()):
        (stations,) = rows["groups"]
        for station, pane, count in zip(
            stations, accumulate(rows["panes"]), rows.get("counts", repeat(1)), strict=False
        ):
            counts[station, pane] += count
    return counts
