"""One shard's run, case by case; its behaviour under random schedules is in test_schedules.py."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import orjson
import pytest
from tests.unit.edge.plans import AIR, TEMP, TOPIC, air, compare, entry, plan, topic

from tamis.declarations.definitions import Window
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.messaging.dead_letters import DeadLetter, Reason
from tamis.messaging.records import END_OF_TIME
from tamis.operators.time_join import key_table
from tamis.operators.time_join.key_table import MANY
from tamis.plan.model import Plan
from tamis_edge.core.commit import Commit
from tamis_edge.core.outbox import SentProgress
from tamis_edge.core.rows import Batch
from tamis_edge.core.shard_run import ShardRun

SHARD = "air:e/http"
TYPES = {column.name: column.type for column in AIR}


def batch(first: int, *rows: tuple[Any, ...], columns: tuple[str, ...] = ("station", "ts", "temp")) -> Batch:
    named = zip(columns, zip(*rows, strict=True), strict=True)
    vectors = {name: Vector.from_list(list(values), TYPES[name]) for name, values in named}
    n = len(rows)
    return Batch(vectors, vectors["ts"].data, np.arange(first, first + n), np.full(n, 5_000))


def started(found: Plan, commit: Commit | None = None) -> ShardRun:
    return ShardRun(SHARD, "air", commit or Commit(), found)


def sent(run: ShardRun) -> list[tuple[str, int, dict[str, Any]]]:
    """Everything in the run's queue, taken out and safe."""
    found = []
    while run.out:
        record = run.out.popleft()
        run.safe(record.token)
        found.append((record.topic, record.partition, orjson.loads(record.value)))
    return found


def temps(run: ShardRun) -> list[float]:
    return [value["temp"] for _, _, value in sent(run) if "temp" in value]


def durable(run: ShardRun, now: int = 0) -> Commit:
    commit = run.commit()
    assert commit is not None
    run.committed(now)
    return commit


def test_a_plan_that_does_not_list_the_shard_or_is_older_than_its_commit_is_refused() -> None:
    found = plan(air([topic([entry(10)])]), [SHARD], 3)
    with pytest.raises(ValueError, match="can't take up"):
        ShardRun("air:other/http", "air", Commit(), found)
    with pytest.raises(ValueError, match="can't take up"):
        started(found, Commit(version=4))
    assert started(found, Commit(9, 41, 3, 7)).activation == 7
    assert started(found, Commit(9, 41, 2, 7)).activation == 42


def test_no_tuple_is_held_for_less_than_nothing() -> None:
    """They have come at 5 ms: behind the begin of the turn, and before it."""
    run = started(plan(air([topic([entry(0)])]), [SHARD]))
    run.take(batch(0, ("a", 1, 5.0)), 0)
    run.take(batch(1, ("a", 2, 3.0)), 9_000)
    assert np.concatenate(run.take_counts().holds).tolist() == [0, 4_000]


def test_what_is_bracketed_is_dropped_and_its_offset_done() -> None:
    run = started(plan(air([topic([entry(10)])]), [SHARD]))
    run.take(batch(0, ("a", 1, 5.0), ("a", 2, 3.0), ("a", 3, 4.0)), 0)
    assert temps(run) == [5.0, 3.0]
    commit = durable(run)
    assert (commit.done, commit.high, run.held) == (2, 3, 1)  # a greater and a lesser one may still follow
    run.take(batch(3, ("a", 4, 6.0), ("a", 5, 1.0)), 0)
    assert temps(run) == [6.0, 1.0]
    assert durable(run).done == 5
    assert run.held + run.unsafe == 0
    counts = run.take_counts()
    assert (counts.published, counts.omitted) == (4, 1)
    run.take(batch(5, ("a", 6, 7.0)), 0)
    expected = {"published": 5, "omitted": 1, "filtered": 0, "late": 0, "dead": 0, "aggregated": 0}
    assert run.totals == expected and run.take_counts().published == 1 and run.totals == expected


