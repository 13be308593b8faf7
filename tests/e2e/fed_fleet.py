"""Whole fleet with one edge and a feeder, for tests that compare its alarms with the plain join."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import orjson
from numpy.typing import NDArray
from tests.e2e.feeder import SECOND, STREAMS

from tamis.local.fleet import EdgeSpec, Fleet, FleetSpec
from tamis.messaging.records import Frontier
from tamis.messaging.topic_reader import TopicReader
from tamis.messaging.topics import ALARMS, FRONTIERS, STREAM_PREFIX
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of
from tamis.recordings.typed import Recording
from tamis.settings import KafkaSettings
from tamis.verification.compare import Verdict, alarms_of, compare
from tamis.verification.reference import Reference, plain_join

Times = NDArray[np.int64]


def until(what: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.5)


class FedFleet:
    """A fleet with one edge, whose readings come from a feeder over HTTP. `alerts`: the configuration file of
    the alerts service; `edges`: other edges in place of that one.
    """

    def __init__(
        self,
        directory: Path,
        environment: Mapping[str, str] | None = None,
        alerts: Path | None = None,
        edges: Sequence[EdgeSpec] = (EdgeSpec("edge"),),
    ) -> None:
        more = dict(environment or {})
        spec = FleetSpec(directory, edges, partitions=2, environment=more, alerts=alerts)
        self.fleet = Fleet(spec, lambda _: None)

    def start(self, alerts: str) -> str:
        """Start all processes with some alerts; returns the address of the HTTP source of an edge without a
        configuration of its own.
        """
        self.fleet.start({"streams.sql": STREAMS, "alerts.sql": alerts})
        return self.fleet.http_sources.get("edge", "")

    def apply(self, sql: str) -> None:
        self.fleet.apply(sql)

    def alert(self, name: str) -> dict[str, Any]:
        answer = httpx.get(f"{self.fleet.registry_url}/v1/alerts/{name}").raise_for_status()
        found: dict[str, Any] = answer.json()
        return found

    def running(self, name: str) -> Mapping[str, int]:
        """Wait until every shard obeys; returns the activation time of each stream."""
        until(lambda: self.alert(name)["state"] == "running", 180)
        return {
            shard.partition(":")[0]: entry["event_time"]
            for shard, entry in self.alert(name)["activations"].items()
        }

    def records(self, topic: str) -> list[bytes]:
        config = KafkaSettings(bootstrap=self.fleet.bootstrap).client_config()
        with TopicReader(config, [topic]) as reader:
            return [r.value for r in reader.snapshot() if r.value is not None]

    def alarms(self) -> dict[str, list[dict[str, Any]]]:
        """Distinct alarms by alert."""
        found: dict[str, dict[str, dict[str, Any]]] = {}
        for value in self.records(ALARMS):
            alarm = orjson.loads(value)
            found.setdefault(alarm["alert"], {}).setdefault(alarm["id"], alarm)
        return {alert: list(alarms.values()) for alert, alarms in found.items()}

    def passed(self, second: int, streams: Sequence[str] = ("",)) -> bool:
        """True if all frontiers of the joiner are past that event second. `streams`: how the names of the
        streams begin that matter.
        """
        prefixes = tuple(f"{STREAM_PREFIX}{stream}" for stream in streams)
        frontiers = [Frontier.from_bytes(value) for value in self.records(FRONTIERS)]
        latest = {record.partition: record for record in frontiers}
        states = [
            state
            for record in latest.values()
            for topic, state in record.topics.items()
            if topic.startswith(prefixes)
        ]
        return bool(states) and all(s.frontier is not None and s.frontier > second * SECOND for s in states)


def judge(
    sql: str,
    name: str,
    recordings: Mapping[str, Recording],
    alarms: list[dict[str, Any]],
    promised: Callable[[Times, Times], NDArray[np.bool_]],
) -> Verdict:
    """The verdict over the full join; asserts that no promised combination is missed."""
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
    assert found["promised"].missed == 0, found
    return found["all"]
