"""Counts over HTTP and MQTT sources whose edge is killed between accepting readings and publishing them.

The topic of a real edge goes through the joiner's core. Spark, a Kafka topic and a file are in
tests/e2e/one_fleet/test_standing.py.
"""

from __future__ import annotations

import random
from collections import Counter
from threading import Thread

import httpx
import numpy as np
import orjson
import pytest
from tests.fixtures.dict_state import DictState
from tests.integration.edge.mqtt import MOSQUITTO, Mosquitto, MqttBroker, sender
from tests.integration.edge.mqtt_by_hand import ByHand
from tests.integration.edges import PARTITIONS, Bench, Reader, RunningEdge, wait_for

from tamis.messaging.topics import PLANS
from tamis.plan.json_form import encode_plan
from tamis.plan.model import Plan
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of
from tamis_joiner.core.group import Group
from tamis_joiner.core.records.envelopes import Records, split_plans

MOST = 9_999
SQL = f"""
CREATE STREAM air (n BIGINT KEY CHECK (n BETWEEN 0 AND {MOST}));
CREATE ALERT counted AS SELECT n, count(*) AS times FROM air GROUP BY n;
"""
TOPIC = "tamis.stream.air.1"
SOURCE = """
sources:
  - {kind: mqtt, name: q, port: PORT, topic: plant/air, stream: air, username: edge, password: '${PASSWORD}'}
"""


def plan_of(source: str) -> Plan:
    shard = f"air:m/{source}"
    return first_plan(catalog_of(SQL), partitions=PARTITIONS, shards={shard: "air"})


def counted(reader: Reader, plan: Plan) -> Counter[int]:
    """How often the query has counted each reading, by its number."""
    found: Counter[int] = Counter()
    r = random.Random(len(reader.messages))
    for partition in range(PARTITIONS):
        values = [m.value for m in reader.messages if (m.topic, m.partition) == (TOPIC, partition)]
        plans = [Records(PLANS, partition, [encode_plan(plan)], np.zeros(1, np.int64), np.zeros(1, np.int64))]
        state, first, batch = DictState(), 0, 0
        while plans or first < len(values):
            some = values[first : first + r.randint(1, 300)]
            at = np.arange(first, first + len(some))
            group = Group.load(partition, PARTITIONS, state)
            records = split_plans([*plans, Records(TOPIC, partition, some, at, at)])
            out = group.process(*records, state, now=batch, token=f"{batch}")
            assert not out.dead_letters
            for _, value in out.alarms:
                row = orjson.loads(value)["row"]
                found[row["n"]] = row["times"]
            plans, first, batch = [], first + len(some), batch + 1
    return found


def numbers(reader: Reader) -> Counter[int]:
    """How often each reading is in the topic."""
    return Counter(m.tuple["n"] for m in reader.of("tuple"))


def await_all(reader: Reader, n: int) -> None:
    wait_for(f"{n} readings", lambda: len(numbers(reader)) >= n)


def settled(edge: RunningEdge, reader: Reader, n: int) -> None:
    """All readings are in the topic, and nothing is left that could come again."""
    await_all(reader, n)
    wait_for("an empty journal", lambda: edge.metric("tamis_edge_inbox_records") == 0)
    wait_for("an empty spool", lambda: edge.metric("tamis_edge_spool_records") == 0)
    edge.stop()
    reader.read(1.0)


def restart(edge: RunningEdge) -> None:
    edge.kill()
    edge.start()


# ---- HTTP


class Client(Thread):
    """Sends one reading after the other until it gets no answer. `n`: the first that wasn't accepted."""

    def __init__(self, edge: RunningEdge, n: int) -> None:
        super().__init__()
        self.edge, self.n = edge, n

    def run(self) -> None:
        """See above."""
        with httpx.Client(base_url=self.edge.http, timeout=60) as client:
            while True:
                try:
                    assert client.post("/v1/streams/air", json={"n": self.n}).status_code == 202
                except httpx.TransportError:
                    return
                self.n += 1


