"""Losses of docs/recover.md, one after the other in the same fleet: each test does what the page says.

After a loss no alarm is missed, or exactly those that the page names.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from confluent_kafka.admin import AdminClient
from numpy.typing import NDArray
from tests.e2e.fed_fleet import FedFleet, Times, judge, until
from tests.e2e.feeder import SECOND, STREAMS, PatientFeeder, close_alert, feeding
from tests.faults.windows import judge_windows, window_alerts
from tests.integration.alerts.receiver import Receiver

from tamis.messaging import topics
from tamis.settings.client import registry_client

ALERT = close_alert("warm", 8.0)
ALERTS = ALERT + window_alerts("station <> ''")
NAMES = {"warm", "tumbled", "hopped"}
# Minutes on a machine where others want the cores too.
pytestmark = [pytest.mark.recovery, pytest.mark.timeout(600)]

# Event seconds before a loss in which readings may still be on their way: they wait for their watermark, or
# for a reading that brackets them.
MARGIN = 20

Bools = NDArray[np.bool_]
Promised = Callable[[Times, Times], Bools]


class Station:
    """A fleet whose readings come from a feeder, and a webhook. `alarms` has all that were seen, by id."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.receiver = Receiver()
        sinks = directory / "alerts.yaml"
        sinks.write_text(f"sinks:\n  - {{kind: webhook, url: '{self.receiver.url}'}}\n")
        self.fed = FedFleet(directory / "fleet", alerts=sinks)
        self.feeder = PatientFeeder(seed=5)
        self.alarms: dict[str, dict[str, Any]] = {}
        self.lost: list[tuple[int, int]] = []  # event seconds of readings that were lost
        self.renewed: list[tuple[int, int]] = []  # event seconds in which the lost alert was applied again

    def start(self) -> None:
        """Start the fleet, and feed it."""
        self.feeder.url = self.fed.start(ALERTS)
        self.feed(80)

    def close(self) -> None:
        """Stop everything."""
        self.feeder.end()
        self.receiver.close()
        self.fed.fleet.stop()

    def feed(self, seconds: int) -> None:
        """Post the readings of some event seconds, and wait until the joiner has read them."""
        with ThreadPoolExecutor(1) as executor:
            posting = executor.submit(self.feeder.until, self.feeder.second + seconds)
            self.supervise(posting.done, 300)
            posting.result()
        self.supervise(lambda: self.fed.passed(self.feeder.second - MARGIN), 180)
        self.see()

    def supervise(self, what: Callable[[], bool], seconds: float) -> None:
        """Wait until something is true. Each service that has ended is started again, as systemd does, but by
        the calling thread: services end with the thread that started them.
        """

        def done() -> bool:
            if (name := self.fed.fleet.ended()) is not None:
                self.begin(name)
            return what()

        until(done, seconds)

    def see(self) -> None:
        """Remember the alarms in Kafka."""
        for alarms in self.fed.alarms().values():
            self.alarms |= {alarm["id"]: alarm for alarm in alarms}

    def judge(self) -> None:
        """Compare all alarms since the start with the plain join. None is extra, and none is missed but those
        of `lost` readings, and those of readings from both sides of a loss or of a renewal.
        """

        def there(times: Times) -> Bools:
            found: Bools = times < (self.feeder.second - MARGIN) * SECOND
            for first, last in self.lost:
                found &= (times < first * SECOND) | (times > last * SECOND)
            return found

        def promised(air: Times, surface: Times) -> Bools:
            kept = there(air) & there(surface)
            for first, _ in self.lost:  # a reading from before a loss meets none from after it
                kept &= (air < first * SECOND) == (surface < first * SECOND)
            for first, last in self.renewed:
                # Readings that an edge had held back until then are published under the new definition.
                before = np.maximum(air, surface) < (first - MARGIN) * SECOND
                kept &= before | (np.minimum(air, surface) > last * SECOND)
            return kept

        recordings = self.feeder.recordings(self.directory)
        warm = self.warm()
        found = judge(ALERT, "warm", recordings, warm, promised)
        assert found.extra == 0, found
        tuples = (orjson.dumps(one["tuples"], option=orjson.OPT_SORT_KEYS) for one in warm)
        assert max(Counter(tuples).values()) == 1, "an alarm that comes again has the same id"
        self.judge_windows()

    def warm(self) -> list[dict[str, Any]]:
        """The alarms of the join."""
        return [alarm for alarm in self.alarms.values() if alarm["alert"] == "warm"]

    def judge_windows(self) -> None:
        """Assert that each window counts each reading once, except windows near a loss or a renewal."""
        accepted, unsure = (
            [(reading["station"], reading["ts"]) for reading in readings["air"]]
            for readings in (self.feeder.posted, self.feeder.unsure)
        )
        passed = (self.feeder.second - MARGIN) * SECOND
        verdict = judge_windows(accepted, unsure, self.alarms.values(), passed)
        near = [
            ((first - MARGIN) * SECOND, (last + MARGIN) * SECOND) for first, last in self.lost + self.renewed
        ]
        faults = {
            window: said
            for window, said in verdict.faults.items()
            if not any(first <= window[2] <= last for first, last in near)
        }
        print(f"\n{verdict.windows} windows, {verdict.readings} readings; near losses {len(verdict.faults)}")
        assert not faults, faults

    def stop(self, *names: str) -> None:
        """Stop services."""
        for name in names:
            assert self.fed.fleet.processes[name].stop() == 0

    def begin(self, *names: str) -> None:
        """Start services."""
        for name in names:
            process = self.fed.fleet.processes[name]
            process.start()
            process.wait_ready(200)

    def empty(self, name: str) -> None:
        """Replace the directory of a service by an empty one."""
        shutil.rmtree(self.directory / "fleet" / name)
        (self.directory / "fleet" / name).mkdir()

    def topics(self) -> set[str]:
        """The names of all topics."""
        admin = AdminClient(self.fed.fleet.kafka_settings().client_config())
        return set(admin.list_topics(timeout=30).topics)

    def delete(self, *names: str) -> None:
        """Delete topics."""
        admin = AdminClient(self.fed.fleet.kafka_settings().client_config())
        for done in admin.delete_topics(list(names)).values():
            done.result(30)
        until(lambda: not set(names) & self.topics())

    def restart_registry(self) -> None:
        """Restart the registry, and wait until all alerts run."""
        self.stop("registry")
        self.begin("registry")
        self.supervise(self.runs, 240)

    def runs(self) -> bool:
        """True if every service runs, and the registry says that all alerts do."""
        return self.fed.fleet.ended() is None and all(
            self.fed.alert(name)["state"] == "running" for name in NAMES
        )


