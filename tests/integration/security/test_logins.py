"""Every client logs in with a certificate, with PLAIN, SCRAM and OAUTHBEARER; its secrets stay hidden."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)
from faust.transport.drivers.aiokafka import credentials_to_aiokafka_auth
from pydantic import SecretStr
from pyspark.sql import SparkSession
from tests.integration.security.conftest import LOGINS, PASSWORD, SECRET, SecureKafka

from tamis.errors import UnavailableError
from tamis.messaging import topic_reader
from tamis.messaging.connection import Cluster, from_java
from tamis.messaging.topic_reader import TopicReader
from tamis.settings import KafkaSettings
from tamis_alerts.faust_credentials import credentials
from tamis_joiner.reading.offsets import decode
from tamis_joiner.reading.range_reader import RangeReader
from tamis_joiner.settings import JoinerSettings
from tamis_joiner.spark import jvm_messages
from tamis_joiner.spark.session import running_spark
from tamis_joiner.spark.source import FORMAT, OffsetsSource, options

TOPIC = "logins"
USER = "all"


@pytest.fixture(scope="module", autouse=True)
def _rights(secure: SecureKafka) -> None:
    secure.create_topic(TOPIC)
    for kind, name in ((ResourceType.TOPIC, TOPIC), (ResourceType.GROUP, "tamis-reader")):
        allowed = AclBinding(
            kind,
            name,
            ResourcePatternType.LITERAL,
            f"User:{USER}",
            "*",
            AclOperation.ALL,
            AclPermissionType.ALLOW,
        )
        secure.admin.create_acls([allowed])[allowed].result(10)


@pytest.mark.parametrize("login", LOGINS)
def test_confluent_kafka(secure: SecureKafka, login: str) -> None:
    settings = secure.settings(login, USER)
    text = f"by confluent-kafka, {login}".encode()
    _send(settings, text)
    assert text in _read(settings)


@pytest.mark.parametrize("login", LOGINS)
def test_faust(secure: SecureKafka, login: str) -> None:
    settings = secure.settings(login, USER)
    text = f"by aiokafka, {login}".encode()

    async def there_and_back() -> set[bytes]:
        client: dict[str, Any] = {
            "bootstrap_servers": settings.bootstrap,
            **credentials_to_aiokafka_auth(credentials(settings)),
        }
        async with AIOKafkaProducer(**client) as producer:
            await producer.send_and_wait(TOPIC, text)
        found: set[bytes] = set()
        async with AIOKafkaConsumer(TOPIC, auto_offset_reset="earliest", **client) as consumer:
            while text not in found:
                found |= {m.value for ms in (await consumer.getmany(timeout_ms=500)).values() for m in ms}
        return found

    assert text in asyncio.run(asyncio.wait_for(there_and_back(), 30))


@pytest.fixture(scope="module")
def spark(secure: SecureKafka) -> Iterator[SparkSession]:
    properties = secure.settings("OAUTHBEARER", USER).java_properties()
    settings = JoinerSettings(master="local[1]", memory="512m")
    with running_spark(settings, local_files=True, java_properties=properties) as session:
        yield session


@pytest.mark.parametrize("login", LOGINS)
def test_spark(
    secure: SecureKafka,
    spark: SparkSession,
    login: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Source, sink and offsets of a streaming query; nothing that it writes or shows has a secret."""
    settings = secure.settings(login, USER)
    text = f"for Spark, {login}".encode()
    _send(settings, text)
    reader, kafka = spark.readStream.format("kafka").option("subscribe", TOPIC), settings.java_config()
    for name, value in kafka.items():
        reader = reader.option(f"kafka.{name}", value)
    rows = reader.option("startingOffsets", "earliest").load()
    writer = rows.selectExpr("concat('copy of ', value) as value").writeStream.format("kafka")
    for name, value in kafka.items():
        writer = writer.option(f"kafka.{name}", value)
    query = (
        writer.option("topic", TOPIC)
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(60)
    assert b"copy of " + text in _read(settings)
    query.explain(True)
    shown = [str(query.lastProgress), *query._jsq.toString().splitlines(), *capfd.readouterr()]
    shown += [path.read_bytes().decode(errors="replace") for path in tmp_path.rglob("*") if path.is_file()]
    shown.append(
        subprocess.run(["ps", "axww", "-o", "args"], capture_output=True, text=True, check=True).stdout
    )
    shown.append(str(spark.sparkContext.getConf().getAll()))
    key = secure.security.authority.issue(USER).key.read_text().splitlines()[1]
    for secret in (PASSWORD, SECRET, "planted-", key):
        assert not any(secret in one for one in shown)


@pytest.mark.parametrize("login", LOGINS)
def test_joiners_source(
    secure: SecureKafka,
    spark: SparkSession,
    login: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Offsets by the process beside Spark's driver, records by the client of a worker; no secret is shown."""
    settings = secure.settings(login, USER)
    text = f"for the joiner, {login}".encode()
    _send(settings, text)
    spark.dataSource.register(OffsetsSource)
    given = options(settings.portable_config(), TOPIC, 1000, range(8))
    rows = spark.readStream.format(FORMAT).options(**given).load()
    query = (
        rows.writeStream.format("memory")
        .queryName(f"by_{login.replace('-', '_')}")
        .option("checkpointLocation", str(tmp_path))
        .start()
    )
    try:
        query.processAllAvailable()
        found = [one for row in spark.table(str(query.name)).collect() for one in decode(row.ranges)]
        query.explain(True)
        shown = [str(query.lastProgress), *query._jsq.toString().splitlines()]
    finally:
        query.stop()
    reader = RangeReader(settings.portable_config())
    assert text in [value for part in reader.read(found) for value in part.values]
    reader.close()
    shown += [*capfd.readouterr(), str(spark.sparkContext.getConf().getAll())]
    shown += [path.read_bytes().decode(errors="replace") for path in tmp_path.rglob("*") if path.is_file()]
    key = secure.security.authority.issue(USER).key.read_text().splitlines()[1]
    for secret in (PASSWORD, SECRET, "planted-", key):
        assert not any(secret in one for one in shown)


def test_spark_says_what_is_wrong(secure: SecureKafka, spark: SparkSession) -> None:
    wrong = {
        "SCRAM-SHA-512": {"sasl_password": SecretStr("planted-wrong")},
        "OAUTHBEARER": {"oauth_client_secret": SecretStr("planted-wrong")},
    }
    said = {}
    for login, change in wrong.items():
        settings = secure.settings(login, USER).model_copy(update=change)
        reader = spark.read.format("kafka").option("subscribe", TOPIC)
        for name, value in settings.java_config().items():
            reader = reader.option(f"kafka.{name}", value)
        with pytest.raises(Exception) as caught:  # noqa: PT011  the errors of PySpark and Py4J have no common class
            reader.load().collect()
        causes = "\n".join(jvm_messages.causes(caught.value))
        assert "planted-" not in causes
        said[login] = str(from_java(causes, Cluster.of(settings.client_config())) or causes)
    assert "check TAMIS_KAFKA_SASL_USERNAME and TAMIS_KAFKA_SASL_PASSWORD" in said["SCRAM-SHA-512"]
    assert "TAMIS_KAFKA_OAUTH_CLIENT_SECRET" in said["OAUTHBEARER"]


@pytest.mark.parametrize(
    ("login", "change", "said"),
    [
        ("PLAIN", {"sasl_password": SecretStr("planted-wrong")}, "check TAMIS_KAFKA_SASL_USERNAME and"),
        ("SCRAM-SHA-512", {"sasl_password": SecretStr("planted-wrong")}, "check TAMIS_KAFKA_SASL_USERNAME"),
        ("SCRAM-SHA-256", {"sasl_mechanism": "PLAIN"}, "check TAMIS_KAFKA_SASL_MECHANISM"),
        (
            "OAUTHBEARER",
            {"oauth_client_secret": SecretStr("planted-wrong")},
            "invalid_client.*OAUTH_CLIENT_SECRET",
        ),
        ("OAUTHBEARER", {"oauth_token_url": "http://127.0.0.1:1/token"}, "check TAMIS_KAFKA_OAUTH_TOKEN_URL"),
        ("certificate", {"ssl_ca": None}, "TLS handshake failed.*check .*TAMIS_KAFKA_SSL_CA"),
        ("certificate", {"ssl_certificate": None, "ssl_key": None}, "TAMIS_KAFKA_SSL_CERTIFICATE"),
        ("SCRAM-SHA-512", {"security_protocol": "SASL_PLAINTEXT"}, "TAMIS_KAFKA_SECURITY_PROTOCOL"),
    ],
)
def test_wrong_settings_are_named(
    secure: SecureKafka, login: str, change: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_reader, "METADATA_SECONDS", 1.5)
    settings = secure.settings(login, USER).model_copy(update=change)
    with pytest.raises(UnavailableError, match=said) as caught:
        _read(settings)
    assert "planted-" not in str(caught.value)


def _send(settings: KafkaSettings, text: bytes) -> None:
    faults: list[Any] = []
    producer = Producer(settings.client_config(enable_idempotence=True))
    producer.produce(TOPIC, text, on_delivery=lambda error, _: faults.append(error))
    assert producer.flush(20) == 0
    assert faults == [None]


def _read(settings: KafkaSettings) -> set[bytes]:
    with TopicReader(settings.client_config(), [TOPIC]) as reader:
        return {record.value for record in reader.snapshot() if record.value is not None}
