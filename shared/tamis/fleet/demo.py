"""The demo: the whole fleet on real readings, watched while it works, and its alarms held against the plain
join.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import orjson

from tamis.errors import UnavailableError
from tamis.fleet.demo_data import ALERTS, PLACES, RECORDING, STREAM, Place, prepare
from tamis.fleet.fleet import EdgeSpec, Fleet, FleetSpec
from tamis.fleet.scrape import Scrape
from tamis.messaging.compacted import CompactedReader
from tamis.messaging.records import END_OF_TIME, Frontier
from tamis.messaging.topics import ALARMS, EPISODES, FRONTIERS
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of
from tamis.recordings import read_recording
from tamis.settings import KafkaSettings
from tamis.verification import Verdict, compare, plain_join
from tamis.verification.compare import alarms_of

# The recordings hold seven hours: 600 times as fast they take 42 seconds.
SPEED = 600.0
FINISH_SECONDS = 300.0
# Fewer partitions mean less work a batch; the demo's two keys need no more.
PARTITIONS = 2


@dataclass
class Progress:
    """What the demo has seen so far."""

    tuples: int = 0
    published: int = 0
    alarms: int = 0
    live: int = 0


@dataclass(frozen=True)
class Outcome:
    """All that the report shows. Bytes are of records with their keys, latencies in seconds."""

    places: list[Place]
    decisions: dict[tuple[str, str], dict[str, int]]  # stream and edge -> decision -> tuples
    published_bytes: int
    alarms: dict[str, list[dict[str, Any]]]  # alert -> distinct alarms
    episodes: dict[str, int]
    live_peak: dict[str, int]  # alert -> most live tuples that were seen
    bounds: dict[str, int]
    latency: dict[str, list[float]]  # alert -> arrival of its last tuple at the edge to the alarm in Kafka

    @property
    def tuples(self) -> int:
        """All that the edges read."""
        return sum(sum(counts.values()) for counts in self.decisions.values())

    @property
    def published(self) -> int:
        """All that they sent to Kafka."""
        return sum(counts.get("published", 0) + counts.get("late", 0) for counts in self.decisions.values())


Watch = Callable[[Fleet, Progress], None]


def run(
    directory: Path, say: Callable[[str], None], watch: Watch, stopping: threading.Event, speed: float = SPEED
) -> Outcome:
    """Start the fleet, replay the recordings, wait until the last alarm is out, collect, stop the fleet.

    `watch` is called about twice a second.
    """
    places = prepare(directory, speed)
    spec = FleetSpec(
        directory, [EdgeSpec(place.name, place.config) for place in places], partitions=PARTITIONS
    )
    fleet = Fleet(spec, say)
    try:
        fleet.start({str(ALERTS): ALERTS.read_text()}, stopping)
        if stopping.is_set():
            raise KeyboardInterrupt
        peak = _follow(fleet, watch, stopping)
        return _collect(fleet, places, peak)
    finally:
        with suppress(OSError):  # whoever read it may be gone
            say("stopping")
        fleet.stop()


def total() -> int:
    """How many readings the demo replays."""
    with RECORDING.open() as file:
        return sum(1 for _ in file) - 1


def check(outcome: Outcome) -> list[Verdict]:
    """Hold the alarms that came out of Kafka against the plain join of all readings."""
    catalog = catalog_of(ALERTS.read_text())
    definitions = {d.alert: d for d in first_plan(catalog, partitions=PARTITIONS).definitions}
    recordings = {
        STREAM: read_recording(catalog.streams[STREAM], [str(place.recording) for place in outcome.places])
    }
    verdicts = []
    for name, alert in catalog.alerts.items():
        raised = [a["tuples"] for a in outcome.alarms.get(name, [])]
        verdicts.append(
            compare(
                name,
                alert.query,
                definition=definitions[name],
                recordings=recordings,
                reference=plain_join(alert.query, recordings),
                alarms=alarms_of(alert.query, recordings, raised),
                retained=outcome.published,
            )
        )
    return verdicts


def _follow(fleet: Fleet, watch: Watch, stopping: threading.Event) -> dict[str, int]:
    """Watch until every frontier has passed the recordings' end; returns the greatest live state of each
    query.
    """
    peak: dict[str, int] = {}
    deadline = time.monotonic() + FINISH_SECONDS
    with CompactedReader(_client(fleet), [FRONTIERS]) as reader:
        latest = {r.key: r for r in reader.snapshot()}
        while not _done([Frontier.from_bytes(r.value) for r in latest.values() if r.value is not None]):
            if stopping.is_set():
                raise KeyboardInterrupt
            if time.monotonic() > deadline:
                raise UnavailableError("the joiner did not reach the end of the recordings")
            watch(fleet, _progress(fleet, peak))
            gone = fleet.ended()
            if gone:
                raise UnavailableError(
                    f"{gone} ended", hint=f"see {fleet.spec.directory / 'logs' / gone}.log"
                )
            latest.update((r.key, r) for r in reader.poll(0.5))
    return peak


def _progress(fleet: Fleet, peak: dict[str, int]) -> Progress:
    progress = Progress()
    for place in PLACES:
        edge = _scrape(fleet, place)
        progress.tuples += int(edge.total("tamis_edge_tuples_total"))
        progress.published += int(edge.total("tamis_edge_tuples_total", decision="published"))
    joiner = _scrape(fleet, "joiner")
    progress.alarms = int(joiner.total("tamis_alarms_total"))
    for query, live in joiner.by("tamis_query_state_tuples", "query").items():
        peak[query] = max(peak.get(query, 0), int(live))
        progress.live += int(live)
    return progress


def _scrape(fleet: Fleet, name: str) -> Scrape:
    """What a service shows; nothing while it starts again."""
    try:
        return Scrape.of(fleet.telemetry[name])
    except httpx.TransportError:
        return Scrape("")


def _done(frontiers: list[Frontier]) -> bool:
    return len(frontiers) == PARTITIONS and all(
        state.frontier is not None and state.frontier >= END_OF_TIME
        for record in frontiers
        for state in record.topics.values()
    )


def _collect(fleet: Fleet, places: list[Place], peak: dict[str, int]) -> Outcome:
    alarms: dict[str, dict[str, dict[str, Any]]] = {}
    latency: dict[str, list[float]] = {}
    with CompactedReader(_client(fleet), [ALARMS]) as reader:
        for record in reader.snapshot():
            if record.value is not None:
                alarm = orjson.loads(record.value)
                if alarm["id"] not in alarms.setdefault(alarm["alert"], {}):
                    alarms[alarm["alert"]][alarm["id"]] = alarm
                    waited = record.timestamp / 1e3 - alarm["arrived"] / 1e6
                    latency.setdefault(alarm["alert"], []).append(waited)
    episodes: dict[str, int] = {}
    with CompactedReader(_client(fleet), [EPISODES]) as reader:
        for record in reader.snapshot():
            episode = orjson.loads(record.value or b"{}")
            if episode.get("event") == "opened":
                episodes[episode["alert"]] = episodes.get(episode["alert"], 0) + 1
    scrapes = {place.name: _scrape(fleet, place.name) for place in places}
    joiner = _scrape(fleet, "joiner")
    bounds = joiner.by("tamis_query_bound_tuples", "query")
    return Outcome(
        places=places,
        decisions={
            (stream, name): {
                decision: int(scrape.total("tamis_edge_tuples_total", stream=stream, decision=decision))
                for decision in scrape.by("tamis_edge_tuples_total", "decision")
            }
            for name, scrape in scrapes.items()
            for stream in scrape.by("tamis_edge_tuples_total", "stream")
        },
        published_bytes=int(
            sum(s.total("tamis_edge_published_bytes_total", stream=STREAM) for s in scrapes.values())
        ),
        alarms={alert: list(found.values()) for alert, found in alarms.items()},
        episodes=episodes,
        live_peak=peak,
        bounds={query: int(bound) for query, bound in bounds.items()},
        latency=latency,
    )


def _client(fleet: Fleet) -> dict[str, object]:
    return KafkaSettings(bootstrap=fleet.bootstrap).client_config()