def test_an_offset_is_not_done_before_its_record_is_safe() -> None:
    run = started(plan(air([topic([entry(0)])]), [SHARD]))
    run.take(batch(0, ("a", 1, 5.0), ("b", 2, 3.0)), 0)
    first, second = list(run.out)
    run.safe(second.token)
    assert durable(run).done == 0
    run.safe(first.token)
    assert durable(run).done == 2
    run.add_dead_letter(DeadLetter(b"x", "edge", "t", 0, 2, Reason.UNDECODABLE, "why"), 1)
    assert durable(run).done == 2
    run.safe(run.out[-1].token)
    assert durable(run).done == 3


def test_late_tuples_are_forwarded_marked_and_decide_nothing() -> None:
    run = started(plan(air([topic([entry(10, filter=compare(">", TEMP, 0))])], delay=5), [SHARD]))
    run.take(batch(0, ("a", 100, 5.0), ("a", 95, 4.0), ("a", 94, 9.0), ("a", 90, -1.0)), 0)
    found = [value for _, _, value in sent(run)]
    assert [(v["temp"], v["_"].get("late")) for v in found] == [(9.0, True), (5.0, None), (4.0, None)]
    counts = run.take_counts()
    assert (counts.late, counts.published, counts.filtered) == (1, 2, 1)


def test_a_tuple_without_a_partition_key_joins_nothing_and_one_without_a_value_is_sent_at_once() -> None:
    run = started(plan(air([topic([entry(10)])]), [SHARD]))
    run.take(batch(0, (None, 1, 5.0), ("a", 2, None), ("a", 3, 1.0), ("a", 4, None)), 0)
    assert [v["ts"] for _, _, v in sent(run)] == [2, 4, 3]
    assert run.take_counts().filtered == 1


def test_integers_that_are_not_exact_as_doubles_are_sent_at_once() -> None:
    from tamis.expressions.nodes import Column

    columns = ("station", "ts", "n")
    number = entry(10, value=Column("", "n", Type.BIGINT))
    run = started(plan(air([topic([number], columns=("n",))], columns=columns), [SHARD]))
    rows = [("a", t, n) for t, n in ((1, 2**53 + 2), (2, 2**53 + 1), (3, 2**53 + 2))]
    run.take(batch(0, *rows, columns=columns), 0)
    assert [v["n"] for _, _, v in sent(run)] == [2**53 + 2, 2**53 + 1, 2**53 + 2]


def test_a_deadline_publishes_what_still_waits() -> None:
    run = started(plan(air([topic([entry(1000, max_delay=50)])]), [SHARD]))
    run.take(batch(0, ("a", 1, 5.0), ("a", 2, 3.0), ("a", 3, 4.0)), 100)
    assert temps(run) == [5.0, 3.0]
    assert run.next_deadline() == 150
    run.settle(149)
    assert temps(run) == []
    run.settle(150)
    assert temps(run) == [4.0]


def test_progress_is_the_oldest_held_tuple_of_a_partition_and_comes_behind_what_it_covers() -> None:
    run = started(plan(air([topic([entry(1000)])]), [SHARD]))
    durable(run)
    # Before the first tuple no event time is known, but the plan is.
    assert [value["_"].get("event_time") for _, _, value in sent(run)] == [None, None]
    run.take(batch(0, ("a", 1, 5.0), ("a", 2, 3.0), ("a", 3, 4.0), ("b", 50, 1.0)), 0)
    keys = run._served.topics[TOPIC].keys
    partitions = {key: keys.partitions(np.array([i]))[0] for i, key in enumerate("ab")}
    durable(run)
    found = sent(run)
    kinds = [value["_"].get("kind") for _, _, value in found]
    assert kinds == [None, None, None, "progress", "progress"]
    progress = {p: value["_"]["event_time"] for _, p, value in found[3:]}
    assert progress == {p: 3 if p == partitions["a"] else 50 for p in (0, 1)}
    durable(run)
    assert sent(run) == []  # said already
    durable(run, 31_000_000)
    assert len(sent(run)) == 2  # and said again now and then
    run.take(batch(4, ("b", 60, 2.0)), 0)
    assert run.commit() is not None
    assert run.commit() is None
    run.commit_failed()
    assert [v["temp"] for _, _, v in sent(run) if "temp" in v] == [2.0]