@pytest.fixture(scope="module")
def station(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Station]:
    made = Station(tmp_path_factory.mktemp("recover"))
    try:
        made.start()
        yield made
    finally:
        made.close()


def test_without_its_checkpoint_the_joiner_reads_the_topics_again(station: Station) -> None:
    before = len(station.fed.records(topics.ALARMS))
    with feeding(station.feeder):
        station.stop("joiner")
        station.empty("joiner")
        station.begin("joiner")
    station.feed(40)
    assert len(station.fed.records(topics.ALARMS)) > 2 * before, "alarms come again"
    station.judge()
    posted = Counter(headers["idempotency-key"] for _, headers, _ in station.receiver.posted)
    assert posted and max(posted.values()) == 1, "nobody is notified twice"
    closed = Counter(
        (event["alert"], tuple(event["key"]), event["end"])
        for _, _, event in station.receiver.posted
        if event["event"] == "closed"
    )
    assert max(closed.values()) == 1, "no episode has a second identity"


def test_without_the_statements_alarms_go_on_until_they_are_applied_again(station: Station) -> None:
    station.delete(topics.STATEMENTS)
    station.stop("registry")
    station.begin("registry")
    assert registry_client(station.fed.fleet.registry_url).request("GET", "/v1/alerts") == []
    station.feed(40)
    station.judge()
    first = station.feeder.second
    with feeding(station.feeder):
        station.fed.apply(STREAMS)
        station.fed.apply(ALERTS)
        station.supervise(station.runs, 180)
    station.renewed.append((first, station.feeder.second + 1))
    station.feed(40)
    station.judge()
    assert station.fed.records(topics.DEAD_LETTERS) == [], "readings wait meanwhile"


def test_topics_of_plans_and_reports_come_back_and_nothing_is_lost(station: Station) -> None:
    with feeding(station.feeder):
        station.delete(topics.PLANS, topics.ACKS, topics.SKETCHES, topics.FRONTIERS)
        station.restart_registry()
    station.feed(40)
    station.judge()


def test_with_the_topics_of_streams_and_alarms_only_what_was_unread_is_lost(station: Station) -> None:
    station.feed(MARGIN)
    streams = [name for name in station.topics() if name.startswith(topics.STREAM_PREFIX)]
    assert len(streams) == 3
    station.delete(*streams, topics.ALARMS, topics.EPISODES)
    station.restart_registry()
    end = station.feeder.second
    station.lost.append((end - MARGIN, end + 1))
    station.feed(60)
    station.judge()


def test_without_its_disk_an_edge_loses_what_was_not_in_kafka(station: Station) -> None:
    station.feed(MARGIN)
    station.fed.fleet.broker.stop()
    before = station.feeder.second
    station.feeder.until(before + 30)
    station.fed.fleet.processes["edge"].kill()
    station.empty("edge")
    station.fed.fleet.broker.start()
    after = station.feeder.second + 1
    station.lost.append((before - MARGIN, after))
    station.begin("edge")
    station.supervise(station.runs, 180)
    station.feed(60)
    station.judge()
    times = [one["ts"] for alarm in station.warm() for one in alarm["tuples"].values()]
    assert not [time_ for time_ in times if (before + 1) * SECOND <= time_ < after * SECOND], (
        "all of them are lost"
    )
    assert max(times) > after * SECOND


def test_after_all_of_kafka_is_lost_readings_on_the_edge_are_not(station: Station) -> None:
    station.feed(MARGIN)
    station.stop("joiner", "alerts")
    station.fed.fleet.broker.stop()
    before = station.feeder.second
    station.lost.append((before - MARGIN, before + 1))
    station.feeder.until(before + 30)
    station.fed.fleet.processes["edge"].kill()
    station.fed.fleet.processes["registry"].kill()
    station.empty("kafka")
    station.empty("joiner")
    station.fed.fleet.broker.start()
    station.begin("registry")
    station.fed.apply(STREAMS)
    station.fed.apply(ALERTS)
    station.begin("joiner", "alerts", "edge")
    station.supervise(station.runs, 180)
    station.feed(60)
    station.judge()
