"""The second phase under overload: what is shed is at random, counted, and never silent."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any, cast

import numpy as np
import orjson
import pytest
from tests.unit.edge.core.test_shard_run import SHARD, batch, durable
from tests.unit.edge.plans import air, entry, plan, topic

from tamis.messaging.partitioner import partition_of
from tamis.messaging.records import canonical_key
from tamis.telemetry.metrics import Metrics
from tamis_edge.core.commit import Commit
from tamis_edge.core.shard_run import ShardRun
from tamis_edge.core.shedding import Shedder, share_to_shed
from tamis_edge.decode.decoder import Decoder
from tamis_edge.publishing.publisher import Publisher
from tamis_edge.shards.worker import Worker
from tamis_edge.source_fields import FieldMap
from tamis_edge.sources.journal_shard import JournalShard
from tamis_edge.storage.journal import Journal

SECOND = 1_000_000
KEEP_ALL = plan(air([topic([entry(0)])]), [SHARD])


def started(share: float, seed: int = 1) -> ShardRun:
    shedder = Shedder(np.random.default_rng(seed))
    shedder.share = share
    return ShardRun(SHARD, "air", Commit(), KEEP_ALL, shedder)


def sent(run: ShardRun, safe: bool = True) -> list[tuple[int, dict[str, Any]]]:
    """Partition and value of what the run has sent."""
    found = []
    while run.out:
        record = run.out.popleft()
        found.append((record.partition, orjson.loads(record.value)))
        if safe:
            run.safe(record.token)
    return found


def spans(found: list[tuple[int, dict[str, Any]]]) -> list[tuple[int, list[int]]]:
    return [(partition, value["_"]["shed"]) for partition, value in found if "shed" in value["_"]]


def readings(run: ShardRun, first: int, times: range, keys: str = "a") -> None:
    run.take(batch(first, *((keys[t % len(keys)], t, 1.0) for t in times)), 0)


def test_more_is_shed_the_fuller_it_is() -> None:
    assert [share_to_shed(filled) for filled in (0, 0.5, 0.9, 1, 9)] == [0, 0, 1, 1, 1]
    assert share_to_shed(0.6) == pytest.approx(0.25)


def test_nothing_is_shed_without_overload_or_without_a_shedder() -> None:
    for run in (started(0.0), ShardRun(SHARD, "air", Commit(), KEEP_ALL)):
        readings(run, 0, range(1_000))
        assert len(sent(run)) == 1_000
        assert run.take_counts().shed == 0


def test_what_is_shed_is_a_share_at_random_and_the_same_for_the_same_seed() -> None:
    def ids(seed: int) -> set[int]:
        run = started(0.25, seed)
        readings(run, 0, range(4_000))
        found = {value["ts"] for _, value in sent(run) if "ts" in value}
        counts = run.take_counts()
        assert (counts.published, counts.shed) == (len(found), 4_000 - len(found))
        return found

    first = ids(1)
    assert ids(1) == first != ids(2)
    assert 2_850 < len(first) < 3_150
    by_quarter = Counter(t // 1_000 for t in first)
    assert all(650 < count < 850 for count in by_quarter.values())


def test_the_span_that_was_shed_goes_out_in_the_place_of_the_tuples() -> None:
    run = started(1.0)
    readings(run, 0, range(2 * SECOND + 5, 2 * SECOND + 9))
    found = sent(run)
    assert [value["_"]["kind"] for _, value in found] == ["progress"]
    assert spans(found) == [(found[0][0], [2 * SECOND, 3 * SECOND - 1])]
    assert "event_time" not in found[0][1]["_"]  # nothing is known before the first commit
    durable(run)
    sent(run)
    readings(run, 4, range(2 * SECOND + 20, 2 * SECOND + 25))
    assert sent(run) == []  # of this second it was said
    readings(run, 9, range(3 * SECOND - 1, 3 * SECOND + 1))
    ((_, value),) = sent(run)
    assert value["_"]["shed"] == [2 * SECOND, 4 * SECOND - 1]
    assert value["_"]["event_time"] == 2 * SECOND + 8
    assert run.take_counts().shed == 11


def test_each_output_partition_has_its_own_spans() -> None:
    run = started(1.0)
    readings(run, 0, range(10), keys="abcdefgh")
    assert sorted(spans(sent(run))) == [(0, [0, SECOND - 1]), (1, [0, SECOND - 1])]


def test_a_shed_tuple_is_not_done_before_its_span_is_safe() -> None:
    run = started(1.0)
    readings(run, 0, range(5))
    (record,) = run.out
    assert run.carries_tuple(record.token)  # the spool has to take it
    assert durable(run).done == 0
    # What is shed into the same span waits for the same record, also where its offset is lower.
    run._outbox.raw.unsafe[record.token] = 9
    readings(run, 5, range(1))
    assert run._outbox.raw.unsafe[record.token] == 5
    run.safe(record.token)
    assert durable(run).done == 6


def test_shedding_ends_with_the_overload() -> None:
    shedder = Shedder(np.random.default_rng(1))
    run = ShardRun(SHARD, "air", Commit(), KEEP_ALL, shedder)
    shedder.share = 1.0
    readings(run, 0, range(10))
    shedder.share = 0.0
    readings(run, 10, range(10, 20))
    assert [value["ts"] for _, value in sent(run) if "ts" in value] == list(range(10, 20))


@pytest.mark.parametrize("seed", range(40))
def test_whatever_crashes_no_tuple_is_gone_without_a_span(seed: int) -> None:
    r = random.Random(seed)
    log = [("abcdefgh"[i % 8], i * SECOND // 7 - r.choice([0, 0, 0, 3 * SECOND]), 1.0) for i in range(400)]
    shedder = Shedder(np.random.default_rng(seed))
    commit = Commit()
    told: list[tuple[int, list[int]]] = []
    there: set[tuple[int, int]] = set()
    run = ShardRun(SHARD, "air", commit, KEEP_ALL, shedder)
    while commit.done < len(log):
        step = r.randrange(10)
        if step == 0:
            run = ShardRun(SHARD, "air", commit, KEEP_ALL, shedder)  # what was on its way is lost
        elif step < 5:
            shedder.share = r.choice([0.0, 0.3, 1.0])
            some = log[run.next_offset : run.next_offset + r.randint(1, 20)]
            if some:
                run.take(batch(run.next_offset, *some), 0)
        elif step < 8:
            for _ in range(r.randint(0, len(run.out))):
                record = run.out.popleft()
                value = orjson.loads(record.value)
                run.safe(record.token)
                told += spans([(record.partition, value)])
                there |= {(record.partition, value["ts"])} if "ts" in value else set()
        else:
            commit = durable(run)
    by_key = {key: batch_partition(key) for key in "abcdefgh"}
    for key, ts, _ in log:
        partition = by_key[key]
        assert (partition, ts) in there or any(p == partition and a <= ts <= b for p, (a, b) in told)
    assert told and there


def batch_partition(key: str) -> int:
    return partition_of(canonical_key((key,)), KEEP_ALL.partitions)


def test_a_late_tuple_is_shed_and_told_as_well() -> None:
    run = started(1.0)
    readings(run, 0, range(9 * SECOND, 9 * SECOND + 1))
    readings(run, 1, range(2 * SECOND, 2 * SECOND + 1))
    assert [span for _, span in spans(sent(run))] == [
        [9 * SECOND, 10 * SECOND - 1],
        [2 * SECOND, 3 * SECOND - 1],
    ]
    assert run.take_counts().shed == 2


def test_a_full_journal_sheds_only_of_the_shard_that_does_not_keep_up(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.db", 1_000)
    shard = JournalShard(
        journal, stream="air", edge="e", source="http", topic="/", fields=FieldMap(), declared=True
    )
    shedder = Shedder(np.random.default_rng(1))
    worker = Worker(shard, "e", cast(Publisher, None), Metrics("edge"), shedder)
    journal.append(shard.name, [b"{}", b"{}"], 0).result()
    shard.start(0, Decoder(air([]), FieldMap()))
    shard.poll(1, 0)
    shares = []
    for spool, filled in ((0.0, 0.0), (0.0, 0.7), (0.8, 0.7)):
        worker.set_pressure(spool, filled)
        shares.append(shedder.share)
    shard.poll(9, 0)  # all that there is: what fills the journal is undecided, or another shard's
    worker.set_pressure(0.0, 0.7)
    shares.append(shedder.share)
    worker.set_pressure(0.7, 0.9)
    shares.append(shedder.share)
    assert shares == pytest.approx([0, 0.5, 0.75, 0, 0.5])
    journal.close()
