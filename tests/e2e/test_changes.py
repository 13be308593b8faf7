"""Queries come, change and go under load, one with windows stays; with poison among the readings and the
broker away for a while."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import httpx
import numpy as np
import orjson
import pytest
from confluent_kafka import Consumer
from numpy.typing import NDArray
from tests.e2e.feeder import SECOND, STREAMS, Feeder, close_alert, swell_alert

from tamis.fleet.fleet import EdgeSpec, Fleet, FleetSpec
from tamis.messaging.compacted import CompactedReader
from tamis.messaging.records import Frontier
from tamis.messaging.topics import ALARMS, DEAD_LETTERS, FRONTIERS
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of
from tamis.recordings import Recording, read_recording
from tamis.settings import KafkaSettings
from tamis.verification import Reference, Verdict, compare, plain_join
from tamis.verification.compare import alarms_of

AWAY_SECONDS = 20.0
Times = NDArray[np.int64]
POISON = {
    b'{"station": "k1", "ts":': "undecodable",
    b'{"station": "k1", "temp": 1.0, "rh": 50.0}': "missing_field",
    b'{"station": "k1", "ts": 1000000, "temp": "warm", "rh": 50.0}': "wrong_type",
    b'{"station": "k1", "ts": 1000000, "temp": 99.0, "rh": 50.0}': "out_of_domain",
    b'{"station": "k1", "ts": 1000000, "temp": NaN, "rh": 50.0}': "nan",
}


def until(what: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.2)


class Story:
    """The fleet, its feeder, and what it says of itself."""

    def __init__(self, directory: Path) -> None:
        self.fleet = Fleet(FleetSpec(directory, [EdgeSpec("edge")], partitions=2), lambda _: None)

    def start(self) -> str:
        """Start all; where readings are posted."""
        alerts = {"warm.sql": close_alert("warm", 9.0), "swell.sql": swell_alert("swell", 10.0)}
        self.fleet.start({"streams.sql": STREAMS, **alerts})
        return self.fleet.http_sources["edge"]

    def apply(self, sql: str) -> None:
        self.fleet.apply(sql)

    def alert(self, name: str) -> dict[str, Any]:
        answer = httpx.get(f"{self.fleet.registry_url}/v1/alerts/{name}").raise_for_status()
        found: dict[str, Any] = answer.json()
        return found

    def running(self, name: str) -> Mapping[str, int]:
        """Wait until every shard obeys; the activation time of each stream."""
        until(lambda: self.alert(name)["state"] == "running")
        return {
            shard.partition(":")[0]: entry["event_time"]
            for shard, entry in self.alert(name)["activations"].items()
        }

    def records(self, topic: str) -> list[bytes]:
        config = KafkaSettings(bootstrap=self.fleet.bootstrap).client_config()
        with CompactedReader(config, [topic]) as reader:
            return [r.value for r in reader.snapshot() if r.value is not None]

    def dead_letters(self) -> dict[bytes, str]:
        """Payload and reason of each."""
        found: dict[bytes, str] = {}
        settings = KafkaSettings(bootstrap=self.fleet.bootstrap).client_config()
        consumer = Consumer({**settings, "group.id": "letters", "auto.offset.reset": "earliest"})
        try:
            consumer.subscribe([DEAD_LETTERS])
            deadline = time.monotonic() + 30
            while len(found) < len(POISON) and time.monotonic() < deadline:
                message = consumer.poll(0.5)
                if message is not None and message.error() is None:
                    headers = dict(cast(list[tuple[str, bytes]], message.headers()))
                    found[message.value() or b""] = headers["reason"].decode()
        finally:
            consumer.close()
        return found

    def passed(self, second: int) -> bool:
        """Whether the joiner's frontiers of all that it reads are past that event second."""
        frontiers = [Frontier.from_bytes(value) for value in self.records(FRONTIERS)]
        latest = {record.partition: record for record in frontiers}
        states = [state for record in latest.values() for state in record.topics.values()]
        return bool(states) and all(s.frontier is not None and s.frontier > second * SECOND for s in states)


