"""Fixtures of all integration tests: empty brokers, and a bench for edges."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.edges import Bench, wipe

from tamis.local.broker import EmbeddedKafka


@pytest.fixture
def empty(embedded: EmbeddedKafka) -> EmbeddedKafka:
    """An empty broker for one test; others can't use it, since the fleet's topics have fixed names."""
    embedded.start()  # where a test that stopped it has failed
    wipe(embedded.bootstrap)
    return embedded


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    # The fleet's topics have fixed names, so that no other tests can use this broker.
    with EmbeddedKafka(tmp_path_factory.mktemp("edges")) as broker:
        yield broker


@pytest.fixture
def bench(shared: EmbeddedKafka, tmp_path: Path) -> Iterator[Bench]:
    found = Bench(shared, tmp_path)
    shared.start()  # where a test that stopped it has failed
    wipe(shared.bootstrap)
    yield found
    found.close()