def progress_of(run: ShardRun) -> set[int | None]:
    return {value["_"].get("event_time") for _, _, value in sent(run) if value["_"].get("kind") == "progress"}


def test_progress_goes_on_after_a_restart_that_reads_nothing_again() -> None:
    served = plan(air([topic([entry(0)])], delay=2), [SHARD])
    run = started(served)
    run.take(batch(0, ("a", 10, 5.0), ("a", 12, 4.0)), 0)
    # Its records are safe, but the edge ends before the progress of this commit was sent.
    sent(run)
    moved = started(served, durable(run))
    assert moved.watermark == 10
    durable(moved)
    assert progress_of(moved) == {10}
    moved.take(batch(2, ("a", 9, 3.0), ("a", 11, 2.0)), 0)
    assert moved.totals["late"] == 1


def test_progress_waits_for_what_is_read_again_after_a_restart() -> None:
    served = plan(air([topic([entry(0)])], delay=2), [SHARD])
    run = started(served)
    run.take(batch(0, ("a", 10, 5.0), ("a", 12, 4.0)), 0)
    found = durable(run)  # nothing of it is safe
    assert (found.done, found.read) == (0, 2)
    again = started(served, found)
    again.take(batch(0, ("a", 10, 5.0)), 0)
    sent(again)
    # The next reading comes again, too: it must not be late behind itself.
    once_more = started(served, durable(again))
    assert once_more.watermark < 0
    durable(once_more)
    assert progress_of(once_more) == {None}


def test_an_entry_that_ends_publishes_what_it_holds_under_the_old_plan() -> None:
    old = entry(1000)
    run = started(plan(air([topic([old])]), [SHARD]))
    run.take(batch(0, ("a", 1, 5.0), ("a", 2, 3.0), ("a", 3, 4.0)), 0)
    sent(run)
    run.obey(plan(air([topic([old, entry(5, 2)])]), [SHARD], 2))
    assert (temps(run), run.version, run.activation) == ([], 2, 4)
    run.obey(plan(air([topic([entry(5, 2)])]), [SHARD], 3))
    ((_, _, value),) = sent(run)
    assert (value["temp"], value["_"]["plan"]) == (4.0, 2)
    acknowledged = [run.acknowledged]
    durable(run)
    assert [*acknowledged, run.acknowledged] == [None, (3, 4)]
    # The entry that came with version 2 has seen nothing yet: it does not inherit brackets.
    run.take(batch(3, ("a", 4, 4.5)), 0)
    assert temps(run) == [4.5]


def test_two_topics_of_a_stream_keep_their_own() -> None:
    hot = topic([entry(0, filter=compare(">", TEMP, 4))], "tamis.stream.air.2", columns=(), partition_key=())
    run = started(plan(air([topic([entry(1000)]), hot]), [SHARD]))
    run.take(batch(0, ("a", 1, 5.0), ("a", 2, 3.0), ("a", 3, 4.5)), 0)
    found = [(name, value) for name, _, value in sent(run)]
    assert [value["ts"] for name, value in found if name == TOPIC] == [1, 2]
    assert [value for name, value in found if name != TOPIC] == [
        {"ts": 1, "_": {"shard": SHARD, "plan": 1, "activation": 0}},
        {"ts": 3, "_": {"shard": SHARD, "plan": 1, "activation": 0}},
    ]
    assert durable(run).done == 2  # the third is still undecided in the first topic
    assert run.take_counts().published == 3
    # A topic that goes publishes what it holds.
    run.obey(plan(air([hot]), [SHARD], 2))
    assert [(name, value["ts"]) for name, _, value in sent(run) if "ts" in value] == [(TOPIC, 3)]


def test_what_one_entry_publishes_no_other_holds() -> None:
    both = [entry(1000), entry(0, filter=compare(">", TEMP, 4))]
    run = started(plan(air([topic(both)]), [SHARD]))
    run.take(batch(0, ("a", 1, 9.0), ("a", 2, 3.0), ("a", 3, 4.5)), 0)
    assert sorted(temps(run)) == [3.0, 4.5, 9.0]
    assert run.held == 0


