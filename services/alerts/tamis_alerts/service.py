"""Wiring of the alerts service: waits for the topics, runs the Faust application, stops on SIGTERM."""

from __future__ import annotations

import asyncio
import signal
import ssl
import threading
from dataclasses import dataclass
from typing import Any, cast

import faust
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from faust.auth import SASLCredentials, SSLCredentials
from faust.types.auth import AuthProtocol

from tamis.messaging.topics import ALARMS, EPISODES, FRONTIERS, MAX_RECORD_BYTES, PLANS
from tamis.settings import KafkaSettings, ServiceSettings
from tamis.telemetry import Health, Metrics, TelemetryServer, get_logger
from tamis_alerts.app import Parts, build
from tamis_alerts.config import AlertsConfig
from tamis_alerts.faust_consumer import begin_where_committed
from tamis_alerts.sinks import Sinks
from tamis_alerts.view import FleetView

GROUP = "tamis-alerts"

log = get_logger("alerts.service")


@dataclass(frozen=True)
class Setup:
    """What a run of the application is made of."""

    config: AlertsConfig
    kafka: KafkaSettings
    settings: ServiceSettings
    metrics: Metrics


def serve(config: AlertsConfig, kafka: KafkaSettings, settings: ServiceSettings) -> None:
    """Run until SIGTERM or SIGINT."""
    metrics, health = Metrics("alerts"), Health()
    telemetry = TelemetryServer(metrics, health, settings.telemetry_host, settings.telemetry_port)
    telemetry.start()
    log.info("telemetry", url=telemetry.url)
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    try:
        partitions = _wait_for_topics(kafka, health, stopping)
        if partitions:
            setup = Setup(config, kafka, settings, metrics)
            asyncio.run(run(setup, health, partitions, stopping))
    finally:
        telemetry.stop()


def _wait_for_topics(kafka: KafkaSettings, health: Health, stopping: threading.Event) -> int:
    """The partition count of the alarms topic, once the registry has made all topics; 0 when stopped
    before.
    """
    admin = AdminClient(kafka.client_config())
    told = ""
    while not stopping.wait(0.5):
        health.beat()
        try:
            topics = admin.list_topics(timeout=2).topics
            if all(name in topics for name in (ALARMS, EPISODES, FRONTIERS, PLANS)):
                return len(topics[ALARMS].partitions)
            why = "waits for the registry to create the topics"
        except KafkaException as error:
            why = f"Kafka at {kafka.bootstrap} is away: {error.args[0].str()}"
        if why != told:
            log.warning("waiting", reason=why)
            told = why
        health.not_ready(why)
    return 0


async def run(setup: Setup, health: Health, partitions: int, stopping: threading.Event) -> None:
    """Run the Faust application until `stopping` is set. `partitions`: of the topic of alarms.

    Raises RuntimeError when the application ends by itself.
    """
    kafka = setup.kafka
    app = faust.App(
        GROUP,
        broker=[f"kafka://{server.strip()}" for server in kafka.bootstrap.split(",")],
        broker_credentials=_credentials(kafka),
        datadir=str(setup.settings.data / "faust"),
        store="memory://",
        key_serializer="raw",
        value_serializer="raw",
        web_enabled=False,
        topic_partitions=partitions,
        # Workers share partitions as they are: no topic for electing a leader is needed.
        topic_disable_leader=True,
        broker_commit_interval=0.2,
        producer_max_request_size=MAX_RECORD_BYTES,
        stream_wait_empty=False,
        table_standby_replicas=0,  # `begin_where_committed` asks for it, and the tables are small
        broker_max_poll_interval=300.0,
        # A worker that was killed holds its partitions until its session ends: Faust's default is a minute.
        broker_session_timeout=10.0,
        broker_heartbeat_interval=2.0,
    )
    view = FleetView(kafka.client_config(), GROUP)
    await asyncio.to_thread(view.start)
    sinks = Sinks(setup.config.sinks, setup.metrics)
    build(app, Parts(view, sinks, setup.metrics))
    app.finalize()
    begin_where_committed(app)
    await app.start()
    try:
        while not stopping.is_set():
            await asyncio.sleep(0.1)
            if app.crashed:
                raise RuntimeError("the Faust application ended by itself") from app.crash_reason
            view.check()
            _report(app, health)
    finally:
        health.not_ready("stopping")
        await app.stop()
        await sinks.close()
        await asyncio.to_thread(view.stop)


def _report(app: faust.App, health: Health) -> None:
    health.beat()
    if app.rebalancing or app.in_recovery or not cast(Any, app.tables).recovery.completed.is_set():
        health.not_ready("recovering its tables")
    else:
        health.ready()


def _credentials(kafka: KafkaSettings) -> Any:
    if kafka.security_protocol == "PLAINTEXT":
        return None
    context = None
    if kafka.security_protocol.endswith("SSL"):
        context = ssl.create_default_context(cafile=str(kafka.ssl_ca) if kafka.ssl_ca else None)
        if kafka.ssl_certificate:
            secret = kafka.ssl_key_password.get_secret_value() if kafka.ssl_key_password else None
            context.load_cert_chain(
                str(kafka.ssl_certificate), str(kafka.ssl_key) if kafka.ssl_key else None, secret
            )
    if not kafka.security_protocol.startswith("SASL"):
        return SSLCredentials(context)
    credentials = SASLCredentials(
        mechanism=kafka.sasl_mechanism,
        username=kafka.sasl_username,
        password=kafka.sasl_password.get_secret_value() if kafka.sasl_password else None,
        ssl_context=context,
    )
    credentials.protocol = AuthProtocol[kafka.security_protocol]
    return credentials
