"""A shard whose series keep the commit back, while its source is silent and no plan lists the shard."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import orjson
import pytest
from tests.unit.edge.plans import TEMP, air, entry, plan, topic

from tamis.declarations.watches import NamedPattern, Watch
from tamis.expressions.nodes import Call, Type
from tamis.messaging.records import Ack
from tamis.plan.model import Plan, StreamColumn
from tamis.telemetry.metrics import Metrics
from tamis_edge.core.shard_run import ShardRun
from tamis_edge.shards.worker import Worker
from tamis_edge.source_fields import FieldMap
from tamis_edge.sources.journal_shard import JournalShard
from tamis_edge.storage.journal import Journal

SHARD = "air:e/http"
SECOND = 1_000_000
MAX_STALL = 60 * SECOND
WATCH = Watch(TEMP, "rise", (NamedPattern("rise", (0.0, 1.0, 3.0, 4.0)),), 0.1)


class Broker:
    """A publisher whose records are safe at once."""

    room = ready = True
    stuck = False

    def __init__(self) -> None:
        self.values: list[dict[str, Any]] = []
        self.acks: list[Ack] = []

    def send(self, run: ShardRun, movable: bool) -> None:
        while run.out:
            record = run.out.popleft()
            self.values.append(orjson.loads(record.value))
            run.safe(record.token)

    def report(self, topic: str, key: bytes, value: bytes) -> bool:
        if topic == "tamis.acks":
            self.acks.append(Ack.from_bytes(value))
        return True


class Shard:
    """A worker of an HTTP shard, its journal, and a clock that the test moves."""

    def __init__(self, directory: Path) -> None:
        self.journal, self.broker, self.now = Journal(directory / "j.db", 10**6), Broker(), 1_000 * SECOND
        self.source = JournalShard(
            self.journal, stream="air", edge="e", source="http", topic="/", fields=FieldMap(), declared=True
        )
        self.restart()

    def take_every_stream(self) -> None:
        """The configuration of the edge doesn't name the stream."""
        self.source.declared = False

    def restart(self) -> None:
        """Another process of the edge."""
        self.worker = Worker(self.source, "e", cast(Any, self.broker), Metrics("edge"))

    def post(self, *readings: tuple[int, float]) -> None:
        lines = [orjson.dumps({"station": "a", "ts": ts, "temp": temp}) for ts, temp in readings]
        self.journal.append(SHARD, lines, self.now).result()

    def turns(self, found: Plan, seconds: int) -> Ack:
        """Turns of the loop, one a second; returns the last acknowledgement."""
        for _ in range(seconds):
            self.now += SECOND
            self.worker.obey(found, True, self.now)
            self.worker.read(100, self.now)
            self.worker.settle(self.now)
            self.worker.commit(self.now, at_once=True)
            until = time.monotonic() + 10
            while self.worker.committing and time.monotonic() < until:
                time.sleep(0.001)
                self.worker.commit(self.now)
            self.worker.report(self.now)
        return self.broker.acks[-1]


@pytest.fixture
def shard(tmp_path: Path) -> Iterator[Shard]:
    found = Shard(tmp_path)
    yield found
    found.journal.close()


def watching(version: int, since: int | None) -> Plan:
    """A plan that compares air with a pattern, and lists the shard since a version."""
    similar = Call("not", (Call("is_null", (WATCH.distance,), Type.BOOLEAN),), Type.BOOLEAN)
    base = air([], max_stall=MAX_STALL)
    added = tuple(StreamColumn(column.name, column.type, False, None) for column in WATCH.columns)
    watched = replace(
        base,
        name="air_similar",
        columns=(*base.columns, *added),
        topics=(topic([entry(0, filter=similar)], "tamis.stream.air_similar.1"),),
        base="air",
        series_key=("station",),
        watches=(WATCH,),
    )
    found = plan(base, [SHARD], version)
    return replace(found, streams=(base, watched), since={SHARD: since} if since else {})


def test_readings_that_series_need_are_no_sign_of_life(shard: Shard) -> None:
    shard.post((10, 7.0), (20, 0.0), (30, 1.0), (40, 3.0))
    shard.turns(watching(1, since=1), 5)
    commit, _ = shard.source.committed()
    assert (commit.done, commit.decided, commit.read) == (0, 4, 4)
    ack = shard.turns(watching(2, since=None), 200)
    assert (ack.state, shard.worker.run) == ("waiting", None)
    # The registry would list the shard again below `max_stall`.
    quiet = [one.quiet for one in shard.broker.acks if one.plan == 2]
    assert quiet == sorted(quiet)
    assert quiet[-1] > 3 * MAX_STALL
    shard.post((50, 4.0))
    assert shard.turns(watching(2, since=None), 3).quiet == 0
    shard.turns(watching(3, since=3), 5)
    # The window of the new reading began before the shard fell silent.
    matches = [value["ts"] for value in shard.broker.values if "temp" in value]
    assert matches == [50]
    assert shard.turns(watching(4, since=None), 200).quiet > 3 * MAX_STALL


def test_a_restarted_edge_says_whether_a_shard_that_is_gone_has_a_reading(shard: Shard) -> None:
    shard.post((10, 7.0), (20, 0.0))
    assert shard.turns(watching(1, since=1), 5).unread is None
    assert shard.turns(watching(2, since=None), 3).unread is False
    shard.restart()
    ack = shard.turns(watching(2, since=None), 3)
    assert (ack.state, ack.unread) == ("waiting", False)
    shard.post((30, 1.0))
    assert shard.turns(watching(2, since=None), 3).unread is True
    shard.restart()
    assert shard.turns(watching(2, since=None), 3).unread is True
    shard.turns(watching(3, since=3), 5)
    commit, _ = shard.source.committed()
    assert commit.decided == 3


def test_a_shard_that_the_configuration_does_not_name_is_unused_until_its_first_reading(shard: Shard) -> None:
    assert shard.turns(watching(1, since=None), 2).unused is False
    shard.take_every_stream()
    assert shard.turns(watching(1, since=None), 2).unused is True
    assert shard.turns(watching(1, since=1), 3).unused is True
    shard.post((10, 7.0))
    assert shard.turns(watching(1, since=1), 3).unused is False
    shard.restart()
    assert shard.turns(watching(2, since=None), 3).unused is False


def test_a_silent_shard_says_whether_it_ever_had_a_reading(shard: Shard) -> None:
    shard.turns(watching(1, since=1), 5)
    assert shard.turns(watching(2, since=None), 3).tuples == {}
    shard.post((10, 7.0))
    shard.turns(watching(3, since=3), 5)
    assert shard.turns(watching(4, since=None), 3).tuples is None


def test_a_journal_that_is_half_full_keeps_no_readings_for_series(shard: Shard) -> None:
    shard.post((10, 7.0), (20, 0.0), (30, 1.0), (40, 3.0))
    shard.turns(watching(1, since=1), 5)
    assert shard.journal.rows(SHARD) == 4
    shard.worker.set_pressure(0.0, 0.5)
    shard.turns(watching(1, since=1), 1)
    assert shard.journal.rows(SHARD) == 0
    shard.post((50, 4.0))
    shard.turns(watching(1, since=1), 2)
    assert [value["ts"] for value in shard.broker.values if "temp" in value] == [50]
    shard.worker.set_pressure(0.0, 0.4)
    shard.turns(watching(1, since=1), 1)
    assert shard.worker.run is not None
    assert shard.worker.run.keep_series
