"""Fixtures of all integration tests: empty brokers, and a bench for edges."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.edges import Bench, wipe

from tamis.local.broker import EmbeddedKafka


@pytest.fixture
def empty(embedded: EmbeddedKafka) -> EmbeddedKafka:
    """The broker of this worker without topics, for one test, which may stop it and start it again."""
    embedded.start()  # where a test that stopped it has failed
    wipe(embedded.bootstrap)
    return embedded


@pytest.fixture
def bench(empty: EmbeddedKafka, tmp_path: Path) -> Iterator[Bench]:
    found = Bench(empty, tmp_path)
    yield found
    found.close()
