"""The edge whose Kafka is behind a slow link: every reading arrives, and one that doesn't is told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from tests.integration.edge.slow_link import SlowLink
from tests.integration.edges import Bench, everything, wait_for
from tests.unit.edge.plans import TOPIC

from tamis.local.broker import EmbeddedKafka
from tamis.local.broker_settings import Listener
from tamis.local.service_process import free_ports

READINGS = 3_000


@pytest.fixture
def far(tmp_path: Path) -> Iterator[tuple[Bench, SlowLink]]:
    """A bench, and the link to its broker on which a source of readings lies: 100 kB a second."""
    behind, front = free_ports(2)
    listener = Listener("FAR", behind, advertised=front)
    with (
        EmbeddedKafka(tmp_path / "kafka", listeners=[listener]) as broker,
        SlowLink(front, behind, 100_000) as link,
    ):
        bench = Bench(broker, tmp_path)
        yield bench, link
        bench.close()


def test_readings_over_a_slow_link_all_arrive(far: tuple[Bench, SlowLink]) -> None:
    bench, link = far
    bench.create(["raw"], 1)
    # 0.4 MB: the client asks for up to one at once, which takes seconds.
    readings = (
        {"station": f"k{i % 7}", "ts": 1_700_000_000_000_000 + i, "temp": 20.0, "note": "x" * 80}
        for i in range(READINGS)
    )
    bench.produce("raw", ((0, orjson.dumps(reading)) for reading in readings))
    bench.publish(everything("air:raw/0"))
    reader = bench.reader(TOPIC)
    config = (
        "sources:\n"
        f"  - {{kind: kafka, name: k, stream: air, topic: raw, bootstrap: '127.0.0.1:{link.port}'}}\n"
    )
    edge = bench.edge("far", config).start()
    wait_for("all readings", lambda: len(reader.of("tuple")) >= READINGS, 40)
    assert len(reader.of("tuple")) == READINGS
    assert edge.metric("tamis_edge_source_up", source="k") == 1
    edge.stop()
