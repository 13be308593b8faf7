"""A bench for edges, and brokers without topics, as every test finds them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.edges import Bench, wipe

from tamis.fleet.broker import EmbeddedKafka


@pytest.fixture
def empty(embedded: EmbeddedKafka) -> EmbeddedKafka:
    """A broker that the test has to itself: the fleet's topics have fixed names."""
    embedded.start()  # where a test that stopped it has failed
    wipe(embedded.bootstrap)
    return embedded


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    # The names of the fleet's topics are fixed: a broker that other tests use as well won't do.
    with EmbeddedKafka(tmp_path_factory.mktemp("edges")) as broker:
        yield broker


@pytest.fixture
def bench(shared: EmbeddedKafka, tmp_path: Path) -> Iterator[Bench]:
    found = Bench(shared, tmp_path)
    shared.start()  # where a test that stopped it has failed
    wipe(shared.bootstrap)
    yield found
    found.close()
