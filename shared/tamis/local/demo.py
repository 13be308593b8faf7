"""The demo: the whole fleet on real readings, and its alarms compared with those of the plain join."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import numpy as np
import orjson
from rich import box
from rich.console import Console
from rich.table import Table

from tamis.errors import UnavailableError
from tamis.local.demo_check import ALERTS, PARTITIONS, PLACES, RECORDING, STREAM, PlainJoins, prepare
from tamis.local.fleet import EdgeSpec, Fleet, FleetSpec
from tamis.local.scrape import Scrape
from tamis.messaging.records import END_OF_TIME, Frontier
from tamis.messaging.topic_reader import TopicReader
from tamis.messaging.topics import ALARMS, EPISODES, FRONTIERS

if TYPE_CHECKING:
    from tamis.verification.compare import Verdict

# The recordings last seven hours; at 1,200 times their speed the replay takes 21 seconds.
SPEED = 1200.0
# The joiner is slow on a busy machine. Without any progress for this long it counts as stuck.
STANDSTILL_SECONDS = 300.0

_DECISIONS = ("published", "omitted", "filtered", "late", "dead", "aggregated")


@dataclass
class Progress:
    """Counts of the demo so far."""

    tuples: int = 0
    published: int = 0
    alarms: int = 0
    live: int = 0


@dataclass(frozen=True)
class Outcome:
    """The figures of the report. Bytes count records with their keys; latencies are in seconds."""

    decisions: dict[tuple[str, str], dict[str, int]]  # stream and edge -> decision -> tuples
    published_bytes: int
    alarms: dict[str, list[dict[str, Any]]]  # alert -> distinct alarms
    episodes: dict[str, int]
    live_peak: dict[str, int]  # alert -> most live tuples that were seen
    bounds: dict[str, int]
    latency: dict[str, list[float]]  # alert -> arrival of its last tuple at the edge to the alarm in Kafka
    plain_joins: PlainJoins

    @property
    def tuples(self) -> int:
        """Tuples that the edges read."""
        return sum(sum(counts.values()) for counts in self.decisions.values())

    @property
    def published(self) -> int:
        """Tuples that the edges sent to Kafka."""
        return sum(counts.get("published", 0) + counts.get("late", 0) for counts in self.decisions.values())


Watch = Callable[[Fleet, Progress], None]


def run(
    directory: Path,
    say: Callable[[str], None],
    watch: Watch,
    stopping: threading.Event,
    speed: float = SPEED,
    *,
    secure: bool = False,
) -> Outcome:
    """Start the fleet, replay the recordings, wait for the last alarm, collect the figures, stop the fleet.

    `watch` is called about twice a second. `secure`: Kafka has TLS, passwords and ACLs.
    """
    places = prepare(directory, speed)
    spec = FleetSpec(
        directory,
        [EdgeSpec(place.name, place.config) for place in places],
        partitions=PARTITIONS,
        secure=secure,
    )
    fleet = Fleet(spec, say)
    try:
        # The report has the latency of alarms, so no reading may wait for the start of Spark.
        fleet.start({str(ALERTS): ALERTS.read_text()}, stopping, edges_last=True)
        if stopping.is_set():
            raise KeyboardInterrupt
        joins = PlainJoins(places)
        joins.start()
        peak = _follow(fleet, watch, stopping)
        return _collect(fleet, joins, peak)
    finally:
        with suppress(OSError):  # the reader of standard error may be gone
            say("stopping")
        fleet.stop()


def total() -> int:
    """Number of readings that the demo replays."""
    with RECORDING.open() as file:
        return sum(1 for _ in file) - 1


def check(outcome: Outcome) -> list[Verdict]:
    """Compare the alarms in Kafka with the plain join of all readings."""
    return outcome.plain_joins.check(outcome.alarms, outcome.published)


def _follow(fleet: Fleet, watch: Watch, stopping: threading.Event) -> dict[str, int]:
    """Wait until every frontier has passed the end of the recordings. Returns the greatest number of live
    tuples of each query.
    """
    peak: dict[str, int] = {}
    moved = time.monotonic()
    with TopicReader(_client(fleet), [FRONTIERS]) as reader:
        latest = {r.key: r for r in reader.snapshot()}
        while not _done([Frontier.from_bytes(r.value) for r in latest.values() if r.value is not None]):
            if stopping.is_set():
                raise KeyboardInterrupt
            if time.monotonic() - moved > STANDSTILL_SECONDS:
                raise UnavailableError(
                    f"the joiner made no progress for {STANDSTILL_SECONDS:.0f} s before the recordings' end",
                    hint=f"see {fleet.spec.directory / 'logs' / 'joiner.log'}",
                )
            watch(fleet, _progress(fleet, peak))
            gone = fleet.ended()
            if gone:
                raise UnavailableError(
                    f"{gone} ended", hint=f"see {fleet.spec.directory / 'logs' / gone}.log"
                )
            records = reader.poll(0.5)
            if records:
                moved = time.monotonic()
            latest.update((record.key, record) for record in records)
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
    """The metrics of a service; none while it restarts."""
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


def _collect(fleet: Fleet, joins: PlainJoins, peak: dict[str, int]) -> Outcome:
    alarms: dict[str, dict[str, dict[str, Any]]] = {}
    latency: dict[str, list[float]] = {}
    with TopicReader(_client(fleet), [ALARMS]) as reader:
        for record in reader.snapshot():
            if record.value is not None:
                alarm = orjson.loads(record.value)
                if alarm["id"] not in alarms.setdefault(alarm["alert"], {}):
                    alarms[alarm["alert"]][alarm["id"]] = alarm
                    waited = record.timestamp / 1e3 - alarm["arrived"] / 1e6
                    latency.setdefault(alarm["alert"], []).append(waited)
    episodes: dict[str, int] = {}
    with TopicReader(_client(fleet), [EPISODES]) as reader:
        for record in reader.snapshot():
            episode = orjson.loads(record.value or b"{}")
            if episode.get("event") == "opened":
                episodes[episode["alert"]] = episodes.get(episode["alert"], 0) + 1
    scrapes = {place.name: _scrape(fleet, place.name) for place in joins.places}
    joiner = _scrape(fleet, "joiner")
    bounds = joiner.by("tamis_query_bound_tuples", "query")
    return Outcome(
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
        plain_joins=joins,
    )


def _client(fleet: Fleet) -> dict[str, object]:
    return fleet.kafka_settings().client_config()


def show(outcome: Outcome, verdicts: Sequence[Verdict], console: Console) -> None:
    """Print the report."""
    _streams(outcome, console)
    _alerts(outcome, verdicts, console)
    everything = outcome.tuples * outcome.published_bytes / max(1, outcome.published)
    sizes = f"{outcome.published_bytes:,} to Kafka; publishing every tuple would take {everything:,.0f}"
    console.print(f"bytes: {sizes} ({1 - outcome.published / max(1, outcome.tuples):.1%} saved)")
    waits = [seconds for found in outcome.latency.values() for seconds in found]
    if waits:
        p50, p99 = np.percentile(waits, [50, 99])
        console.print(f"latency, reading at the edge to alarm in Kafka: p50 {p50:.2f} s, p99 {p99:.2f} s")
    for verdict in verdicts:
        console.print(
            f"verify {verdict.query}: {verdict.reference_alarms:,} alarms of the plain join, "
            f"{verdict.alarms:,} raised, missed {verdict.missed}, extra {verdict.extra}",
            soft_wrap=True,
        )


def _streams(outcome: Outcome, console: Console) -> None:
    """A line for each stream, and below it a line for each edge; at most 80 columns wide, as in a pipe."""
    some = {decision for counts in outcome.decisions.values() for decision in counts if counts[decision]}
    decisions = [decision for decision in _DECISIONS if decision != "aggregated" or decision in some]
    head = ("stream", "tuples", *decisions, "retained")
    table = Table(*head, box=box.SIMPLE_HEAD, title="What the edges did")
    for stream in dict.fromkeys(stream for stream, _ in outcome.decisions):
        edges = {edge: counts for (of, edge), counts in outcome.decisions.items() if of == stream}
        whole = {d: sum(counts.get(d, 0) for counts in edges.values()) for d in decisions}
        for name, counts in {
            stream: whole,
            **{f" {edge}": counts for edge, counts in edges.items()},
        }.items():
            seen = sum(counts.values())
            share = f"{counts.get('published', 0) / seen:.1%}" if seen else "-"
            table.add_row(name, f"{seen:,}", *(f"{counts.get(d, 0):,}" for d in decisions), share)
    console.print(table)


def _alerts(outcome: Outcome, verdicts: Sequence[Verdict], console: Console) -> None:
    table = Table(
        "alert",
        "alarms",
        "episodes",
        "most live tuples",
        "proven bound",
        box=box.SIMPLE_HEAD,
        title="What was raised",
    )
    for verdict in verdicts:
        bound = outcome.bounds.get(verdict.query)
        table.add_row(
            verdict.query,
            f"{len(outcome.alarms.get(verdict.query, [])):,}",
            f"{outcome.episodes.get(verdict.query, 0):,}",
            f"{outcome.live_peak.get(verdict.query, 0):,}",
            "-" if bound is None else f"{bound:,}",
        )
    console.print(table)
