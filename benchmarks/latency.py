"""Latency of alarms through the whole fleet at 1,000 tuples/s, from the edge to Kafka and to alerts."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx
import numpy as np
import orjson

from benchmarks import latency_peers
from benchmarks.harness import Cell, Goal, Result, Say
from benchmarks.readings import readings_of_now, stream
from benchmarks.spark_latency import COPY, JOIN
from tamis.errors import UnavailableError
from tamis.local.fleet import EdgeSpec, Fleet, FleetSpec
from tamis.local.scrape import Scrape
from tamis.messaging.records import Frontier
from tamis.messaging.topic_reader import TopicReader
from tamis.messaging.topics import ALARMS, FRONTIERS, stream_topic
from tamis.settings import KafkaSettings
from tamis.telemetry.metric_catalogue import LATENCY_BUCKETS

NAME = "latency"
KEYS = 200
TUPLES_A_SECOND = 1_000
# What a gateway sends at a time: a request of each stream this often.
TICK = 0.05
# What has not come by then will not come.
PATIENCE = 120.0

ALERT = """
CREATE ALERT {name} WITH ({options}) AS
SELECT a.station, a.ts, a.temp - s.temp AS difference FROM {air} a JOIN {surface} s
  ON a.station = s.station AND ABS(a.ts - s.ts) <= INTERVAL '2' SECOND
WHERE a.temp - s.temp > 3.6;
"""


@dataclass(frozen=True)
class Phase:
    """One way of running an alert: its streams, and what its edge may hold back."""

    what: str
    alert: str
    options: str
    streams: tuple[str, str]

    @property
    def sql(self) -> str:
        """Its statements."""
        air, surface = self.streams
        rate = TUPLES_A_SECOND // KEYS
        alert = ALERT.format(name=self.alert, options=self.options, air=air, surface=surface)
        return stream(air, KEYS, rate) + stream(surface, KEYS, rate) + alert


PHASES = (
    Phase("every tuple published", "plain", "max_delay = '0 seconds'", ("whole_air", "whole_surface")),
    Phase("omission, max_delay 1 s", "omitting", "max_delay = '1 second'", ("air", "surface")),
)


class Feeder:
    """Posts readings of now to an edge over HTTP, a thread a stream, at an even rate."""

    def __init__(self, url: str, streams: Sequence[str]) -> None:
        self._url = url
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._feed, args=(name,)) for name in streams]
        self._rate = TUPLES_A_SECOND / len(streams)
        self.posted = dict.fromkeys(streams, 0)
        self.fault: Exception | None = None

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End, and wait for the last answers."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        if self.fault is not None:
            raise UnavailableError(f"a reading could not be posted: {self.fault}", where=self._url)

    def _feed(self, name: str) -> None:
        random = np.random.default_rng(len(name))
        began = time.monotonic()
        try:
            with httpx.Client(timeout=30) as client:
                while not self._stopping.wait(TICK):
                    # What a slow answer held up comes with the next request: the rate is what is promised.
                    count = int(self._rate * (time.monotonic() - began)) - self.posted[name]
                    body = b"\n".join(map(orjson.dumps, readings_of_now(count, KEYS, random)))
                    client.post(f"{self._url}/v1/streams/{name}", content=body).raise_for_status()
                    self.posted[name] += count
        except httpx.HTTPError as error:
            self.fault = error


def run(quick: bool, say: Say) -> Result:
    """Run the benchmark. A quick run only shows that it works: its sizes are too small for figures."""
    warm_up, seconds = (5.0, 5.0) if quick else (15.0, 30.0)
    peers = {
        query: np.quantile(
            latency_peers.waits(query, (KEYS, TUPLES_A_SECOND), warm_up, seconds, say), (0.5, 0.99)
        ).tolist()
        for query in latency_peers.PEERS
    }
    with tempfile.TemporaryDirectory(prefix="tamis-bench-latency-") as directory:
        fleet = Fleet(FleetSpec(Path(directory), [EdgeSpec("edge")]), say)
        try:
            fleet.start({f"{phase.alert}.sql": phase.sql for phase in PHASES})
            for phase in PHASES:
                wait(f"{phase.alert} runs", partial(running, fleet, phase.alert))
            rows = [row for phase in PHASES for row in _measure(fleet, phase, warm_up, seconds, say)]
        finally:
            fleet.stop()
    rows = [
        {"what": what, "p50 s": round(peers[query][0], 3), "p99 s": round(peers[query][1], 3)}
        for query, what in latency_peers.PEERS.items()
    ] + rows
    return Result(
        NAME,
        f"Alarm latency at {TUPLES_A_SECOND:,} tuples/s",
        ("what", "p50 s", "p99 s", "alarms", "tuples/s", "published"),
        rows,
        {"seconds": seconds, "warm_up": warm_up, "keys": KEYS, "tick": TICK, "quick": quick},
        (
            "edge to Kafka: until the timestamp of the alarm in Kafka",
            "edge to alerts: until the alerts service has read the alarm; interpolated within the buckets of"
            " a histogram",
            "with omission, an edge may hold a tuple for at most max_delay",
            "Spark's queries read and write Kafka without edge and registry, before the fleet runs; their"
            " latency starts when a reading is sent",
        ),
        _goals(rows, peers),
    )


def _goals(rows: Sequence[dict[str, Cell]], peers: Mapping[str, list[float]]) -> list[Goal]:
    """The latency of alarms without omission, divided by the peers'."""
    row = next(row for row in rows if row["what"] == f"{PHASES[0].what}: edge to Kafka")
    return [
        Goal(f"alarm latency, {name}", float(row[f"{name} s"] or 0) / peers[query][number], what, most=most)
        for number, name in enumerate(("p50", "p99"))
        for query, most, what in ((COPY, 1.3, "times the copy's"), (JOIN, 0.65, "times Spark's join's"))
    ]