def test_another_stream_of_the_same_name_starts_anew() -> None:
    run = started(plan(air([topic([entry(1000)])]), [SHARD]))
    run.take(batch(0, ("a", 1, 5.0), ("a", 2, 3.0), ("a", 3, 4.0)), 0)
    sent(run)
    columns = ("station", "ts", "temp", "n")
    run.obey(plan(air([topic([entry(1000)])], columns=columns), [SHARD], 2))
    assert temps(run) == [4.0]
    run.take(batch(3, ("a", 4, 1.0, 7), columns=columns), 0)
    assert temps(run) == [1.0]


def test_an_idle_source_follows_the_clock_where_the_stream_asks_for_it() -> None:
    for timeout in (None, 10):
        run = started(plan(air([topic([entry(1000)])], delay=2, idle_timeout=timeout), [SHARD]))
        run.take(batch(0, ("a", 1, 5.0), ("a", 2, 3.0), ("a", 3, 4.0)), 0)
        sent(run)
        run.idle(5_000)
        run.settle(5_000)
        assert temps(run) == ([] if timeout is None else [4.0])
        assert run.watermark == (1 if timeout is None else 4_988)


def test_the_end_of_a_source_is_progress_and_a_final_record_for_each_plan() -> None:
    found = plan(air([topic([entry(1000)])]), [SHARD])
    run = started(found)
    run.take(batch(0, ("a", 1, 5.0), ("a", 2, 3.0), ("a", 3, 4.0)), 0)
    run.finish()
    run.settle(0)
    durable(run)
    assert {v["_"].get("kind") for _, _, v in sent(run)} == {None, "progress"}  # not safe yet at that commit
    assert run.final_version == 0
    assert durable(run).done == 3
    ((_, _, first), *_) = records = sent(run)
    assert first["_"]["kind"] == "final"
    assert sorted(p for _, p, _ in records) == [0, 1]
    assert run.final_version == 1
    durable(run)
    assert sent(run) == []
    run.obey(plan(air([topic([entry(1000)])]), [SHARD], 2))
    durable(run)
    again = [(v["_"]["kind"], v["_"].get("event_time")) for _, _, v in sent(run)]
    assert again == [("progress", END_OF_TIME)] * 2 + [("final", None)] * 2
    assert run.final_version == 2


def test_a_record_that_was_not_sent_is_made_again() -> None:
    run = started(plan(air([topic([entry(0)])]), [SHARD]))
    run.take(batch(0, ("a", 1, 5.0)), 0)
    durable(run)
    tuple_, *progress = run.out
    assert run.carries_tuple(tuple_.token)
    assert not any(run.carries_tuple(record.token) for record in progress)
    for record in progress:
        run.retract(record.token)
    run.out.clear()
    durable(run)
    assert len(run.out) == len(progress) == 2


def test_commits_travel_as_metadata() -> None:
    from tamis.errors import InputError

    commit = Commit(7, 1_700_000, 3, 1_600_000, 1_500_000)
    assert Commit.from_metadata(7, commit.to_metadata()) == commit
    assert Commit.from_metadata(7, "") == Commit(7)
    with pytest.raises(InputError, match="consumer group of its own"):
        Commit.from_metadata(7, "someone else's")


def test_keys_that_nothing_remembers_are_forgotten() -> None:
    by_site = entry(10, omission_key=("station", "temp"))
    run = started(plan(air([topic([entry(10), by_site])]), [SHARD]))
    offset = 0
    for start in range(0, 10 * MANY, MANY):
        rows = [(f"s{start + i}", start + i, float(i)) for i in range(MANY)]
        run.take(batch(offset, *rows), 0)
        offset += MANY
        sent(run)
        durable(run)
    tables = run._served.topics[TOPIC]._tables.values()
    assert all(len(table) <= 2 * MANY for table in tables)
    assert len(run._served.topics[TOPIC].keys.encoded) <= 3 * MANY


