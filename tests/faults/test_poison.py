"""500 readings that can't be used, of 20 kinds, among 50,000 good ones over HTTP, Kafka and MQTT."""

from __future__ import annotations

import gzip
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import pytest
from confluent_kafka import Producer
from paho.mqtt.client import MQTTMessageInfo
from tests.e2e.fed_fleet import FedFleet, until
from tests.e2e.feeder import SECOND, STATIONS, Feeder
from tests.faults.judging import ALERTS, check_alarms, check_windows, settle
from tests.faults.kafka_feeder import create_raw_topics
from tests.integration.edge.mqtt import MOSQUITTO, Mosquitto, sender
from tests.integration.edges import Reader

from tamis.local.fleet import EdgeSpec
from tamis.local.service_process import free_ports
from tamis.messaging.topics import DEAD_LETTERS

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]

GOOD, OF_EACH_KIND = 50_000, 25
SECONDS = GOOD // (2 * STATIONS)
YEAR_2099 = 4_070_908_800 * SECOND


def _with(**fields: object) -> Callable[[int], bytes]:
    """A good reading of air but for some fields."""
    return lambda i: orjson.dumps({"station": f"p{i}", "ts": i, "temp": 1.0, "rh": 50.0, **fields})


# By its reason: a payload of the kind with the number i, different for each i.
KINDS: dict[str, tuple[str, Callable[[int], bytes]]] = {
    "no JSON": ("undecodable", lambda i: b"temperature of %d degrees" % i),
    "cut off": ("undecodable", lambda i: b'{"station": "p", "ts": %d, "temp": 2' % i),
    "two objects": ("undecodable", lambda i: b'{"station": "p", "ts": %d} {"temp": 1}' % i),
    "an array": ("undecodable", lambda i: b'[{"station": "p", "ts": %d, "temp": 1}]' % i),
    "a string": ("undecodable", lambda i: b'"p%d"' % i),
    "a number": ("undecodable", lambda i: b"%d" % i),
    "not UTF-8": ("undecodable", lambda i: b'{"station": "p\xff\xfe%d", "ts": 1, "temp": 1}' % i),
    "UTF-16": ("undecodable", lambda i: f'{{"station": "p{i}", "ts": 1}}'.encode("utf-16")),
    "a zero byte": ("undecodable", lambda i: b'{"station": "p\x00", "ts": %d, "temp": 1}' % i),
    "half a surrogate": ("undecodable", lambda i: b'{"station": "\\ud800", "ts": %d, "temp": 1}' % i),
    "deeply nested": ("undecodable", lambda i: b'{"ts": %d, "x": ' % i + b"[" * 5_000 + b"]" * 5_000 + b"}"),
    "compressed": ("undecodable", lambda i: gzip.compress(_with()(i), mtime=0)),
    "NaN": ("nan", lambda i: b'{"station": "p", "ts": %d, "temp": NaN}' % i),
    "no time": ("missing_field", lambda i: b'{"station": "p%d", "temp": 1.0}' % i),
    "a text for a number": ("wrong_type", _with(temp="warm")),
    "a number for a text": ("wrong_type", _with(station=7)),
    "a time that is none": ("wrong_type", lambda i: _with(ts=f"yesterday, {i}")(i)),
    "out of its domain": ("out_of_domain", _with(temp=70.5)),
    "ahead of the clock": ("ahead_of_clock", lambda i: _with(ts=YEAR_2099 + i)(i)),
    "too large": ("too_large", _with(note="x" * 900_000)),
}