def test_what_http_answered_counts_once_over_kills(bench: Bench) -> None:
    plan = plan_of("http")
    bench.publish(plan)
    reader = bench.reader(TOPIC)
    edge = bench.edge("m").start()
    again = set()
    n = 0
    for _ in range(2):
        client = Client(edge, n)
        client.start()
        await_all(reader, n + 30)
        edge.kill()  # what is in Kafka is mostly not committed, what was answered last not in Kafka
        client.join()
        n = client.n
        again.add(n)
        edge.start()
    assert edge.post("air", [{"n": i} for i in (n, 0)]).status_code == 202
    settled(edge, reader, n + 1)
    found, published = counted(reader, plan), numbers(reader)
    assert any(published[i] > found[i] for i in found), "nothing was published twice, so nothing was shown"
    # Whoever had no answer has sent again, and so has one who lost it.
    assert found.pop(0) == 2
    assert sorted(found) == list(range(1, n + 1))
    assert all(times == 1 or (times == 2 and i in again) for i, times in found.items())


def test_what_http_answered_while_kafka_was_away_counts_once(bench: Bench) -> None:
    plan = plan_of("http")
    bench.publish(plan)
    edge = bench.edge("m").start()
    n = 50
    assert edge.post("air", [{"n": i} for i in range(n)]).status_code == 202
    await_all(bench.reader(TOPIC), n)
    bench.broker.stop()
    for killed in (True, False):
        for _ in range(4):
            assert edge.post("air", [{"n": n + i} for i in range(25)]).status_code == 202
            n += 25
        if killed:
            edge.kill()
            edge.process.start()
            wait_for("ready without Kafka", edge.process.is_ready, 60)
    bench.broker.start()
    reader = bench.reader(TOPIC)
    settled(edge, reader, n)
    assert counted(reader, plan) == dict.fromkeys(range(n), 1)


# ---- MQTT


def send(broker: MqttBroker, first: int, count: int) -> None:
    """The broker has them."""
    client = sender(broker)
    sent = [client.publish("plant/air", orjson.dumps({"n": first + i}), qos=1) for i in range(count)]
    for one in sent:
        one.wait_for_publish(20)
    client.loop_stop()
    client.disconnect()


def edge_of(bench: Bench, broker: MqttBroker) -> RunningEdge:
    config = SOURCE.replace("PORT", str(broker.port))
    edge = bench.edge("m", config, PASSWORD="secret").start()
    wait_for("the subscription", lambda: b"subscribed" in edge.process.log.read_bytes())
    return edge


def test_what_mqtt_delivers_again_counts_again_and_nothing_else_does(bench: Bench) -> None:
    broker = ByHand()
    try:
        plan = plan_of("q")
        bench.publish(plan)
        reader = bench.reader(TOPIC)
        edge = edge_of(bench, broker)

        def flow() -> None:
            for first in range(0, 300, 20):
                send(broker, first, 20)

        sending = Thread(target=flow)
        sending.start()
        await_all(reader, 40)
        edge.kill()  # what is in Kafka is mostly not committed, what was acknowledged last not in Kafka
        sending.join()
        edge.start()
        await_all(reader, 300)
        broker.lose_acknowledgements()
        send(broker, 300, 100)
        n = 400
        await_all(reader, n)
        restart(edge)
        settled(edge, reader, n)
        again = Counter({orjson.loads(payload)["n"]: times for payload, times in broker.again.items()})
        found, published = counted(reader, plan), numbers(reader)
        assert any(published[i] > found[i] for i in found), "nothing was published twice: nothing was shown"
        assert sorted(found) == list(range(n))
        assert all(1 <= found[i] <= 1 + again[i] for i in range(n))
        # These had been taken before they came again.
        assert [found[i] for i in range(300, n)] == [2] * 100
    finally:
        broker.stop()


@pytest.mark.skipif(MOSQUITTO is None, reason="needs Eclipse Mosquitto on the PATH")
def test_what_was_on_its_way_by_mqtt_counts_at_least_once(bench: Bench) -> None:
    broker = Mosquitto(bench.directory)
    try:
        plan = plan_of("q")
        bench.publish(plan)
        reader = bench.reader(TOPIC)
        edge = edge_of(bench, broker)
        send(broker, 0, 400)
        await_all(reader, 1)
        restart(edge)  # in mid stream
        settled(edge, reader, 400)
        assert sorted(counted(reader, plan)) == list(range(400))
    finally:
        broker.stop()
