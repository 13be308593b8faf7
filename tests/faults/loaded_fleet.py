"""A whole fleet under load, for faults: its services are killed and started, then its alarms are compared."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import orjson
from tests.faults.load import ALERTS, SECOND, STREAMS, WINDOWED, Load
from tests.faults.reference import Expected, Outcome, closed_episodes, compare, expected
from tests.faults.windows import WindowVerdict, count_cuts, judge_windows
from tests.integration.alerts.receiver import Receiver

from tamis.local.fleet import EdgeSpec, Fleet, FleetSpec
from tamis.messaging.records import Frontier, read_frontier
from tamis.messaging.topic_reader import TopicReader
from tamis.messaging.topics import ALARMS, EPISODES, FRONTIERS

# On a busy machine Spark needs minutes to start and to catch up.
PATIENCE = 600.0
# Event seconds that frontiers may stay behind the last reading: the delay of watermarks, the omission
# interval for which an edge holds readings back, and some more.
MARGIN = 20


class LoadedFleet:
    """One edge, registry, joiner, alerts service with a webhook, and broker. `load` posts readings to it."""

    def __init__(
        self,
        directory: Path,
        seed: int,
        start: int = 0,
        environment: Mapping[str, str] | None = None,
        *,
        secure: bool = False,
    ) -> None:
        """`seed` and `start` (microseconds) are those of the load. `secure`: Kafka has passwords and ACLs."""
        directory.mkdir(parents=True, exist_ok=True)
        self.receiver = Receiver()
        sinks = directory / "alerts.yaml"
        sinks.write_text(f"sinks:\n  - {{kind: webhook, url: '{self.receiver.url}'}}\n")
        spec = FleetSpec(
            directory / "fleet",
            [EdgeSpec("edge")],
            partitions=2,
            environment=dict(environment or {}),
            alerts=sinks,
            secure=secure,
        )
        self.fleet = Fleet(spec, lambda _: None)
        self.load = Load(seed, start)
        self.counted: WindowVerdict | None = None
        self.crashed: list[str] = []  # services that ended by a signal that the test didn't send

    def start(self) -> None:
        """Start all processes, and apply the streams and alerts."""
        self.fleet.start({"all.sql": STREAMS + ALERTS})
        self.load.url = self.fleet.http_sources["edge"]

    def begin(self) -> None:
        """Post the first readings, and wait until the joiner has read them."""
        self.load.until(self.load.second + 2 * MARGIN)
        self.wait("the first event seconds", lambda: self.passed(self.load.second - MARGIN))

    def close(self) -> dict[str, int]:
        """Stop everything; returns the exit codes of the services."""
        self.load.end()
        try:
            return self.fleet.stop()
        finally:
            self.receiver.close()

    def kill(self, name: str) -> None:
        """SIGKILL to all processes of a service, then start it again. Call it in the thread that called
        `start`: a service ends with the thread that started it.
        """
        self.fleet.processes[name].kill()
        self.fleet.processes[name].start()

    def revive(self) -> list[str]:
        """Start the services that have ended by themselves, as systemd does; returns their names."""
        ended = []
        while (name := self.fleet.ended()) is not None:
            if (code := self.fleet.processes[name].exit_code() or 0) < 0:
                self.crashed.append(f"{name}: signal {-code}")
            self.fleet.processes[name].start()
            ended.append(name)
        return ended

    def wait(self, what: str, condition: Callable[[], object], seconds: float = PATIENCE) -> None:
        """Wait until something is true, and meanwhile start services that end."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"{what}: not within {seconds:g} s"
            self.revive()
            time.sleep(0.5)

    def records(self, topic: str) -> list[Any]:
        """The JSON values in a topic."""
        with TopicReader(self.fleet.kafka_settings().client_config(), [topic]) as reader:
            return [orjson.loads(record.value) for record in reader.snapshot() if record.value is not None]

    def passed(self, second: int) -> bool:
        """True if all frontiers of the joiner are past that event second."""
        with TopicReader(self.fleet.kafka_settings().client_config(), [FRONTIERS]) as reader:
            records = [record for record in reader.snapshot() if record.value is not None]
        latest: dict[int, Frontier] = {}
        for one in records:
            with suppress(ValueError):  # an attack wrote it, and the services skip it, too
                found = read_frontier(one.key, one.value or b"")
                latest[found.partition] = found
        states = [state for record in latest.values() for state in record.topics.values()]
        least = self.load.start + second * SECOND
        return bool(states) and all(s.frontier is not None and s.frontier > least for s in states)

    def finish(self) -> int:
        """Post the closing readings, and wait until the joiner's frontiers have passed all others. Returns
        the event time that they have passed, in microseconds.
        """
        end = self.load.second
        self.load.close(end + 3_600)
        self.wait("frontiers behind all readings", lambda: self.passed(end + 3_500))
        return self.load.start + (end + 3_500) * SECOND

    def outcome(self, wanted: Expected | None = None) -> Outcome:
        """The comparison of all alarms with those of DuckDB."""
        return compare((wanted or expected(self.load.posted)).alarms, self.records(ALARMS))

    def windows(self, passed: int) -> WindowVerdict:
        """The comparison of the rows of all windows until `passed` with the readings."""
        accepted, unsure = (
            [(str(station), ts) for station, ts, _ in rows["air"] if station < WINDOWED]
            for rows in (self.load.posted, self.load.unsure)
        )
        assert count_cuts(self.fleet.kafka_settings().client_config()), "edges send partial aggregates"
        return judge_windows(accepted, unsure, self.records(ALARMS), passed)

    def check(self) -> Outcome:
        """Finish, and assert that no alarm and no closed episode is missed, extra or doubled, that each
        window counts each accepted reading once, that the webhook got each closed episode, none of them with
        two identities, and that no service has crashed.
        """
        passed = self.finish()
        assert not self.crashed
        self.counted = windows = self.windows(passed)
        assert windows.right, windows
        wanted = expected(self.load.posted)
        assert min(map(len, wanted.alarms.values())) > 20, "there must be something to miss"
        found = self.outcome(wanted)
        assert found.right, found
        right = Counter(wanted.episodes)
        self.wait("episodes", lambda: closed_episodes(self.records(EPISODES)) == right, 120)
        self.wait("notifications", lambda: closed_episodes(self.notified()) == right, 120)
        assert closed_episodes(self.records(EPISODES)) == right
        return found

    def notified(self) -> list[Any]:
        """The bodies of the notifications that the webhook got."""
        return [body for _, _, body in self.receiver.posted]

    def said(self, what: str, outcome: Outcome) -> None:
        """Print the figures of one fault."""
        readings = sum(map(len, self.load.posted.values()))
        print(
            f"\n{what}: {readings:,} readings, {self.load.repeated} requests repeated, {outcome}, "
            f"{self.counted}"
        )


@contextmanager
def loaded_fleet(
    directory: Path, seed: int, start: int = 0, environment: Mapping[str, str] | None = None
) -> Iterator[LoadedFleet]:
    """A running fleet, stopped at the end of the block. Without a failure every service must end with 0."""
    made = LoadedFleet(directory, seed, start, environment)
    try:
        made.start()
        yield made
    except BaseException:
        made.close()
        raise
    codes = made.close()
    assert codes == dict.fromkeys(codes, 0)