def wait(what: str, condition: Callable[[], bool]) -> None:
    """Wait until a condition holds. Raises UnavailableError if it does not within `PATIENCE`."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise UnavailableError(f"not within {PATIENCE:.0f} s: {what}")
        time.sleep(0.5)


def running(fleet: Fleet, alert: str) -> bool:
    """True if an alert runs, as the registry says."""
    answer = httpx.get(f"{fleet.registry_url}/v1/alerts/{alert}").raise_for_status()
    return bool(answer.json()["state"] == "running")


def _passed(fleet: Fleet, phase: Phase) -> float:
    """The event time in seconds below which every alarm of the phase is in Kafka."""
    with TopicReader(_client(fleet), [FRONTIERS]) as reader:
        latest = {r.key: Frontier.from_bytes(r.value) for r in reader.snapshot() if r.value is not None}
    topics = [stream_topic(name, 1) for name in phase.streams]
    states = [record.topics.get(topic) for record in latest.values() for topic in topics]
    if len(latest) < fleet.spec.partitions:
        return 0.0
    return min(0 if state is None else state.frontier or 0 for state in states) / 1e6


def _measure(fleet: Fleet, phase: Phase, warm_up: float, seconds: float, say: Say) -> list[dict[str, Cell]]:
    feeder = Feeder(fleet.http_sources["edge"], phase.streams)
    say(f"{phase.what}: warming up")
    feeder.start()
    try:
        time.sleep(warm_up)
        say(f"{phase.what}: measuring for {seconds:.0f} s")
        before, began, posted = _buckets(fleet, phase.alert), time.time(), sum(feeder.posted.values())
        time.sleep(seconds)
        ended, posted = time.time(), sum(feeder.posted.values()) - posted
        say(f"{phase.what}: waiting for the last alarms")
        # Tuples go on arriving meanwhile: what was measured is raised as all others were.
        wait("the joiner has passed what was measured", lambda: _passed(fleet, phase) > ended)
    finally:
        feeder.stop()
    edge = Scrape.of(fleet.telemetry["edge"])
    decided = {
        decision: sum(
            edge.total("tamis_edge_tuples_total", stream=name, decision=decision) for name in phase.streams
        )
        for decision in ("published", "late", "omitted")
    }
    waits, raised = _waits(fleet, phase.alert, began, ended)
    if not waits:
        raise UnavailableError(f"{phase.alert} raised no alarm", hint="give it longer")
    wait("alerts has read all alarms", lambda: max(_buckets(fleet, phase.alert).values()) >= raised)
    p50, p99 = np.percentile(waits, [50, 99]).tolist()
    after = _buckets(fleet, phase.alert)
    buckets = {bound: count - before.get(bound, 0.0) for bound, count in after.items()}
    return [
        {
            "what": f"{phase.what}: edge to Kafka",
            "p50 s": round(p50, 3),
            "p99 s": round(p99, 3),
            "alarms": len(waits),
            "tuples/s": round(posted / (ended - began)),
            "published": f"{1 - decided['omitted'] / sum(decided.values()):.0%}",
        },
        {
            "what": f"{phase.what}: edge to alerts",
            "p50 s": round(quantile(buckets, 0.5), 2),
            "p99 s": round(quantile(buckets, 0.99), 2),
            "alarms": round(max(buckets.values())),
        },
    ]


def _waits(fleet: Fleet, alert: str, began: float, ended: float) -> tuple[list[float], int]:
    """Seconds of the distinct alarms whose last tuple arrived in the time measured, and the number of all."""
    waits: dict[str, float] = {}
    raised = 0
    with TopicReader(_client(fleet), [ALARMS]) as reader:
        for record in reader.snapshot():
            alarm = orjson.loads(record.value or b"{}")
            if alarm.get("alert") == alert:
                raised += 1
                if began <= alarm["arrived"] / 1e6 < ended:
                    waits.setdefault(alarm["id"], record.timestamp / 1e3 - alarm["arrived"] / 1e6)
    return list(waits.values()), raised


def _client(fleet: Fleet) -> dict[str, object]:
    return KafkaSettings(bootstrap=fleet.bootstrap).client_config()


def _buckets(fleet: Fleet, alert: str) -> dict[float, float]:
    """The alerts service's histogram of an alert: how many alarms took at most so many seconds."""
    scrape = Scrape.of(fleet.telemetry["alerts"])
    name = "tamis_alarm_latency_seconds"
    bounds = LATENCY_BUCKETS
    found = {bound: scrape.total(f"{name}_bucket", query=alert, le=str(bound)) for bound in bounds}
    return found | {float("inf"): scrape.total(f"{name}_bucket", query=alert, le="+Inf")}


def quantile(buckets: dict[float, float], q: float) -> float:
    """A quantile from cumulative counts by upper bound, linear within a bucket, as Prometheus has it."""
    wanted = q * max(buckets.values())
    lower, below = 0.0, 0.0
    for bound, count in sorted(buckets.items()):
        if count >= wanted and count > below:
            if bound == float("inf"):
                return lower
            return lower + (bound - lower) * (wanted - below) / (count - below)
        lower, below = bound, count
    return lower