@pytest.mark.parametrize("seed", range(20))
def test_forgetting_keys_changes_nothing_that_is_sent(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    r = random.Random(seed)
    window = Window(3, 9) if seed % 3 == 0 else None
    entries = [
        entry(r.choice([4, 10]), filter=compare(">", TEMP, 2), max_delay=r.choice([None, 9])),
        entry(9 if window else 6, omission_key=("station", "temp"), window=window),
    ]
    batches = []
    time = offset = 0
    for _ in range(150):
        time += r.choice([0, 1, 5])
        rows: list[tuple[Any, ...]] = [
            (f"s{time // 6 + r.randint(0, 4)}", time + r.randint(0, 3), float(r.randint(0, 5)))
        ]
        rows += [(None if r.random() < 0.1 else "a", time, 1.0)] * r.randint(0, 2)
        batches.append(batch(offset, *rows))
        offset += len(rows)

    def play(many: int) -> tuple[list[tuple[str, int, dict[str, Any]]], int]:
        monkeypatch.setattr(key_table, "MANY", many)
        run = started(plan(air([topic(entries)], delay=3), [SHARD]))
        found = []
        for now, some in enumerate(batches):
            run.take(some, now)
            found += sent(run)
            durable(run, now)
            found += sent(run)
        return found, len(run._served.topics[TOPIC].keys)

    everything, known = play(10**9)
    again, fewer = play(1)
    assert again == everything
    assert fewer < known / 2


def test_progress_waits_for_its_time_except_the_first_of_a_plan_and_the_last() -> None:
    second = 1_000_000
    found = plan(air([topic([entry(0)])]), [SHARD])
    run = ShardRun(SHARD, "air", Commit(), found, progress_every=5 * second)

    def progress(now: int, number: int) -> set[int]:
        """Read one reading, commit, and return the event times of the progress that is sent."""
        run.take(batch(number, ("a", number * second, 30.0)), now)
        return {value["_"]["event_time"] for _, _, value in sent_by(now) if "kind" in value["_"]}

    def sent_by(now: int) -> list[tuple[str, int, dict[str, Any]]]:
        tuples = sent(run)
        durable(run, now)
        return tuples + sent(run)

    assert progress(10 * second, 0) == {0}
    assert progress(11 * second, 1) == progress(14 * second, 2) == set()
    assert progress(15 * second, 3) == {3 * second}
    # The same under another plan, and at the end of the source.
    run.obey(plan(air([topic([entry(0)])]), [SHARD], version=2), 16 * second)
    assert progress(16 * second, 4) == {4 * second}
    run.finish()
    run.settle(17 * second)
    last = [value["_"] for _, _, value in sent_by(17 * second)]
    assert [(one["kind"], one.get("event_time")) for one in last] == [
        *[("progress", END_OF_TIME)] * 2,
        *[("final", None)] * 2,
    ]


@pytest.mark.parametrize("every", [0, 20_000_000])
def test_progress_goes_on_when_the_clock_is_set_back(every: int) -> None:
    hour, sent_progress = 3_600_000_000, SentProgress(every)
    place = (TOPIC, 0)
    assert list(sent_progress.changed({place: 1}, 1, 5 * hour)) == [(*place, 1)]
    assert list(sent_progress.changed({place: 2}, 1, 4 * hour)) == [(*place, 2)]
    # A call without anything to send begins no wait.
    assert list(sent_progress.changed({place: 2}, 1, 4 * hour + every)) == []
    assert list(sent_progress.changed({place: 3}, 1, 4 * hour + every + 1)) == [(*place, 3)]


def test_a_shard_counts_the_keys_that_it_knows() -> None:
    run = started(plan(air([topic([entry(10)])]), [SHARD]))
    assert run.keys == {TOPIC: 0}
    run.take(batch(0, ("a", 1, 5.0), ("b", 2, 5.0)), 0)
    run.take(batch(2, ("a", 3, 5.0), (None, 4, 5.0), ("c", 5, 1.0)), 0)
    assert run.keys == {TOPIC: 3}
