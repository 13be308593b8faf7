"""The edge behind MQTT brokers: what it acknowledged survives, whatever the version, with and without TLS."""

from __future__ import annotations

from functools import partial

import httpx
import orjson
import pytest
from tests.fixtures.certificates import issue_server
from tests.integration.edge.mqtt import MOSQUITTO, Amqtt, Certificate, Mosquitto, MqttBroker, sender
from tests.integration.edge.test_edge import await_all, reading
from tests.integration.edges import Bench, RunningEdge, everything, wait_for
from tests.unit.edge.plans import TOPIC

from tamis.local.broker_security import Authority
from tamis.local.service_process import free_ports
from tamis.messaging.topics import DEAD_LETTERS


def edge_of(bench: Bench, port: int, more: str = "", **environment: str) -> RunningEdge:
    config = f"""
sources:
  - kind: mqtt
    name: q
    port: {port}
    topic: plant/{{stream}}/t
    username: edge
    password: ${{MQTT_PASSWORD}}
{more}
"""
    return bench.edge("m", config, MQTT_PASSWORD="secret", **environment)


def subscribed(edge: RunningEdge) -> None:
    wait_for("the subscription", lambda: b"subscribed" in edge.process.log.read_bytes())
    wait_for("a source that is up", lambda: edge.metric("tamis_edge_source_up", source="q") == 1)


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_what_mqtt_acknowledged_survives_a_kill(bench: Bench, tls: bool) -> None:
    certificate = Certificate.make(bench.directory) if tls else None
    broker = Amqtt(bench.directory, certificate)
    try:
        bench.publish(everything("air:m/q"))
        reader = bench.reader(TOPIC, DEAD_LETTERS)
        trusted = {"SSL_CERT_FILE": str(certificate.certificate)} if certificate else {}
        edge = edge_of(bench, broker.port, "    tls: true" if tls else "", **trusted).start()
        subscribed(edge)
        client = sender(broker, certificate)
        n = 600
        for i in range(n):
            client.publish("plant/air/t", orjson.dumps(reading(i)), qos=1).wait_for_publish(10)
            if i == 200:
                wait_for("acknowledgements", lambda: broker.unacknowledged() == 0)
                edge.kill()
                wait_for("the session is free", broker.away)
            if i == 400:
                edge.start()
        for stream in ("water", "no stream"):
            client.publish(f"plant/{stream}/t", b'{"level": 1}', qos=1).wait_for_publish(10)
        client.loop_stop()
        client.disconnect()
        await_all(reader, n)
        dead = wait_for(
            "dead letters", lambda: len(d := [m for m in reader.read() if m.topic == DEAD_LETTERS]) == 2 and d
        )
        assert [m.value for m in dead] == [b'{"level": 1}'] * 2
        assert {m.headers["reason"] for m in dead} == {"unknown_stream"}
        assert [m.headers["error"] for m in dead] == [
            "no stream 'water' in the plan",
            "no stream 'no stream' in the plan",
        ]
        wait_for("counts", lambda: edge.metric("tamis_edge_tuples_total", decision="dead", stream="?") == 2)
        edge.stop()
    finally:
        broker.stop()


def test_a_broker_that_nobody_vouches_for_is_not_trusted(bench: Bench) -> None:
    broker = Amqtt(bench.directory, Certificate.make(bench.directory))
    try:
        bench.publish(everything("air:m/q"))
        edge = edge_of(bench, broker.port, "    tls: true").start()
        wait_for("refusal", lambda: b"certificate verify failed" in edge.process.log.read_bytes())
        assert b"subscribed" not in edge.process.log.read_bytes()
        wait_for("a source that is down", lambda: edge.metric("tamis_edge_source_up", source="q") == 0)
        edge.stop()
    finally:
        broker.stop()


def test_each_refusal_is_named_and_the_edge_goes_on_trying(bench: Bench) -> None:
    """No broker, then one with a certificate of another authority, for another name, and with another
    password; then the right one.
    """
    port = free_ports(1)[0]
    at = f"the MQTT broker at 127.0.0.1:{port}"
    right = Authority(bench.directory)
    wrong = Authority(bench.directory / "wrong")
    good = issue_server(right, "good")
    steps = [
        (
            issue_server(wrong, "other"),
            "secret",
            f"the certificate of {at} is not trusted (certificate verify failed: ",
        ),
        (
            issue_server(right, "name", "DNS:elsewhere.example"),
            "secret",
            "certificate verify failed: IP address mismatch",
        ),
        (good, "changed", "; check `username` and `password` of the source"),
    ]
    bench.publish(everything("air:m/q"))
    reader = bench.reader(TOPIC, DEAD_LETTERS)
    edge = edge_of(bench, port, f"    tls: {{ca: {right.certificate.name}}}")
    make = Amqtt if MOSQUITTO is None else Mosquitto
    edge.start()
    away = f"can't reach {at}: Connection refused"
    wait_for(away, partial(_is_told, edge, away))
    for issued, password, said in steps:
        broker: MqttBroker = make(
            bench.directory, Certificate(issued.certificate, issued.key), port=port, password=password
        )
        try:
            wait_for(said, partial(_is_told, edge, said))
            assert edge.metric("tamis_edge_source_up", source="q") == 0
        finally:
            broker.stop()
    broker = make(bench.directory, Certificate(good.certificate, good.key), port=port)
    try:
        wait_for("the connection", lambda: b"subscribed" in edge.process.log.read_bytes())
        client = sender(broker, Certificate(right.certificate, good.key))
        client.publish("plant/air/t", orjson.dumps(reading(0)), qos=1).wait_for_publish(10)
        client.loop_stop()
        client.disconnect()
        await_all(reader, 1)
        edge.stop()
    finally:
        broker.stop()
    log = edge.process.log.read_text()
    assert "secret" not in log


def _is_told(edge: RunningEdge, said: str) -> bool:
    """True if the state and the log both say it."""
    return said in httpx.get(f"{edge.telemetry}/readyz").text and said in edge.process.log.read_text()


@pytest.mark.skipif(MOSQUITTO is None, reason="needs Eclipse Mosquitto on the PATH")
@pytest.mark.parametrize("protocol", ["3.1.1", "5"])
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_what_was_on_its_way_comes_again(bench: Bench, protocol: str, tls: bool) -> None:
    certificate = Certificate.make(bench.directory) if tls else None
    broker = Mosquitto(bench.directory, certificate)
    try:
        bench.publish(everything("air:m/q"))
        reader = bench.reader(TOPIC, DEAD_LETTERS)
        trusted = {"SSL_CERT_FILE": str(certificate.certificate)} if certificate else {}
        more = f'    protocol: "{protocol}"\n' + ("    tls: true" if tls else "")
        edge = edge_of(bench, broker.port, more, **trusted).start()
        subscribed(edge)
        client = sender(broker, certificate)
        n = 900
        for i in range(n):
            sent = client.publish("plant/air/t", orjson.dumps(reading(i)), qos=1)
            if i == 300:
                edge.kill()  # in mid stream: some are on their way
            if i == 600:
                sent.wait_for_publish(20)
                edge.start()
        sent.wait_for_publish(20)
        client.loop_stop()
        client.disconnect()
        await_all(reader, n)
        edge.stop()
    finally:
        broker.stop()
