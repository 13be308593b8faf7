"""The fleet of the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from tests.e2e.fed_fleet import FedFleet
from tests.e2e.feeder import STREAMS
from tests.fixtures.schema_registry import SchemaRegistryServer
from tests.integration.alerts.receiver import Receiver

from tamis.expressions.python_functions import SETTING
from tamis.local.fleet import EdgeSpec
from tamis.local.service_process import ServiceProcess, free_ports

USER, PASSWORD = "tamis", "hush"
FUNCTIONS = "tests.fixtures.installed"
EDGE = """
sources:
  - {{name: http, kind: http, streams: [air, surface]}}
http: {{port: {port}}}
"""
READY_SECONDS = 180.0  # of an edge
BROKER_SECONDS = 180.0  # to its start, where others want the cores too


class OneFleet(FedFleet):
    """A fleet with an edge for readings of air and surface over HTTP, a webhook `pager`, a registry of
    schemas, and functions of Python.
    """

    def __init__(self, directory: Path, receiver: Receiver, schemas: SchemaRegistryServer) -> None:
        self.receiver, self.schemas = receiver, schemas
        sinks = directory / "alerts.yaml"
        sinks.write_text(f"sinks:\n  - {{kind: webhook, name: pager, url: '{receiver.url}/secret'}}\n")
        environment = {
            "TAMIS_SCHEMA_REGISTRY_URL": schemas.url,
            "TAMIS_SCHEMA_REGISTRY_USERNAME": USER,
            "TAMIS_SCHEMA_REGISTRY_PASSWORD": PASSWORD,
            SETTING: FUNCTIONS,
            "TAMIS_TABLES": str(directory.parent),
            "PYTHONPATH": str(Path(__file__).parents[3]),
        }
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        # Of no other streams: a shard without readings would hold back their watermark.
        edge = directory / "edge.yaml"
        edge.write_text(EDGE.format(port=port))
        super().__init__(directory / "fleet", environment, sinks, [EdgeSpec("edge", edge)])

    @property
    def bootstrap(self) -> str:
        """The address of Kafka."""
        return self.fleet.bootstrap

    def create(self, *topics: str, partitions: int = 2) -> None:
        """Create topics of readings."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        for made in admin.create_topics([NewTopic(name, partitions, 1) for name in topics]).values():
            made.result(30)

    @contextmanager
    def edge(self, name: str, config: Path) -> Iterator[ServiceProcess]:
        """A further edge, which ends with exit code 0."""
        self.fleet._add_edge(EdgeSpec(name, config))
        process = self.fleet.processes[name]
        process.start()
        try:
            process.wait_ready(READY_SECONDS)
            yield process
        finally:
            code = process.stop()
            del self.fleet.processes[name]
        assert code == 0


@pytest.fixture
def one_fleet(started: OneFleet) -> OneFleet:
    """The fleet, all of which runs, also where a test has failed that stopped a part of it."""
    started.fleet.broker.start(BROKER_SECONDS)
    for process in started.fleet.processes.values():
        if process.exit_code() is not None:
            process.start()
    return started


@pytest.fixture(scope="package")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneFleet]:
    """The fleet, with the streams air and surface. Its services end with exit code 0."""
    receiver = Receiver()
    with SchemaRegistryServer(USER, PASSWORD) as schemas:
        made = OneFleet(tmp_path_factory.mktemp("one-fleet"), receiver, schemas)
        try:
            made.fleet.start({"streams.sql": STREAMS})
            yield made
        finally:
            codes = made.fleet.stop()
            receiver.close()
    assert codes == dict.fromkeys(codes, 0)
