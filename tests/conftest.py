"""A real Kafka for every test that asks for one; and the same random cases in every run of a commit."""

from __future__ import annotations

import gc
import os
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import docker
import pytest
from docker.errors import DockerException
from hypothesis import settings
from testcontainers.core.container import DockerContainer
from testcontainers.core.wait_strategies import LogMessageWaitStrategy

from tamis.local.broker import EmbeddedKafka
from tamis.local.broker_settings import SINGLE_NODE_SETTINGS
from tamis.local.service_process import free_ports

# A commit passes or it doesn't. With TAMIS_SEED tests look elsewhere, hypothesis's wherever it likes.
# No deadline either: how long an example takes says how busy the machine is.
settings.register_profile("same", derandomize="TAMIS_SEED" not in os.environ, deadline=None)
settings.load_profile("same")

# The broker that the embedded one runs, too.
_IMAGE = "apache/kafka:4.3.0"
_START_SECONDS = 120


@pytest.fixture(scope="session")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """The broker of one worker, in whatever state the test before has left it."""
    with EmbeddedKafka(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture
def kafka(request: pytest.FixtureRequest) -> str:
    """The bootstrap string of a broker that all tests share: a container's where there is Docker."""
    if _docker_answers():
        found: str = request.getfixturevalue("container")
        return found
    broker: EmbeddedKafka = request.getfixturevalue("embedded")
    return broker.start()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedKafka]:
    """A running broker of the test's own, to be stopped, killed and started again."""
    with EmbeddedKafka(tmp_path / "kafka") as started:
        yield started


@cache
def _docker_answers() -> bool:
    with warnings.catch_warnings():
        # Where there is no engine, docker's client drops its socket without closing it.
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            docker.from_env().close()
            return True
        except DockerException:
            return False
        finally:
            gc.collect()


@pytest.fixture(scope="session")
def container() -> Iterator[str]:
    """The bootstrap string of a broker in a container."""
    # testcontainers' own KafkaContainer knows another maker's image. Kafka tells clients its address, so the
    # port is chosen before it starts and is the same on both sides.
    (port,) = free_ports(1)
    container = DockerContainer(_IMAGE).with_bind_ports(port, port)
    host = container.get_container_host_ip()
    settings = {
        **SINGLE_NODE_SETTINGS,
        "listeners": f"BROKER://:{port},CONTROLLER://:9093",
        "advertised.listeners": f"BROKER://{host}:{port}",
        "controller.quorum.voters": "1@localhost:9093",
    }
    for key, value in settings.items():
        container.with_env("KAFKA_" + key.upper().replace(".", "_"), value)
    container.waiting_for(LogMessageWaitStrategy("Kafka Server started").with_startup_timeout(_START_SECONDS))
    with container:
        yield f"{host}:{port}"
