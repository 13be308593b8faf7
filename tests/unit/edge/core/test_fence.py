"""The fence before cuts take the place of tuples, at an edge whose fleet was upgraded."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import orjson
import pytest

from tamis.expressions.vectors import Vector
from tamis.plan.model import Plan
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of
from tamis_edge.core.commit import Commit
from tamis_edge.core.cuts.fence import Fence
from tamis_edge.core.rows import Batch
from tamis_edge.core.shard_run import ShardRun

SECOND = 1_000_000
BORN = 1_700_000_000 * SECOND
SQL = """
CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE, WATERMARK FOR ts AS ts);
CREATE ALERT mean AS SELECT window_end, k, avg(x) AS m
  FROM TUMBLE(air, ts, INTERVAL '1' MINUTE) GROUP BY window_end, k;
"""
CUTS = first_plan(catalog_of(SQL), shards={"air": "air"}, partitions=2)


def _with_topics(plan: Plan, only: str = "", **fields: Any) -> Plan:
    """A plan with these fields in all of its topics, or in one."""
    streams = [
        replace(
            stream,
            topics=tuple(
                replace(topic, **fields) if only in ("", topic.name) else topic for topic in stream.topics
            ),
        )
        for stream in plan.streams
    ]
    return replace(plan, streams=tuple(streams))


def _upgraded(after: Plan = CUTS) -> ShardRun:
    """An edge in the fleet after the upgrade, which has two readings as tuples."""
    run = ShardRun("air", "air", Commit(), _with_topics(after, partials=None), now=BORN)
    _read(run, 1, 2)
    _commit(run)
    run.safe(*(record.token for record in run.out))
    run.out.clear()
    run.obey(replace(after, version=2), BORN)
    return run


def _read(run: ShardRun, *seconds: int) -> None:
    times = np.array(seconds) * SECOND
    columns = {
        "k": Vector(np.full(len(seconds), "a", np.object_)),
        "ts": Vector(times),
        "x": Vector(np.ones(len(seconds))),
    }
    first = run.next_offset
    run.take(Batch(columns, times, np.arange(first, first + len(times)), times + BORN), BORN)


def _commit(run: ShardRun) -> Commit:
    commit = run.commit()
    assert commit is not None
    assert Commit.from_metadata(commit.done, commit.to_metadata()) == commit
    run.committed(BORN)
    return commit


def _send(run: ShardRun, *, safe: bool = True) -> list[dict[str, Any]]:
    """The envelopes of the records that Kafka takes."""
    sent = list(run.out)
    run.out.clear()
    if safe:
        run.safe(*(record.token for record in sent))
    return [orjson.loads(record.value)["_"] for record in sent]


def _kinds(envelopes: list[dict[str, Any]]) -> list[str]:
    return [envelope.get("kind", "tuple") for envelope in envelopes]


def test_cuts_begin_when_all_is_read_that_the_source_had_when_the_fence_stood() -> None:
    run = _upgraded()
    assert _commit(run).fence >= BORN
    fences = [envelope for envelope in _send(run, safe=False) if envelope.get("kind") == "fence"]
    assert len(fences) == 2, "one for each partition"
    tokens = range(100)
    fence = run.partials.fence
    assert not fence.asks_for_end(), "it doesn't stand yet"
    run.safe(*tokens)
    fence.source_read()
    assert _commit(run).cuts is None, "what was read is older than the fence"
    assert fence.asks_for_end()
    assert not fence.asks_for_end(), "once is enough"
    _read(run, 3)
    assert _kinds(_send(run)).count("tuple") == 1
    assert _commit(run).cuts is None
    fence.source_read()
    cuts = _commit(run).cuts
    assert cuts is not None
    assert [chain.since for chain in cuts.chains.values()] == [3]


def test_a_topic_that_changes_later_has_a_fence_of_its_own() -> None:
    """Tuples are on their way when its plan comes, as they nearly always are."""
    two = catalog_of(
        SQL + SQL[SQL.index("CREATE ALERT") :].replace("mean", "few").replace("GROUP", "WHERE x > 0 GROUP")
    )
    plan = first_plan(two, shards={"air": "air"}, partitions=2)
    (stream,) = plan.streams
    first, second = (topic.name for topic in stream.topics)
    tuples = _with_topics(plan, partials=None)
    run = ShardRun("air", "air", Commit(), tuples, now=BORN)
    _commit(run)
    run.obey(_with_topics(replace(plan, version=2), only=second, partials=None), BORN)
    _pass_fence(run)
    assert run.partials.without_tuples == {first}
    run.obey(replace(plan, version=3), BORN)
    _read(run, 3)
    assert run.partials.without_tuples == {first}, "no fence stands before the second topic's cuts"
    _pass_fence(run)
    assert run.partials.without_tuples == {first, second}
    assert not run.settling


def _pass_fence(run: ShardRun) -> None:
    _commit(run)
    assert not run.partials.waits
    _send(run)
    assert run.partials.fence.asks_for_end()
    run.partials.fence.source_read()
    _commit(run)
    _send(run)


def test_tuples_and_progress_behind_the_fence_have_its_number() -> None:
    run = _upgraded()
    _read(run, 3)
    assert all("fence" not in envelope for envelope in _send(run))
    number = _commit(run).fence
    _read(run, 4)
    _commit(run)
    envelopes = _send(run)
    assert _kinds(envelopes)[:2] == ["fence", "fence"], "it comes before all that has its number"
    assert {*_kinds(envelopes)} == {"fence", "progress", "tuple"}
    assert {envelope["fence"] for envelope in envelopes} == {number}


def test_each_run_has_a_fence_of_its_own() -> None:
    first = _commit(_upgraded())
    again = ShardRun("air", "air", first, replace(CUTS, version=2), now=BORN)
    second = _commit(again)
    assert second.fence == first.fence + 1
    assert [e["fence"] for e in _send(again) if e.get("kind") == "fence"] == [second.fence] * 2


def test_numbers_rise_when_the_commit_is_lost() -> None:
    fence = Fence(0)
    fence.draw({"t"}, BORN)
    fence.made_durable()
    later = Fence(0)  # the number of the commit is gone
    later.draw({"t"}, BORN + 60 * SECOND)
    assert later.committed > fence.number


def test_a_topic_that_comes_later_needs_a_new_fence() -> None:
    fence = Fence(7)
    fence.draw({"t"}, 0)
    assert fence.made_durable() == {"t"}
    fence.sent_as([1])
    fence.safe(1)
    assert fence.asks_for_end()
    fence.source_read()
    assert [fence.passed(topics) for topics in ({"t"}, {"t", "u"})] == [True, False]
    fence.draw({"t"}, 0)
    assert fence.passed({"t"})
    fence.draw({"t", "u"}, 0)
    fence.safe(1)
    assert not fence.passed({"t"})
    assert not fence.asks_for_end()
    assert fence.made_durable() == {"t", "u"}


@pytest.mark.parametrize("value_format", ["avro", "protobuf"])
def test_tuples_of_such_a_topic_are_json_in_every_format(value_format: Literal["avro", "protobuf"]) -> None:
    streams = [replace(stream, value_format=value_format) for stream in CUTS.streams]
    run = _upgraded(_with_topics(replace(CUTS, streams=tuple(streams)), schema=5))
    _read(run, 3)
    _commit(run)
    assert {"tuple", "fence", "progress"} <= {*_kinds(_send(run))}
