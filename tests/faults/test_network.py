"""Each service in a network namespace of its own, while packets are lost, late, or cut off between pairs."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.e2e.fed_fleet import FedFleet, until
from tests.e2e.feeder import STREAMS, PatientFeeder, feeding
from tests.faults.judging import ALERTS, check_alarms, check_windows, settle
from tests.faults.network import Network, possible

from tamis.errors import EXIT_UNAVAILABLE
from tamis.local.broker import EmbeddedKafka
from tamis.local.broker_settings import Listener
from tamis.local.fleet import READY_SECONDS, TRY_AGAIN
from tamis.local.service_process import ServiceProcess

pytestmark = [
    pytest.mark.faults,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not possible(), reason="needs root, and /dev/net/tun"),
]

SERVICES = ("kafka", "registry", "joiner", "alerts", "edge")
NAMES = ("operator", *SERVICES)
HTTP, TELEMETRY, KAFKA = 8282, 9100, 9192
BAD_SECONDS = 30.0  # of loss, and of delay
CUT_SECONDS = 12.0  # of each pair that has something to say; longer than the session of a consumer group
# Services that send each other nothing are cut off together.
TALKING = (("edge", "kafka"), ("joiner", "kafka"), ("alerts", "kafka"), ("registry", "kafka"),
           ("operator", "edge"), ("operator", "registry"))  # fmt: skip
SILENT = [pair for pair in itertools.combinations(SERVICES, 2) if pair[::-1] not in TALKING]


class SpreadFleet:
    """A fleet whose services are in namespaces; this thread is in that of the operator."""

    def __init__(self, network: Network, directory: Path) -> None:
        self._network = network
        address = network.addresses
        self.fed = FedFleet(directory / "fleet")
        self.broker = EmbeddedKafka(
            directory / "kafka", listeners=[Listener("FLEET", KAFKA, host=address["kafka"])]
        )
        self.fed.fleet.bootstrap = f"{address['kafka']}:{KAFKA}"
        self.fed.fleet.registry_url = f"http://{address['registry']}:{HTTP}"
        self.http = f"http://{address['edge']}:{HTTP}"
        self.restarts = Counter[str]()
        joiner = ["joiner", "--checkpoint", str(directory / "joiner"), "--master", "local[2]"]
        self._add("registry", ["registry", "--host", address["registry"], "--port", str(HTTP)], directory)
        self._add("joiner", joiner, directory)
        self._add("alerts", ["alerts"], directory)
        edge = ["edge", "--name", "edge", "--http-host", address["edge"], "--http-port", str(HTTP)]
        self._add("edge", edge, directory)

    def start(self, sql: str) -> None:
        """Start all services, in their order."""
        with self._network.inside("kafka"):
            self.broker.start()
        for name in ("joiner", "registry"):
            self._start(name)
        self.fed.fleet.processes["registry"].wait_ready(READY_SECONDS)
        self.fed.apply(sql)
        for name in ("alerts", "edge"):
            self._start(name)
        for name in ("joiner", "alerts", "edge"):
            self.fed.fleet.processes[name].wait_ready(READY_SECONDS)

    def supervise(self, what: Callable[[], bool], seconds: float) -> None:
        """Wait until something is so. A service that has ended is started again, as systemd does."""

        def done() -> bool:
            while (name := self.fed.fleet.ended()) is not None:
                self.restarts[name] += 1
                self._start(name)
            return what()

        until(done, seconds)

    def last(self, seconds: float) -> None:
        """Let some time pass."""
        end = time.monotonic() + seconds
        self.supervise(lambda: time.monotonic() > end, seconds + 10)

    def close(self) -> None:
        """Stop everything."""
        self.fed.fleet.stop()
        self.broker.stop()

    def _start(self, name: str) -> None:
        with self._network.inside(name):
            self.fed.fleet.processes[name].start()

    def _add(self, name: str, arguments: list[str], directory: Path) -> None:
        data = directory / name
        data.mkdir(exist_ok=True)
        host = self._network.addresses[name]
        environment = {
            "TAMIS_KAFKA_BOOTSTRAP": self.fed.fleet.bootstrap,
            "TAMIS_DATA": str(data),
            "TAMIS_TELEMETRY_HOST": host,
            "TAMIS_TELEMETRY_PORT": str(TELEMETRY),
            "TAMIS_PARTITIONS": "2",
            EXIT_UNAVAILABLE: str(TRY_AGAIN),
        }
        ready = f"http://{host}:{HTTP if name == 'registry' else TELEMETRY}/readyz"
        log = directory / f"{name}.log"
        self.fed.fleet.processes[name] = ServiceProcess(name, arguments, environment, log, ready)


@pytest.fixture
def network() -> Iterator[Network]:
    with Network(NAMES) as made, made.inside("operator"):
        yield made


def test_no_alarm_is_lost_or_doubled_over_a_bad_network(network: Network, tmp_path: Path) -> None:
    fleet = SpreadFleet(network, tmp_path)
    feeder = PatientFeeder(seed=12)
    feeder.url = fleet.http
    try:
        fleet.start(STREAMS + ALERTS)
        with feeding(feeder):
            fleet.last(5)
            for delay, loss in ((0.0, 0.1), (0.3, 0.0), (0.3, 0.1)):
                network.become(delay, loss)
                fleet.last(BAD_SECONDS)
                network.become()
                fleet.last(5)
            for pairs in (*([pair] for pair in TALKING), SILENT):
                network.become(cut=pairs)
                fleet.last(CUT_SECONDS)
                network.become()
                fleet.last(5)
        fed = fleet.fed
        fleet.supervise(lambda: all(p.is_ready() for p in fed.fleet.processes.values()), 180)
        check_windows(fed, feeder, settle(fed, feeder))
        found = check_alarms(fed, feeder, tmp_path)
        print(f"{found} alarms over {feeder.second} event seconds; restarts: {dict(fleet.restarts)}")
    finally:
        feeder.end()
        fleet.close()
