"""The embedded broker: what services rely on, restarts, locks and logs."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tamis.errors import InputError
from tamis.java import class_archives, jars
from tamis.local.broker import EmbeddedKafka

_SECONDS = 30


def _topic(bootstrap: str) -> str:
    name = f"test-{uuid.uuid4().hex}"
    # The client has to live until the future is there.
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(_SECONDS)
    return name


def _produce(bootstrap: str, topic: str, values: list[bytes]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(_SECONDS) == 0


def _consume(bootstrap: str, topic: str, count: int, quiet_seconds: float = 0.0) -> list[bytes]:
    """The first `count` values, and what else comes within `quiet_seconds` after them."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": uuid.uuid4().hex,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.subscribe([topic])
        values: list[bytes] = []
        end = time.monotonic() + _SECONDS
        while time.monotonic() < end:
            message = consumer.poll(0.1)
            if message is not None:
                assert message.error() is None, message.error()
                value = message.value()
                assert isinstance(value, bytes)
                values.append(value)
                if len(values) == count:
                    end = time.monotonic() + quiet_seconds
        return values
    finally:
        consumer.close()


def test_idempotent_producer_keeps_order(kafka: str) -> None:
    topic = _topic(kafka)
    values = [str(n).encode() for n in range(10_000)]
    _produce(kafka, topic, values)
    assert _consume(kafka, topic, len(values)) == values


def test_only_committed_transactions_are_read(kafka: str) -> None:
    topic = _topic(kafka)
    producer = Producer({"bootstrap.servers": kafka, "transactional.id": uuid.uuid4().hex})
    producer.init_transactions(_SECONDS)
    for value, end in (
        (b"first", producer.commit_transaction),
        (b"aborted", producer.abort_transaction),
        (b"second", producer.commit_transaction),
    ):
        producer.begin_transaction()
        producer.produce(topic, value)
        assert producer.flush(_SECONDS) == 0
        end(_SECONDS)
    assert _consume(kafka, topic, 2, quiet_seconds=1) == [b"first", b"second"]


@pytest.mark.parametrize("end", [EmbeddedKafka.stop, EmbeddedKafka.kill])
def test_data_and_port_outlast_the_process(
    broker: EmbeddedKafka, end: Callable[[EmbeddedKafka], None]
) -> None:
    bootstrap = broker.bootstrap
    topic = _topic(bootstrap)
    _produce(bootstrap, topic, [b"before"])
    end(broker)
    assert not broker.running
    assert broker.start() == bootstrap
    _produce(bootstrap, topic, [b"after"])
    assert _consume(bootstrap, topic, 2) == [b"before", b"after"]


def test_classes_come_from_an_archive_that_fits(tmp_path: Path) -> None:
    archive = tmp_path / "broker.jsa"
    recorder = EmbeddedKafka(tmp_path / "first", class_archive=class_archives.recording(archive))
    recorder.start()
    archive.unlink(missing_ok=True)  # that of the process that formats the directory
    recorder.stop(4 * _SECONDS)
    assert archive.exists(), "Java writes the archive at the end of the process"
    # With this option Java ends at once if it can't use the archive.
    strictly = [f"-XX:SharedArchiveFile={archive}", "-Xshare:on"]
    with EmbeddedKafka(tmp_path / "second", class_archive=strictly) as broker:
        topic = _topic(broker.bootstrap)
        _produce(broker.bootstrap, topic, [b"value"])
        assert _consume(broker.bootstrap, topic, 1) == [b"value"]


def test_a_damaged_archive_of_classes_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("broker", "spark"):
        (tmp_path / name).symlink_to(jars.root() / name)
    (tmp_path / "broker.jsa").write_bytes(b"no archive")
    monkeypatch.setenv("TAMIS_JARS", str(tmp_path))
    with EmbeddedKafka(tmp_path / "kafka") as broker:
        topic = _topic(broker.bootstrap)
        _produce(broker.bootstrap, topic, [b"value"])
        assert _consume(broker.bootstrap, topic, 1) == [b"value"]
    assert (tmp_path / "kafka" / "broker.out").read_text() == ""


def test_directory_and_port_have_one_broker(broker: EmbeddedKafka, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="another broker is using this directory"):
        EmbeddedKafka(broker.directory).start()
    port = int(broker.bootstrap.rpartition(":")[2])
    with pytest.raises(InputError, match=f"port {port} is taken"):
        EmbeddedKafka(tmp_path / "other", port=port).start()
    assert broker.running


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_command_stops_cleanly(tmp_path: Path, signum: signal.Signals) -> None:
    command = [sys.executable, "-m", "tamis.cli", "kafka", "--directory", str(tmp_path / "kafka")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        bootstrap = process.stdout.readline().strip()
        assert AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=_SECONDS).brokers
        process.send_signal(signum)
        assert process.wait(_SECONDS) == 0
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", int(bootstrap.rpartition(":")[2]))) != 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child that its parent is gone")
def test_broker_does_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    directory = tmp_path / "kafka"
    command = [sys.executable, "-m", "tamis.cli", "kafka", "--directory", str(directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        process.kill()
    # It takes the directory's lock as soon as the first broker has let go of it.
    with EmbeddedKafka(directory) as successor:
        assert successor.running


def test_another_broker_on_the_port_does_not_count_as_this_one(tmp_path: Path) -> None:
    """Two fleets that start at once may choose the same port; the slower one must use no other Kafka."""
    own = EmbeddedKafka(tmp_path / "own")
    own.start()
    own.stop()
    with EmbeddedKafka(tmp_path / "other", port=int(own.bootstrap.rpartition(":")[2])) as other:
        assert other.is_ready()
        assert not own.is_ready()


def test_a_port_that_is_taken_during_the_start_is_named(tmp_path: Path) -> None:
    broker = EmbeddedKafka(tmp_path)
    broker.launch()
    with socket.socket() as other:
        # As servers do; the broker needs seconds before it listens.
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", int(broker.bootstrap.rpartition(":")[2])))
        other.listen()
        with pytest.raises(InputError, match=r"another program has taken port \d+ while Kafka started"):
            broker.wait_ready()
