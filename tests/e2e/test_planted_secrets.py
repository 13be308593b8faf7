"""Secrets stay secret: a secure fleet with planted secrets, of which no output shows one.

The outputs: logs, metrics, the registry's API, records of every topic, command lines of all processes (with
Spark's JVM and Python workers), files in data directories and checkpoints, and the answers to wrong secrets.

As a control, the names of the edge and of the alert contain a marker, which is no secret: the same search
must find the marker in every kind of output. At the end a secret is written into a log, where the search must
find it. Compressed blocks of RocksDB's files are searched as they are.
"""

from __future__ import annotations

import base64
import os
import secrets
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
import yaml
from confluent_kafka import Consumer, TopicPartition
from tests.e2e.fed_fleet import until
from tests.e2e.feeder import STREAMS, hot_alert
from tests.e2e.test_up import TAMIS, read_until
from tests.fixtures.certificates import issue_server
from tests.integration.alerts.receiver import Receiver
from tests.integration.edge.mqtt import MOSQUITTO, Amqtt, Certificate, Mosquitto, MqttBroker, sender

from tamis.cli.fleet.up import _addresses
from tamis.local.broker_security import Authority
from tamis.local.fleet import EdgeSpec, Fleet, FleetSpec
from tamis.local.service_process import free_ports
from tamis.messaging.topics import ACKS, ALARMS, EPISODES, PLANS, STATEMENTS
from tamis.settings.token_file import token_entry
from tamis.web.tls import client_context
from tamis.web.tokens import Role, Token, digest

EDGE = """
name: edge
http:
  port: {http}
  tokens_file: {tokens}
  tls: {{certificate: {certificate}, key: {key}, key_password: "${{EDGE_KEY_PASSWORD}}"}}
sources:
  - {{kind: http, name: gateway}}
  - {{kind: mqtt, name: plant, port: {mqtt}, topic: "plant/{{stream}}/t", username: edge,
      password: "${{MQTT_PASSWORD}}", tls: {{ca: {ca}}}}}
  - {{kind: mqtt, name: refused, port: {mqtt}, topic: other, stream: surface, username: edge,
      password: "${{WRONG_MQTT_PASSWORD}}", tls: {{ca: {ca}}}}}
  - {{kind: kafka, name: avro, topic: tamis.no-such-topic, stream: surface, format: avro}}
"""
ALERTS = """
sinks:
  - {kind: webhook, name: pager, url: "${HOOK_URL}", token: "${HOOK_TOKEN}", secret: "${HOOK_SECRET}"}
  - {kind: webhook, name: broken, url: "${BROKEN_HOOK_URL}", token: "${HOOK_TOKEN}", attempts: 2}
"""


# Kinds of output that must show the marker.
KINDS = {
    "answers of the edge",
    "answers of the registry",
    "outputs of commands",
    "command lines",
    "metrics of joiner",
    "metrics of alerts",
    "the registry's API",
    *(f"topic {name}" for name in (PLANS, STATEMENTS, ALARMS, EPISODES, ACKS)),
    *(f"files of {name}" for name in ("logs", "edge", "joiner", "kafka")),
}


def planted(name: str) -> str:
    """A secret that occurs nowhere by chance."""
    return f"planted-{name}-{secrets.token_hex(12)}"


def forms(secret: str) -> list[bytes]:
    """The forms of a secret to search for: itself, and its digits in Base64 behind 0, 1 or 2 other bytes, as
    in the header of basic authentication. The first and last digits depend on what stands beside it.
    """
    plain = secret.encode()
    encoded = [base64.b64encode(b"\0" * before + plain)[(0, 2, 3)[before] :] for before in range(3)]
    return [plain, *(digits.rstrip(b"=")[:-1] for digits in encoded)]


class Search:
    """A search for secrets. `found` says where which of them is; `marked` are the kinds of output that have
    the marker.
    """

    def __init__(self, hidden: Mapping[str, str], marker: str) -> None:
        self._forms = {name: forms(secret) for name, secret in hidden.items()}
        self._marker = marker.encode()
        self.found: list[str] = []
        self.marked: set[str] = set()

    def look(self, kind: str, where: str, content: bytes) -> None:
        """Search one output."""
        if self._marker in content:
            self.marked.add(kind)
        self.found += [
            f"{name} in {where}"
            for name, some in self._forms.items()
            if any(form in content for form in some)
        ]


