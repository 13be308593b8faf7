"""The edge's loop, without Kafka: when it hurries, and what ends it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, cast

import orjson
import pytest
from tests.unit.edge.plans import air, entry, plan, topic

from tamis.settings import KafkaSettings
from tamis.telemetry.metrics import Metrics
from tamis.telemetry.threads import DeadThreadError
from tamis_edge.core.commit import Commit
from tamis_edge.core.records import Record
from tamis_edge.decode.decoder import Decoder
from tamis_edge.edge import Edge
from tamis_edge.settings import EdgeConfig, Http, HttpSource
from tamis_edge.source_fields import FieldMap
from tamis_edge.sources.base import Payloads, payloads
from tamis_edge.storage.journal import Journal
from tamis_edge.storage.spool import Spool

ROWS = 100


class Partition:
    """A Kafka partition, as the loop sees it, of `left` readings; each poll gives at most `at_once`."""

    topic, movable, replayed, declared, caught_up, ended = "raw", False, False, True, False, False
    stream, fields = "air", FieldMap()

    def __init__(self, number: int, left: int, at_once: int) -> None:
        self.name, self.partition = f"air:raw/{number}", number
        self.left, self._at_once, self._next = left, at_once, 0

    def committed(self) -> tuple[Commit, bool]:
        return Commit(), False

    def confirm_end(self) -> None:
        """It never tells its end."""

    def read_through(self, next_offset: int) -> bool:
        return False

    def decode_by(self, decoder: Decoder) -> None:
        """Its readings are decoded already."""

    def start(self, offset: int, decoder: Decoder) -> None:
        self._next = offset

    def commit(self, commit: Commit, final: bool) -> Future[None]:
        return Future()

    def poll(self, limit: int, now: int) -> Payloads | None:
        n = min(limit, self._at_once, self.left)
        if n == 0:
            return None
        self.left -= n
        first, self._next = self._next, self._next + n
        return payloads(first, now, [orjson.dumps({"station": "a", "ts": 1, "temp": 1.0})] * n)


class Partitions:
    """A source of several."""

    def __init__(self, shards: list[Partition], behind: Callable[[], bool]) -> None:
        self._shards, self._behind = shards, behind

    @property
    def behind(self) -> bool:
        return self._behind()

    def shards(self) -> list[Partition]:
        return self._shards

    def troubles(self) -> dict[str, str | None]:
        return {}

    def check(self) -> None: ...
    def stop(self) -> None: ...
    def close(self) -> None: ...


@pytest.fixture
def edge(tmp_path: Path) -> Iterator[Edge]:
    """An edge that can't reach Kafka, with a plan on its disk."""
    config = EdgeConfig(
        http=Http(port=0),
        batch={"rows": ROWS},  # type: ignore[arg-type]
        sources=[HttpSource(name="http", kind="http")],
    )
    found = Edge(config, tmp_path, KafkaSettings(bootstrap="127.0.0.1:1"), Metrics("edge"))
    opened = found.sources
    shards = [f"air:raw/{i}" for i in range(4)]
    found.plans._plan = plan(air([topic([entry(0)])]), shards)
    yield found
    for source in opened:
        source.stop()
    for part in (found.publisher, found.journal, found.spool):
        part.close()


def test_what_comes_again_is_not_sent_from_the_spool_as_well(tmp_path: Path) -> None:
    journal, spool = Journal(tmp_path / "journal.db", 10**6), Spool(tmp_path / "spool.db", 10**6)
    for name in ("air:edge/http", "air:edge/gone"):
        journal.append(name, [b"{}"] * 4, 0).result()
        journal.commit(name, Commit(2, version=1, born=100)).result()
        spool.append(name, [Record(0, "t", 0, None, b"%d" % i, 0) for i in range(4)], range(100, 104))
    journal.close()
    spool.close()
    config = EdgeConfig(http=Http(port=0), sources=[HttpSource(name="http", kind="http")])
    edge = Edge(config, tmp_path, KafkaSettings(bootstrap="127.0.0.1:1"), Metrics("edge"))
    # Nothing reads what has gone from the configuration.
    assert [record.value for record in edge.spool.take(9, 10**6)] == [b"0", b"1", b"0", b"1", b"2", b"3"]
    for source in edge.sources:
        source.stop()
    for part in (edge.publisher, edge.journal, edge.spool):
        part.close()


def with_partitions(edge: Edge, left: int, at_once: int) -> list[Partition]:
    shards = [Partition(i, left, at_once) for i in range(4)]
    edge.sources = [cast(Any, Partitions(shards, lambda: any(shard.left for shard in shards)))]
    return shards


def test_several_partitions_make_a_micro_batch_together(edge: Edge) -> None:
    with_partitions(edge, left=ROWS // 4, at_once=ROWS)
    assert edge.turn()
    assert not edge.turn()


def test_there_is_no_pause_while_a_source_has_more_at_hand(edge: Edge) -> None:
    shards = with_partitions(edge, left=3, at_once=1)
    assert [edge.turn() for _ in range(4)] == [True, True, False, False]
    assert [shard.left for shard in shards] == [0] * 4
    # What waits for a plan is no reason to hurry.
    edge.sources = [cast(Any, Partitions([], lambda: True))]
    assert not edge.turn()


def test_a_dead_part_ends_the_loop(edge: Edge) -> None:
    edge.turn()
    edge.journal._shard = lambda *_: 1 // 0  # type: ignore[method-assign]
    edge.journal.append("a", [b"1"], 0).exception(10)
    edge.journal._thread.join(10)
    with pytest.raises(DeadThreadError, match="'journal' died of ZeroDivisionError"):
        edge.turn()


def test_sources_close_at_the_same_time(edge: Edge) -> None:
    # Each waits for the other one, so that one after the other would never end.
    both = threading.Barrier(2)

    class Slow(Partitions):
        def close(self) -> None:
            both.wait(5)

    edge.sources = [cast(Any, Slow([], bool)) for _ in range(2)]
    edge._close_sources()
    assert not both.broken
