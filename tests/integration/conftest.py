"""A bench for edges, and a broker without topics, as every test finds it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from tests.integration.edges import Bench, wait_for

from tamis.fleet.broker import EmbeddedKafka


@pytest.fixture
def empty(embedded: EmbeddedKafka) -> EmbeddedKafka:
    """A broker that the test has to itself, and may stop: the fleet's topics have fixed names."""
    embedded.start()  # where a test that stopped it has failed
    admin = AdminClient({"bootstrap.servers": embedded.bootstrap, "log_level": 0})

    def left() -> list[str]:
        return [name for name in admin.list_topics(timeout=10).topics if not name.startswith("__")]

    for done in admin.delete_topics(left()).values() if left() else ():
        done.result()
    wait_for("topics are gone", lambda: not left())
    return embedded


@pytest.fixture
def bench(empty: EmbeddedKafka, tmp_path: Path) -> Iterator[Bench]:
    found = Bench(empty, tmp_path)
    yield found
    found.close()
