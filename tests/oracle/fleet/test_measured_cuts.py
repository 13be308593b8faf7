"""Measured explanations of partial aggregates: they count what a shard's run sends of the same readings."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from tests.oracle.fleet.test_link_bound import BORN, MINUTE, SHARD, Case, Shard, value_of
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.operators.windows import cut_policy
from tamis.planning.build import first_plan
from tamis.planning.explanations import cut_replay
from tamis.planning.explanations.cut_replay import SentCuts, replayed_cuts
from tamis.recordings.typed import read_recording


def counts(tmp_path: Path, number: int) -> tuple[SentCuts, SentCuts]:
    """The records and rows by the replay of a recording, and by a run that reads it in its own time."""
    r = random.Random(SEED * 15_485_863 + number)
    case = replace(Case.drawn(r), late=0.0)
    catalog = case.catalog()
    readings = [(time, time, key) for time, key in sorted({(time, key) for _, time, key in case.readings(r)})]
    file = tmp_path / f"{number}.csv"
    lines = (f"{key},{time},{value_of(time, key)},text {value_of(time, key)}" for _, time, key in readings)
    file.write_text("\n".join(("k,ts,v,s", *lines)))
    plan = first_plan(catalog, partitions=case.partitions, shards={SHARD: "air"})
    ((topic,),) = [stream.topics for stream in plan.streams]
    recording = read_recording(catalog.streams["air"], [str(file)])
    assert len(recording) == len(readings)
    assert not recording.late.any()
    shard = Shard(plan, r, [], safe_within=0, ends=True)
    shard.read(readings, BORN + (case.minutes + 3) * MINUTE)
    run = SentCuts(sum(cut.records for cut in shard.cuts), sum(cut.rows for cut in shard.cuts))
    return replayed_cuts(topic, recording, case.partitions), run


# 12 cases.
@pytest.mark.parametrize("times", also_long(40))
def test_the_replay_counts_what_a_run_sends(tmp_path: Path, times: int) -> None:
    for number in range(cases(0.0005) * times):
        replayed, run = counts(tmp_path, number)
        assert replayed == run
        assert run.rows > 0


def test_small_parts_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cut_policy, "PART_BYTES", 30_000)
    for number in range(cases(0.0002)):
        replayed, run = counts(tmp_path, number)
        assert replayed == run


def test_full_cuts_of_many_rows_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cut_policy, "MOST_ROWS", 6)
    monkeypatch.setattr(cut_replay, "_BLOCK", 1)
    replayed, run = counts(tmp_path, 3)
    assert replayed == run