def judge(
    sql: str,
    name: str,
    recordings: Mapping[str, Recording],
    alarms: list[dict[str, Any]],
    promised: Callable[[Times, Times], NDArray[np.bool_]],
) -> Verdict:
    """Missed: of the combinations that were promised. Extra: against all of the full join."""
    catalog = catalog_of(STREAMS + sql)
    query = catalog.alerts[name].query
    (definition,) = first_plan(catalog, partitions=2).definitions
    starts = None if query.window is None else [alarm["window"]["start"] for alarm in alarms]
    raised = alarms_of(query, recordings, [alarm["tuples"] for alarm in alarms], starts)
    everything = plain_join(query, recordings)
    times = {
        a: recordings[s].columns["ts"].data[everything.rows[a]] for a, s in (("a", "air"), ("s", "surface"))
    }
    kept = np.flatnonzero(promised(times["a"], times["s"]))
    some = Reference(
        {alias: rows[kept] for alias, rows in everything.rows.items()},
        everything.late[kept],
        everything.near[kept],
        None if everything.starts is None else everything.starts[kept],
    )
    found = {
        which: compare(
            name,
            query,
            definition=definition,
            recordings=recordings,
            reference=reference,
            alarms=raised,
            retained=0,
        )
        for which, reference in (("promised", some), ("all", everything))
    }
    assert found["promised"].reference_alarms > 20, "there must be something to miss"
    assert found["promised"].missed == 0
    return found["all"]


@pytest.mark.timeout(900)  # several minutes where others want the cores too
def test_queries_change_under_load_and_nothing_promised_is_missed(tmp_path: Path) -> None:
    story = Story(tmp_path / "fleet")
    feeder = Feeder(seed=7)
    try:
        feeder.url = story.start()
        feeder.until(60)
        story.apply(close_alert("cool", 6.0))
        added = story.running("cool")
        feeder.until(110)
        feeder.post_lines("air", list(POISON))
        feeder.until(120)
        story.apply(close_alert("warm", 5.0, replace=True))
        replaced = story.running("warm")
        feeder.until(180)
        story.fleet.broker.stop()
        gone = time.monotonic()
        feeder.until(220, pause=AWAY_SECONDS / 40)
        assert time.monotonic() - gone >= AWAY_SECONDS
        story.fleet.broker.start()
        feeder.until(260)
        until(lambda: story.passed(235))
        story.apply("DROP ALERT cool;")
        feeder.until(300)
        feeder.close(4_000)
        until(lambda: story.passed(3_900), 90)
        alarms: dict[str, list[dict[str, Any]]] = {}
        for value in story.records(ALARMS):
            alarm = orjson.loads(value)
            if alarm["id"] not in {a["id"] for a in alarms.setdefault(alarm["alert"], [])}:
                alarms[alarm["alert"]].append(alarm)
        dead = story.dead_letters()
        assert all(process.exit_code() is None for process in story.fleet.processes.values())
    finally:
        feeder.end()
        codes = story.fleet.stop()
    assert codes == dict.fromkeys(codes, 0)
    assert dead == POISON
    catalog = catalog_of(STREAMS)
    recordings = {
        stream: read_recording(catalog.streams[stream], [str(path)])
        for stream, path in feeder.write(tmp_path).items()
    }
    # Added: everything from its activation on, until it was dropped.
    last = 230 * SECOND
    cool = judge(
        close_alert("cool", 6.0),
        "cool",
        recordings,
        alarms["cool"],
        lambda a, s: (a >= added["air"]) & (s >= added["surface"]) & (a < last) & (s < last),
    )
    assert cool.extra == 0

    # Replaced: the old definition's combinations until both tuples are the new one's; then the new one's.
    def both(a: Times, s: Times) -> NDArray[np.bool_]:
        return (a >= replaced["air"]) & (s >= replaced["surface"])

    judge(close_alert("warm", 9.0), "warm", recordings, alarms["warm"], lambda a, s: ~both(a, s))
    # Every alarm of the old definition is one of the new one's too: its threshold is lower.
    new = judge(close_alert("warm", 5.0), "warm", recordings, alarms["warm"], both)
    assert new.extra == 0

    # With windows, from the beginning to the end: all of it.
    swell = judge(
        swell_alert("swell", 10.0),
        "swell",
        recordings,
        alarms["swell"],
        lambda a, s: np.ones(len(a), np.bool_),
    )
    assert swell.extra == 0
    assert swell.alarms < swell.reference_alarms, "windows must keep readings off Kafka"