@dataclass(frozen=True)
class Planted:
    """A fleet, its secrets by name, and where it is reached."""

    fleet: Fleet
    secrets: Mapping[str, str]
    receiver: Receiver
    broker: MqttBroker
    authority: Authority
    edge: str
    marker: str

    @property
    def readers(self) -> dict[str, str]:
        """The header with a reader's token."""
        return {"authorization": f"Bearer {self.secrets['reader']}"}

    def search(self) -> Search:
        """A new search for its secrets."""
        return Search(self.secrets, self.marker)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planted]:
    directory = tmp_path_factory.mktemp("planted")
    safe = directory / "safe"
    safe.mkdir(0o700)
    names = ("reader", "writer", "sender", "wrong", "query", "mqtt", "wrong-mqtt", "tls-key", "hook-token")
    hidden = {
        name: planted(name) for name in (*names, "hook-url", "hook-secret", "schemas", "kafka-wrong", "spark")
    }
    roles: dict[str, Role] = {"reader": "reader", "writer": "writer", "sender": "writer"}
    entries = [
        token_entry(Token(name, digest(hidden[name]), role, frozenset({"air"}) if name == "sender" else None))
        for name, role in roles.items()
    ]
    (safe / "tokens.yaml").write_text(yaml.safe_dump({"tokens": entries}))
    authority = Authority(safe)
    server, mqtt = (
        issue_server(authority, "edge", password=hidden["tls-key"]),
        issue_server(authority, "mqtt"),
    )
    make = Amqtt if MOSQUITTO is None else Mosquitto
    broker = make(safe, Certificate(mqtt.certificate, mqtt.key), password=hidden["mqtt"])
    receiver = Receiver(failures=1)
    (http,) = free_ports(1)
    marker = f"marker{secrets.token_hex(8)}"
    config = {"http": http, "mqtt": broker.port, "certificate": server.certificate, "key": server.key}
    (directory / "edge.yaml").write_text(
        EDGE.format(**config, tokens=safe / "tokens.yaml", ca=authority.certificate)
    )
    (directory / "alerts.yaml").write_text(ALERTS)
    (safe / "tls-key").write_text(hidden["tls-key"])
    (safe / "spark.conf").write_text(f"spark.hadoop.fs.s3a.secret.key {hidden['spark']}\n")
    environment = {
        "TAMIS_REGISTRY_TOKENS_FILE": str(safe / "tokens.yaml"),
        "TAMIS_LOG_LEVEL": "debug",
        "TAMIS_JOINER_SPARK_CONF": str(safe / "spark.conf"),
        "TAMIS_SCHEMA_REGISTRY_URL": receiver.url,
        "TAMIS_SCHEMA_REGISTRY_USERNAME": "edge",
        "TAMIS_SCHEMA_REGISTRY_PASSWORD": hidden["schemas"],
        "EDGE_KEY_PASSWORD_FILE": str(safe / "tls-key"),
        "MQTT_PASSWORD": hidden["mqtt"],
        "WRONG_MQTT_PASSWORD": hidden["wrong-mqtt"],
        "HOOK_URL": f"{receiver.url}/{hidden['hook-url']}",
        "BROKEN_HOOK_URL": f"http://127.0.0.1:1/{hidden['hook-url']}",
        "HOOK_TOKEN": hidden["hook-token"],
        "HOOK_SECRET": hidden["hook-secret"],
    }
    spec = FleetSpec(
        directory / "fleet",
        [EdgeSpec(f"edge-{marker}", directory / "edge.yaml")],
        partitions=1,
        environment=environment,
        secure=True,
        alerts=directory / "alerts.yaml",
    )
    fleet = Fleet(spec, lambda _: None)
    assert fleet.logins is not None
    hidden |= {f"kafka-{name}": secret for name, secret in fleet.logins.security.users.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TAMIS_TOKEN", hidden["writer"])
        try:
            fleet.start({"streams.sql": STREAMS, "alerts.sql": hot_alert(f"hot_{marker}", 30)})
            yield Planted(fleet, hidden, receiver, broker, authority, f"https://127.0.0.1:{http}", marker)
        finally:
            fleet.stop()
            broker.stop()
            receiver.close()


def reading(second: int) -> dict[str, Any]:
    return {"station": "k1", "ts": second * 1_000_000, "temp": 35.0, "rh": 50.0}


@pytest.mark.timeout(600)  # a minute; several where others want the cores too
def test_no_output_shows_a_secret(running: Planted) -> None:
    """One test, since the fleet takes most of its time to start."""
    search, fleet = running.search(), running.fleet
    feed(running, search)
    read_as_printed(running)
    mistakes(running, search)
    lines = command_lines()
    assert any(b"java" in line for line in lines.values()), "Spark's JVM is one of the processes"
    assert sum(b"pyspark" in line for line in lines.values()) >= 2, "and its Python workers, too"
    for process, content in lines.items():
        search.look("command lines", f"the command line of {process}", content)
    for name, url in fleet.telemetry.items():
        for path, word in (("metrics", b"# HELP tamis_"), ("readyz", b""), ("healthz", b"last turn")):
            answer = httpx.get(f"{url}/{path}", headers=running.readers, timeout=10)
            assert answer.content and word in answer.content, f"/{path} of {name}: {answer.text}"
            search.look(f"{path} of {name}", f"/{path} of {name}", answer.content)
    for path, content in api(running):
        search.look("the registry's API", path, content)
    for topic, content in kafka_records(running):
        search.look(f"topic {topic}", topic, content)
    codes = fleet.stop()
    assert codes == dict.fromkeys(codes, 0)
    search_files(search, fleet.spec.directory)
    assert search.found == []
    assert search.marked >= KINDS
    the_search_finds_what_is_written(running)
    logs = "".join(path.read_text() for path in (fleet.spec.directory / "logs").iterdir())
    for expected in (
        "a request is refused",
        "the MQTT broker refuses",
        "the sink doesn't accept notifications",
    ):
        assert expected in logs


def the_search_finds_what_is_written(running: Planted) -> None:
    """A secret in a log is found, and its Base64 form in a member of an archive."""
    directory, secret = running.fleet.spec.directory, running.secrets["schemas"]
    log, archive = directory / "logs" / "registry.log", directory / "joiner" / "planted.zip"
    with log.open("a") as file:
        file.write(f"login failed: {running.secrets['hook-token']}\n")
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("header", b"Basic " + base64.b64encode(f"edge:{secret}".encode()))
    search = running.search()
    search_files(search, directory)
    assert sorted(search.found) == [f"hook-token in {log}", f"schemas in {archive}"]


def feed(running: Planted, search: Search) -> None:
    """Send readings over HTTP and MQTT until a notification has come; searches the answers."""
    send = {"authorization": f"Bearer {running.secrets['sender']}"}
    trusted = client_context(running.authority.certificate, where="test")
    url, body = f"{running.edge}/v1/streams/air", orjson.dumps(reading(1))
    kind = "answers of the edge"
    with httpx.Client(verify=trusted, timeout=10) as client:
        taken = client.post(url, content=body, headers=send)
        assert taken.status_code == httpx.codes.ACCEPTED
        for headers, status in (({}, 401), ({"authorization": f"Bearer {running.secrets['wrong']}"}, 401)):
            answer = client.post(
                f"{url}?token={running.secrets['query']}", content=body, headers=headers | {"x": "y"}
            )
            assert answer.status_code == status
            search.look(kind, kind, answer.content)
        for stream in ("surface", running.marker):
            answer = client.post(f"{running.edge}/v1/streams/{stream}", content=b"{}", headers=send)
            assert answer.status_code == httpx.codes.FORBIDDEN
            search.look(kind, kind, answer.content)
        client.post(url, content=b"{no JSON}\n{}", headers=send)  # a dead letter
    trusts = Certificate(running.authority.certificate, running.authority.directory / "ca.key")
    mqtt = sender(running.broker, trusts, running.secrets["mqtt"])
    mqtt.publish("plant/air/t", orjson.dumps(reading(2)), qos=1).wait_for_publish(10)
    mqtt.loop_stop()
    mqtt.disconnect()
    until(lambda: any(running.secrets["hook-url"] in path for path, _, _ in running.receiver.posted), 90)
    headers = running.receiver.posted[0][1]
    assert headers["authorization"] == f"Bearer {running.secrets['hook-token']}"


def read_as_printed(running: Planted) -> None:
    """Read an alarm by the line that `tamis up --secure` prints. Its files are for their owner alone."""
    directory = running.fleet.spec.directory / "logins"
    printed = _addresses(running.fleet)
    assert f"{directory}/passwords/PRINCIPAL" in printed
    line = printed.splitlines()[-1].strip()
    assert line == f"(set -a; . {directory}/reader.env; tamis watch)"
    # Without the parentheses it is one process, which can be killed.
    arguments = f"watch hot_{running.marker} --json --from-beginning"
    shell = line[1:-1].replace("tamis watch", f"exec {shlex.join(TAMIS)} {arguments}")
    watch = subprocess.Popen(["bash", "-c", shell], stdout=subprocess.PIPE, text=True)
    try:
        assert orjson.loads(read_until(watch, '"event_time"', 60))["key"] == ["k1"]
    finally:
        watch.kill()
        watch.communicate()
    for path in directory.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


def mistakes(running: Planted, search: Search) -> None:
    """Search the output of commands with wrong secrets, and of services whose secrets can't be used."""
    fleet, hidden = running.fleet, running.secrets
    assert fleet.logins is not None
    url = fleet.registry_url
    registry = {"TAMIS_REGISTRY": url, "TAMIS_TOKEN": hidden["wrong"]}
    kafka = fleet.logins.environment("reader") | {"TAMIS_KAFKA_SASL_PASSWORD_FILE": ""}
    wrong = kafka | {"TAMIS_KAFKA_SASL_PASSWORD": hidden["kafka-wrong"]}
    commands = [
        (["get"], registry),
        (["drop", "alert", f"hot_{running.marker}"], registry | {"TAMIS_TOKEN": hidden["reader"]}),
        (["get", "alerts", f"no_{running.marker}"], registry | {"TAMIS_TOKEN": hidden["reader"]}),
        (["watch", "nobody"], wrong),
        (["watch"], wrong | {"TAMIS_KAFKA_SASL_PASSWORD_FILE": str(Path(__file__))}),  # both are set
        (["watch"], wrong | {"TAMIS_KAFKA_SASL_MECHANISM": "NONE"}),
        (
            ["edge", "--config", str(fleet.spec.directory.parent / "edge.yaml")],
            {"MQTT_PASSWORD": hidden["mqtt"]},
        ),
    ]
    for arguments, environment in commands:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "tamis.cli", *arguments],
            env=os.environ | environment,
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 2, (arguments, done.stderr)
        assert done.stderr, arguments
        search.look("outputs of commands", f"the output of tamis {arguments[0]}", done.stdout + done.stderr)
    kind = "answers of the registry"
    for headers in ({}, {"authorization": f"Basic {hidden['wrong']}"}, {"authorization": "Bearer x"}):
        answer = httpx.post(
            f"{url}/v1/statements?access_token={hidden['query']}", headers=headers, content=b""
        )
        assert answer.status_code == httpx.codes.UNAUTHORIZED
        search.look(kind, kind, answer.content)
    answer = httpx.get(f"{url}/v1/alerts/no_{running.marker}", headers=running.readers)
    assert answer.status_code == httpx.codes.NOT_FOUND
    search.look(kind, kind, answer.content)