class PoisonFeeder(Feeder):
    """A feeder over HTTP, Kafka and MQTT in turn, with messages that can't be used among the readings of air.

    `sent`: those messages, with the reason that the edge should find.
    """

    def __init__(self, bootstrap: str, broker: Mosquitto) -> None:
        super().__init__(seed=4)
        self.sent: list[tuple[str, bytes]] = []
        self._places = random.Random(17)
        kinds = [KINDS[name] for name in KINDS for _ in range(OF_EACH_KIND)]
        self._poison = [(reason, make(i)) for i, (reason, make) in enumerate(kinds)]
        self._places.shuffle(self._poison)
        self._posts = Counter[str]()
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
        self._mqtt = sender(broker)
        self._published: list[MQTTMessageInfo] = []

    def post_lines(self, stream: str, lines: list[bytes]) -> None:
        transport = self._posts[stream] % 3
        self._posts[stream] += 1
        lines = list(lines)
        if (
            stream == "air"
            and self._poison
            and self._places.random() < 2 * OF_EACH_KIND * len(KINDS) / SECONDS
        ):
            reason, payload = self._poison.pop()
            # Over HTTP a line has no line break, and the edge refuses a request with such a large reading.
            if transport == 0 and (len(payload) > 900_000 or b"\n" in payload or payload != payload.strip()):
                self._poison.insert(0, (reason, payload))
            else:
                self.sent.append((reason, payload))
                lines.insert(self._places.randrange(len(lines) + 1), payload)
        if transport == 0:
            super().post_lines(stream, lines)
        elif transport == 1:
            for line in lines:
                self._producer.produce(f"raw.{stream}", line)
            self._producer.poll(0)
        else:
            for line in lines:
                self._published.append(self._mqtt.publish(f"plant/{stream}/t", line, qos=1))

    def flush(self) -> None:
        """Wait until all is delivered."""
        assert self._producer.flush(30) == 0
        for info in self._published:
            info.wait_for_publish(120)

    def end(self) -> None:
        super().end()
        self._mqtt.disconnect()
        self._mqtt.loop_stop()


@pytest.fixture
def mosquitto(tmp_path: Path) -> Iterator[Mosquitto]:
    if MOSQUITTO is None:
        pytest.skip("mosquitto isn't installed")
    broker = Mosquitto(tmp_path)
    yield broker
    broker.stop()


def test_500_poison_messages_are_dead_letters_and_all_other_readings_are_used(
    tmp_path: Path, mosquitto: Mosquitto
) -> None:
    (port,) = free_ports(1)
    config = tmp_path / "edge.yaml"
    config.write_text(
        f"""
name: edge
http: {{port: {port}}}
sources:
  - {{kind: http, name: http}}
  - {{kind: kafka, name: ka, stream: air, topic: raw.air}}
  - {{kind: kafka, name: ks, stream: surface, topic: raw.surface}}
  - {{kind: mqtt, name: q, port: {mosquitto.port}, topic: "plant/{{stream}}/t",
     username: edge, password: "${{MQTT_PASSWORD}}"}}
"""
    )
    fed = FedFleet(tmp_path / "fleet", {"MQTT_PASSWORD": "secret"}, edges=[EdgeSpec("edge", config)])
    try:
        bootstrap = fed.fleet.broker.start()
        create_raw_topics(bootstrap, 1)
        fed.start(ALERTS)
        feeder = PoisonFeeder(bootstrap, mosquitto)
        feeder.url = f"http://127.0.0.1:{port}"
        try:
            feeder.until(SECONDS, pause=0)
            feeder.flush()
            check_windows(fed, feeder, settle(fed, feeder))
        finally:
            feeder.end()
        assert len(feeder.sent) == len(KINDS) * OF_EACH_KIND == 500
        assert {reason for reason, _ in feeder.sent} == {reason for reason, _ in KINDS.values()}
        assert sum(map(len, feeder.posted.values())) >= GOOD
        assert check_alarms(fed, feeder, tmp_path) > 1_000
        reader = Reader(bootstrap, [DEAD_LETTERS])
        until(lambda: len(reader.read()) >= len(feeder.sent), 60)
        assert Counter((m.headers["reason"], m.value) for m in reader.read()) == Counter(feeder.sent)
        reader.close()
    finally:
        fed.fleet.stop()
