"""Sources of backfill streams: opened with a plan, read from the beginning, and closed with a later plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tamis.plan.model import Plan
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of
from tamis.settings import KafkaSettings
from tamis.telemetry.metrics import Metrics
from tamis_edge.core.commit import Commit, History
from tamis_edge.core.shard_run import ShardRun
from tamis_edge.settings import AnySource, FileSource, HttpSource
from tamis_edge.shards.intake import Intake
from tamis_edge.sources.backfill import BackfillSources, Reader, too_far_ahead
from tamis_edge.sources.opening import KafkaAccess, open_again
from tamis_edge.storage.journal import Journal

START = 1_700_000_000_000_000
STREAM = (
    "CREATE STREAM air (k INT KEY, ts TIMESTAMP, v DOUBLE, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND);"
)
ALERT = "CREATE ALERT q WITH (from = '{}') AS SELECT k, ts FROM air WHERE v > 0;"
ACCESS = KafkaAccess(KafkaSettings(), lambda _: None, lambda *_: None)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    made = Journal(tmp_path / "journal.db", 1_000_000)
    yield made
    made.close()


def sources(path: Path, journal: Journal) -> BackfillSources:
    """Those of an edge with a recording of air, which it replays slowly, and readings over HTTP."""
    configured: list[AnySource] = [
        FileSource(name="rec", kind="file", path=path, stream="air", speed=1),
        HttpSource(name="http", kind="http"),
    ]
    again = partial(open_again, edge="e", journal=journal, wake=lambda: None, kafka=ACCESS)
    return BackfillSources(configured, again)


def planned(since: str = "earliest") -> Plan:
    """A plan with an alert over the history of air, that lists its shard."""
    plan = first_plan(catalog_of(STREAM, ALERT.format(since)))
    name = plan.streams[1].name
    shard = f"{name}:e/rec"
    return replace(plan, since={shard: 1}, shard_streams={shard: name})


def recording(path: Path) -> Path:
    rows = "\n".join(f"1,{START + at},{at}" for at in range(10))
    path.write_text(f"k,ts,v\n{rows}\nbad,1,1\n")
    return path


def test_sources_follow_the_plan(tmp_path: Path, journal: Journal) -> None:
    opened, plan = sources(recording(tmp_path / "air.csv"), journal), planned()
    assert opened.sources == []
    opened.obey(plan)
    (source,) = opened.sources
    opened.obey(plan)
    assert opened.sources == [source]
    opened.obey(replace(plan, version=2))
    assert opened.sources == [source]
    assert opened.troubles() == {"rec for air-backfill-1": None}
    opened.obey(replace(plan, version=3, streams=plan.streams[:1]))
    assert opened.sources == [] and opened.troubles() == {}


def test_a_recording_that_is_gone_is_a_trouble(tmp_path: Path, journal: Journal) -> None:
    opened = sources(tmp_path / "gone.csv", journal)
    opened.obey(planned())
    assert opened.sources == []
    (trouble,) = opened.troubles().values()
    assert trouble is not None and "gone.csv" in trouble


@pytest.mark.parametrize(("since", "first"), [("earliest", 0), ("2023-11-14T22:13:20.000004Z", 4)])
def test_history_is_noted_and_survives(tmp_path: Path, journal: Journal, since: str, first: int) -> None:
    plan = planned(since)
    opened = sources(recording(tmp_path / "air.csv"), journal)
    opened.obey(plan)
    (shard,) = opened.sources[0].shards()
    run = ShardRun(shard.name, shard.stream, Commit(), plan, now=START)
    intake = Intake(shard, "e", Metrics("edge"))
    shard.start(0, intake.decode_for(plan, plan.streams[1], 1))
    delivery = shard.poll(100, START)
    assert delivery is not None  # at once, although the raw stream is replayed slowly
    intake.take(run, delivery, shard.stream, START)
    assert run.history == History(0, START)
    # The reading that can't be used is a dead letter of the raw stream only.
    topics = [record.topic for record in run.out]
    assert topics == [plan.streams[1].topics[0].name] * len(topics)
    assert len(topics) == 10 - max(first, 1)
    while run.out:
        run.safe(run.out.popleft().token)
    commit = run.commit()
    assert commit is not None
    shard.commit(commit, False).result(10)
    assert shard.committed() == (commit, False) and commit.history == run.history
    assert Commit.from_metadata(commit.done, commit.to_metadata()) == commit
    assert ShardRun(shard.name, shard.stream, commit, plan, now=START).history == run.history


def test_shards_of_one_alert_wait_for_each_other() -> None:
    slow = Reader("a", "a-backfill-7", 10, 5, going=True)
    fast = Reader("b", "b-backfill-7", 16, 5, going=True)
    other = Reader("c", "a-backfill-8", 99, 5, going=True)
    assert too_far_ahead([slow, fast, other]) == {"b"}
    assert too_far_ahead([slow, fast._replace(high=15), other]) == set()
    assert too_far_ahead([slow._replace(going=False), fast]) == set()
