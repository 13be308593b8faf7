"""The alerts service as a process: waits for the topics, runs the Faust application, stops on SIGTERM."""

from __future__ import annotations

import asyncio
import signal
import threading
from dataclasses import dataclass
from socket import gethostname
from types import FrameType

import faust

from tamis.heap import collect_seldom, return_freed_memory
from tamis.messaging.authorization import missing_rights
from tamis.messaging.heartbeat_sender import LOOP_SECONDS, HeartbeatSender
from tamis.messaging.heartbeats import ALERTS, Heartbeat
from tamis.messaging.probe import KafkaProbe, wait_for_topics
from tamis.messaging.rights import ALERTS_GROUP
from tamis.messaging.topics import (
    ALARMS,
    DEAD_LETTERS,
    EPISODES,
    FRONTIERS,
    MAX_RECORD_BYTES,
    PLANS,
)
from tamis.settings import KafkaSettings, ServiceSettings
from tamis.telemetry import Health, Metrics, TelemetryServer, get_logger
from tamis.telemetry.health import end_after
from tamis_alerts.episodes_app import NO_PARTITIONS, EpisodesApp, has_states
from tamis_alerts.faust_credentials import credentials
from tamis_alerts.fleet_view import FleetView
from tamis_alerts.settings import AlertsConfig
from tamis_alerts.silence_view import SilenceView
from tamis_alerts.sinks.all_sinks import Sinks
from tamis_alerts.sinks.delivery import SharedSettings
from tamis_alerts.state_store import StateStore

GROUP = ALERTS_GROUP
# The service reads and writes all of them; the count of the first is that of its changelog.
TOPICS = (ALARMS, DEAD_LETTERS, EPISODES, FRONTIERS, PLANS)
LOOK_SECONDS = 0.1

log = get_logger("alerts.service")


@dataclass(frozen=True)
class Setup:
    """Configuration and metrics of a run of the application."""

    config: AlertsConfig
    kafka: KafkaSettings
    settings: ServiceSettings
    metrics: Metrics


def serve(config: AlertsConfig, kafka: KafkaSettings, settings: ServiceSettings) -> None:
    """Run until SIGTERM or SIGINT. Raises InputError if TAMIS_DATA can't be used."""
    settings.data_directory()
    return_freed_memory()
    collect_seldom()
    metrics, health = Metrics("alerts"), Health()
    telemetry = TelemetryServer(
        metrics, health, settings.telemetry_host, settings.telemetry_port, settings.telemetry_names
    )
    telemetry.start()
    log.info("telemetry", url=telemetry.url)
    stopping = threading.Event()

    def stop(signum: int, frame: FrameType | None) -> None:
        if not stopping.is_set():
            stopping.set()
            end_after()  # Faust leaves its group and flushes its producer without a limit of time

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    try:
        partitions = wait_for_topics(kafka, TOPICS, health, stopping, "alerts")
        if partitions is not None:
            setup = Setup(config, kafka, settings, metrics)
            with KafkaProbe(kafka, health, service="alerts", optional=True):
                asyncio.run(run(setup, health, partitions, stopping))
    except Exception as error:
        # Faust's errors name neither the right nor the principal.
        if (denied := missing_rights(kafka, "alerts")) is not None:
            raise denied from error
        raise
    finally:
        telemetry.stop()


async def run(setup: Setup, health: Health, partitions: int, stopping: threading.Event) -> None:
    """Run the Faust application until `stopping` is set. `partitions` is the count of the alarms topic.

    Raises RuntimeError if the application ends before `stopping` is set.
    """
    kafka = setup.kafka
    app = _application(setup)
    view = FleetView(kafka.client_config(), GROUP, setup.metrics)
    await asyncio.to_thread(view.start)
    config = setup.config
    shared = SharedSettings(config.core_routes, config.console_address)
    silences = SilenceView(kafka.client_config(), setup.metrics)
    await asyncio.to_thread(silences.start)
    sinks = Sinks(config.sinks, kafka, setup.metrics, shared, silences)
    await asyncio.to_thread(sinks.register)
    store = StateStore(kafka.client_config())
    await asyncio.to_thread(store.create, partitions)
    EpisodesApp(app, view, store, setup.metrics)
    app.finalize()
    sinks.start()
    await app.start()
    heartbeats = HeartbeatSender(kafka, _heartbeat_key(setup.settings), lambda: _heartbeat(sinks, health))
    try:
        with heartbeats:
            while not stopping.is_set():
                await asyncio.sleep(LOOK_SECONDS)
                if app.crashed:
                    raise RuntimeError("the Faust application ended by itself") from app.crash_reason
                view.check()
                silences.check()
                sinks.check()
                _report(app, store, sinks, health)
    finally:
        health.not_ready("stopping")
        await app.stop()
        await asyncio.to_thread(sinks.stop)
        await asyncio.to_thread(silences.stop)
        await asyncio.to_thread(view.stop)


def _heartbeat_key(settings: ServiceSettings) -> str:
    """The key of a worker's heartbeats: two workers on one host have different directories. It is the same
    after a restart, so that the topic doesn't grow.
    """
    return f"{ALERTS}{gethostname()}{settings.data.resolve()}"


def _heartbeat(sinks: Sinks, health: Health) -> Heartbeat | None:
    """A sign of life with the states of the sinks, unless the service's loop hangs."""
    if not health.loop_runs(LOOP_SECONDS):
        return None
    return Heartbeat.of_this_process(sinks.states)


def _application(setup: Setup) -> faust.App:
    kafka = setup.kafka
    return faust.App(
        GROUP,
        broker=[f"kafka://{server.strip()}" for server in kafka.bootstrap.split(",")],
        broker_credentials=credentials(kafka),
        datadir=str(setup.settings.data / "faust"),
        store="memory://",
        key_serializer="raw",
        value_serializer="raw",
        web_enabled=False,
        # A leader is only needed for tasks that run in one worker; its election would need a topic more.
        topic_disable_leader=True,
        # After a crash, at most the alarms of this time are read again.
        broker_commit_interval=0.2,
        producer_max_request_size=MAX_RECORD_BYTES,
        # A revoked partition's batch is read again by its next worker: nobody has to wait for its end.
        stream_wait_empty=False,
        broker_max_poll_interval=300.0,
        # A worker that was killed keeps its partitions until its session ends: Faust's default is a minute.
        broker_session_timeout=10.0,
        broker_heartbeat_interval=2.0,
    )


def _report(app: faust.App, store: StateStore, sinks: Sinks, health: Health) -> None:
    health.beat()
    if has_states(app):
        idle = "" if store.partitions else NO_PARTITIONS
        health.ready("; ".join(detail for detail in (idle, sinks.trouble) if detail))
    else:
        health.not_ready("waits for its partitions of the alarms, or reads their states")
