"""A password that Kafka rejects: every client reports the address and the setting."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from pydantic import SecretStr
from tests.integration.edges import wait_for
from tests.unit.edge.plans import air, entry, plan, topic

from tamis.errors import UnavailableError
from tamis.local.broker import EmbeddedKafka
from tamis.local.broker_settings import Listener
from tamis.local.service_process import ServiceProcess, free_ports
from tamis.messaging.probe import AWAY_SECONDS, KafkaProbe
from tamis.messaging.topic_reader import TopicReader
from tamis.messaging.topic_wait import wait_for_topics
from tamis.messaging.topics import ALARMS, PLANS
from tamis.plan.json_form import encode_plan
from tamis.settings import KafkaSettings, ServiceSettings, TableSettings
from tamis.telemetry import Health
from tamis_joiner.service import Joiner
from tamis_joiner.settings import JoinerSettings
from tamis_registry.kafka.store import Store

_USER, _PASSWORD = "tamis", "right"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaSettings]:
    """A broker that wants a password, and the settings with the right one."""
    (port,) = free_ports(1)
    login = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{_USER}="{_PASSWORD}";'
    settings = {"sasl.enabled.mechanisms": "PLAIN", "plain.sasl.jaas.config": login}
    listener = Listener("SECURED", port, "SASL_PLAINTEXT", settings=settings)
    with EmbeddedKafka(tmp_path_factory.mktemp("secured"), listeners=[listener]):
        yield KafkaSettings(
            bootstrap=f"127.0.0.1:{port}",
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="PLAIN",
            sasl_username=_USER,
            sasl_password=SecretStr(_PASSWORD),
        )


def _read(settings: KafkaSettings) -> None:
    with TopicReader(settings.client_config(), [PLANS]) as reader:
        list(reader.snapshot())


def _open_store(settings: KafkaSettings) -> None:
    Store(settings, "owner").close()


@pytest.mark.parametrize("connect", [_read, _open_store])
def test_wrong_password(secured: KafkaSettings, connect: Callable[[KafkaSettings], None]) -> None:
    wrong = secured.model_copy(update={"sasl_password": SecretStr("wrong")})
    with pytest.raises(UnavailableError) as caught:
        connect(wrong)
    assert str(caught.value) == _said(secured)


def test_wrong_mechanism(secured: KafkaSettings) -> None:
    wrong = secured.model_copy(update={"sasl_mechanism": "SCRAM-SHA-256"})
    with pytest.raises(UnavailableError, match=r"authentication failed: .*check TAMIS_KAFKA_SASL_MECHANISM"):
        _read(wrong)


def test_right_password(secured: KafkaSettings) -> None:
    _open_store(secured)


def test_no_broker() -> None:
    (port,) = free_ports(1)
    bootstrap = f"127.0.0.1:{port}"
    with pytest.raises(UnavailableError) as caught:
        _read(KafkaSettings(bootstrap=bootstrap))
    assert str(caught.value).startswith(f"Kafka at {bootstrap}: can't be reached: ")
    assert "Connection refused" in str(caught.value)
    assert "TAMIS_KAFKA_BOOTSTRAP" in str(caught.value)


def test_joiner_says_so_while_it_waits(
    secured: KafkaSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = secured.model_copy(update={"sasl_password": SecretStr("wrong")})
    joiner = Joiner(ServiceSettings(data=tmp_path), wrong, JoinerSettings(), TableSettings())
    said: list[str] = []

    def not_ready(reason: str) -> None:
        said.append(reason)
        joiner.stop()

    monkeypatch.setattr(joiner._health, "not_ready", not_ready)
    waiting = threading.Thread(target=joiner._wait_for_plans)
    waiting.start()
    waiting.join(30)
    assert said == [_said(secured)]


def test_waiting_for_topics_names_the_password(secured: KafkaSettings) -> None:
    wrong = secured.model_copy(update={"sasl_password": SecretStr("wrong")})
    said: list[str] = []
    stopping = threading.Event()

    class Told(Health):
        def not_ready(self, reason: str) -> None:
            said.append(reason)
            stopping.set()

    assert wait_for_topics(wrong, [ALARMS], Told(), stopping) is None
    assert said == [_said(secured)]


def test_an_edge_with_a_plan_is_not_ready(secured: KafkaSettings, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_bytes(encode_plan(plan(air([topic([entry(0)])]), [], partitions=2)))
    (http, telemetry) = free_ports(2)
    url = f"http://127.0.0.1:{telemetry}"
    edge = ServiceProcess(
        "edge",
        ["edge", "--name", "e", "--data", str(tmp_path), "--http-port", str(http)],
        {
            "TAMIS_KAFKA_BOOTSTRAP": secured.bootstrap,
            "TAMIS_KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
            "TAMIS_KAFKA_SASL_MECHANISM": "PLAIN",
            "TAMIS_KAFKA_SASL_USERNAME": _USER,
            "TAMIS_KAFKA_SASL_PASSWORD": "wrong",
            "TAMIS_TELEMETRY_PORT": str(telemetry),
        },
        tmp_path / "edge.log",
        f"{url}/readyz",
    )
    edge.start()

    def said() -> str:
        try:
            return httpx.get(f"{url}/readyz").text
        except httpx.TransportError:
            return ""

    try:
        wait_for("the reason", lambda: said() == f"kafka: {_said(secured)}\n", 90)
        assert not edge.is_ready()
        assert httpx.get(f"{url}/healthz").status_code == 200
        assert _said(secured) in edge.log.read_text()
    finally:
        assert edge.stop() == 0


def test_a_broker_that_is_away_counts_after_a_while() -> None:
    (port,) = free_ports(1)
    seconds = 100.0
    health = Health()
    health.ready()
    probe = KafkaProbe(KafkaSettings(bootstrap=f"127.0.0.1:{port}"), health, clock=lambda: seconds)
    probe.look()
    assert health.readiness() == (True, "ready")
    seconds += AWAY_SECONDS
    probe.look()
    ready, reason = health.readiness()
    assert not ready
    assert reason.startswith(f"kafka: Kafka at 127.0.0.1:{port}: can't be reached: ")
    assert health.liveness()[0]


def test_a_broker_that_answers_again_counts_at_once(secured: KafkaSettings) -> None:
    health = Health()
    health.ready()
    health.check("kafka", "away")
    KafkaProbe(secured, health).look()
    assert health.readiness() == (True, "ready")


def _said(settings: KafkaSettings) -> str:
    return (
        f"Kafka at {settings.bootstrap}: authentication failed: Invalid username or password; "
        "check TAMIS_KAFKA_SASL_USERNAME and TAMIS_KAFKA_SASL_PASSWORD"
    )
