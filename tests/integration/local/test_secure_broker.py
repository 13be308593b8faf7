"""`tamis kafka --secure`: its files are enough to log in, and nobody gets in without them."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tamis.local.service_process import free_ports
from tamis.messaging.topics import ACKS, PLANS
from tamis.settings import KafkaSettings, load

_SECONDS = 30


def test_a_secure_broker_takes_only_its_logins_and_keeps_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logins, (port,) = tmp_path / "kafka of mine" / "logins", free_ports(1)
    command = [sys.executable, "-m", "tamis.cli", "kafka", "--secure", "--port", str(port), "--directory"]

    started: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        process = subprocess.Popen([*command, str(logins.parent)], stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline().strip() == f"127.0.0.1:{port}"
        told = "".join(process.stdout.readline() for _ in range(7))
        assert f"{logins}/passwords/PRINCIPAL" in told and f"{logins}/tls/ca.pem" in told
        assert f"(set -a; . '{logins}/registry.env'; tamis registry)" in told
        return process

    def client(principal: str) -> AdminClient:
        """A client with the settings of a principal's file."""
        script = f"set -a; . '{logins}/{principal}.env'; exec env"
        lines = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout
        with monkeypatch.context() as patch:
            for name, _, value in (line.partition("=") for line in lines.splitlines()):
                if name.startswith("TAMIS_KAFKA_"):
                    patch.setenv(name, value)
            return AdminClient(load(KafkaSettings).client_config())

    def topics(principal: str) -> set[str]:
        return set(client(principal).list_topics(timeout=_SECONDS).topics)

    try:
        process = start()
        with pytest.raises(KafkaException):
            AdminClient({"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 0}).list_topics(timeout=2)
        assert topics("admin") == set() == topics("reader")
        registry = client("registry")
        for made in registry.create_topics([NewTopic(name, 1, 1) for name in (ACKS, PLANS)]).values():
            made.result(_SECONDS)
        assert topics("reader") == {PLANS}
        assert topics("admin") == {PLANS, ACKS}
        for path in logins.rglob("*"):
            assert path.stat().st_mode & 0o077 == 0, path
        process.send_signal(signal.SIGTERM)
        assert process.wait(_SECONDS) == 0
        start()
        assert topics("reader") == {PLANS}
    finally:
        for process in started:
            process.terminate()
            process.communicate()
