"""The MQTT sink with real brokers: acknowledged, repeated after a broker's absence, and in order."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
import time
from pathlib import Path
from typing import Any

import orjson
import paho.mqtt.client as paho
import pytest
from structlog.testing import capture_logs
from tests.integration.edge.mqtt import MOSQUITTO, Amqtt, Certificate, Mosquitto, MqttBroker, sender

from tamis.local.service_process import free_ports
from tamis.settings import KafkaSettings
from tamis_alerts.settings import AlertsConfig
from tamis_alerts.sinks.delivery import DeliveryError, SinkDelivery

BROKERS = [
    pytest.param(Amqtt, "3.1.1", id="amqtt"),
    pytest.param(Mosquitto, "5", id="mosquitto", marks=pytest.mark.skipif(not MOSQUITTO, reason="no broker")),
]
EPISODE = {
    "alert": "hot", "key": ["k"], "episode": "e1", "event": "opened", "start": 0, "end": 5_000_000,
    "alarms": 3, "row": {"temp": 41.5}, "severity": "page", "labels": {"team": "ops"},
}  # fmt: skip


class Listener:
    """A subscriber of all topics."""

    def __init__(self, broker: MqttBroker, tls: Certificate | None = None) -> None:
        self._heard: list[paho.MQTTMessage] = []
        subscribed = threading.Event()
        self._client = sender(broker, tls)
        self._client.on_message = lambda _, __, message: self._heard.append(message)
        self._client.on_subscribe = lambda *_: subscribed.set()
        while self._client.subscribe("#", 1)[0] != paho.MQTT_ERR_SUCCESS:
            time.sleep(0.02)  # not connected yet
        assert subscribed.wait(20)

    def events(self, count: int) -> list[tuple[str, int, Any]]:
        """At least `count` messages: topic, QoS and content."""
        deadline = time.monotonic() + 20
        while len(self._heard) < count:
            assert time.monotonic() < deadline, "did not come in time"
            time.sleep(0.02)
        return [(message.topic, message.qos, orjson.loads(message.payload)) for message in self._heard]

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


def delivery(port: int, **more: Any) -> SinkDelivery:
    sink = {
        "kind": "mqtt", "host": "127.0.0.1", "port": port, "topic": "plant/alarms", "username": "edge",
        "password": "${MQTT_PASSWORD}", "attempts": 2, **more,
    }  # fmt: skip
    (config,) = AlertsConfig.model_validate({"sinks": [sink]}).sinks
    return SinkDelivery(config, KafkaSettings())


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQTT_PASSWORD", "secret")


# amqtt doesn't close the connections of clients when it stops.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(("kind", "protocol"), BROKERS)
def test_events_are_acknowledged_also_after_the_broker_was_away(
    tmp_path: Path, kind: type[Amqtt] | type[Mosquitto], protocol: str
) -> None:
    port, certificate = free_ports(1)[0], Certificate.make(tmp_path)

    async def tell() -> list[tuple[str, int, Any]]:
        made = delivery(port, protocol=protocol, attempts=100, tls=True, ca=str(certificate.certificate))
        broker = await asyncio.to_thread(lambda: kind(tmp_path, certificate, port=port))
        listener = await asyncio.to_thread(Listener, broker, certificate)
        await asyncio.gather(*(made.deliver({**EPISODE, "key": [n]}, time.time()) for n in range(20)))
        first = await asyncio.to_thread(listener.events, 20)
        await asyncio.to_thread(listener.close)
        await asyncio.to_thread(broker.stop)
        late = asyncio.create_task(made.deliver({**EPISODE, "event": "closed"}, time.time()))
        await asyncio.sleep(0)
        broker = await asyncio.to_thread(lambda: kind(tmp_path, certificate, port=port))
        listener = await asyncio.to_thread(Listener, broker, certificate)
        # The listener may have come after the event: one more shows that the sink works again.
        await late
        await made.deliver({**EPISODE, "key": ["last"]}, time.time())
        last = await asyncio.to_thread(listener.events, 1)
        while last[-1][2]["key"] != ["last"]:  # the late event may come to the listener, too
            last = await asyncio.to_thread(listener.events, len(last) + 1)
        await made.close()
        await asyncio.to_thread(listener.close)
        await asyncio.to_thread(broker.stop)
        gc.collect()  # what amqtt has left open is reported in this test
        return [*first, last[-1]]

    told = asyncio.run(tell())
    assert {(topic, qos) for topic, qos, _ in told} == {("plant/alarms", 1)}
    assert sorted(event["key"][0] for _, _, event in told[:20]) == list(range(20))
    assert told[-1][2] == {**EPISODE, "key": ["last"]}


def refusal(port: int, **more: Any) -> tuple[str, list[Any]]:
    """Why an event is given up, and what is logged."""
    fault = ""

    async def tell() -> None:
        nonlocal fault
        made = delivery(port, **more)
        try:
            await made.deliver(EPISODE, time.time())
        except DeliveryError as error:
            fault = str(error)
        await made.close()

    with capture_logs() as logs:
        asyncio.run(tell())
    return fault, list(logs)


def test_a_wrong_password_is_told_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQTT_PASSWORD", "hush")
    broker = Amqtt(tmp_path)
    fault, logs = refusal(broker.port, protocol="3.1.1")
    broker.stop()
    assert fault.startswith("sink 'mqtt': the ") and fault.endswith("attempts made: 2")
    assert "hush" not in fault + repr(logs)


def test_a_broker_that_is_away_or_never_answers_ends_the_attempts() -> None:
    assert "can't be reached; attempts made: 2" in refusal(free_ports(1)[0])[0]
    with socket.create_server(("127.0.0.1", 0)) as silent:
        fault, _ = refusal(silent.getsockname()[1], timeout=0.3)
    assert fault == "sink 'mqtt': no answer within 0.3 s; attempts made: 2"