def command_lines() -> dict[str, bytes]:
    """The command lines of all processes that descend from this one."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    family = {os.getpid()}
    while new := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= new
    lines = {}
    for pid in family - {os.getpid()}:
        with suppress(OSError):
            lines[str(pid)] = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
    return lines


def api(running: Planted) -> Iterator[tuple[str, bytes]]:
    """The answers of every path of the registry's API that can be read."""
    with httpx.Client(base_url=running.fleet.registry_url, headers=running.readers, timeout=20) as client:
        described = client.get("/openapi.json").json()["paths"]
        paths = [path for path in described if "{" not in path and path != "/v1/events"]
        # Lists whose members have an address of their own.
        whole = {
            path[: path.index("/{")]
            for path, methods in described.items()
            if "get" in methods and path.endswith("}")
        }
        for path in (*paths, "/docs", "/openapi.json"):
            answer = client.get(path)
            yield path, answer.content
            if path in whole:
                for row in answer.json():
                    name = row.get("name", row.get("version"))
                    yield f"{path}/{name}", client.get(f"{path}/{name}").raise_for_status().content
        explained = client.post("/v1/explain", content=hot_alert("other", 31))
        yield "/v1/explain", explained.raise_for_status().content


def kafka_records(running: Planted) -> Iterator[tuple[str, bytes]]:
    """Topic, and key, value and headers, of every record in Kafka."""
    consumer = Consumer(running.fleet.broker.admin_config() | {"group.id": "planted"})
    try:
        for name, topic in consumer.list_topics(timeout=20).topics.items():
            for partition in topic.partitions:
                low, high = consumer.get_watermark_offsets(TopicPartition(name, partition), timeout=20)
                if low == high:
                    continue
                consumer.assign([TopicPartition(name, partition, low)])
                # The last record may be a marker of a transaction, which is not delivered.
                while (message := consumer.poll(2.0)) is not None and message.error() is None:
                    yield name, repr((message.key(), message.value(), message.headers())).encode()
                    if (message.offset() or 0) + 1 >= high:
                        break
    finally:
        consumer.close()


def search_files(search: Search, directory: Path) -> None:
    """Search the files that a fleet has written, and the members of archives, without the passwords that it
    was given.
    """
    for path in directory.rglob("*"):
        if not path.is_file() or directory / "logins" in path.parents:
            continue
        part = path.relative_to(directory).parts[0]
        kind = "files of edge" if part.startswith("edge-") else f"files of {part}"
        search.look(kind, str(path), path.read_bytes())
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                for name in archive.namelist():
                    search.look(kind, str(path), archive.read(name))
