"""Limits of cuts: of the panes behind one that Kafka doesn't have, and of the bytes of a record."""

from __future__ import annotations

import numpy as np
import orjson
import pytest

from tamis.expressions.vectors import Vector
from tamis.operators.windows import cut_policy
from tamis.plan.model import Plan
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of
from tamis_edge.core.commit import Commit
from tamis_edge.core.rows import Batch
from tamis_edge.core.shard_run import ShardRun

SECOND = 1_000_000
SQL = """
CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE, WATERMARK FOR ts AS ts);
CREATE ALERT mean AS SELECT window_end, k, avg(x) AS m
  FROM TUMBLE(air, ts, INTERVAL '1' MINUTE) GROUP BY window_end, k;
"""


def _take(run: ShardRun, seconds: int, keys: int) -> None:
    """A reading of each of the keys."""
    first = run.next_offset
    times = np.full(keys, seconds * SECOND, np.int64)
    columns = {
        "k": Vector(np.array([f"k{number}" for number in range(keys)], np.object_)),
        "ts": Vector(times),
        "x": Vector(np.ones(keys)),
    }
    run.take(Batch(columns, times, np.arange(first, first + keys), times), 0)


def _plan() -> Plan:
    return first_plan(catalog_of(SQL), shards={"air": "air"})


def _with_cut_on_its_way() -> ShardRun:
    """The cut of the first minute is durable, and Kafka doesn't have it."""
    run = ShardRun("air", "air", Commit(), _plan())
    _take(run, 30, 3)
    _take(run, 61, 1)
    run.commit()
    run.committed(0)
    assert any(orjson.loads(record.value)["_"]["kind"] == "cut" for record in run.out)
    return run


def _confirm(run: ShardRun) -> int:
    """Kafka takes all records; returns the number of rows in cuts."""
    rows = 0
    while run.out:
        record = run.out.popleft()
        rows += len(orjson.loads(record.value).get("panes", ()))
        run.safe(record.token)
    return rows


def _overfull(run: ShardRun) -> bool:
    return run.partials.overfull


def test_reading_stops_at_the_limit_and_goes_on_behind_a_full_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cut_policy, "MOST_ROWS", 5)
    run = _with_cut_on_its_way()
    _take(run, 62, 5)
    assert not _overfull(run)
    _take(run, 63, 6)
    assert _overfull(run)
    assert run.commit() is not None, "a commit goes on: others wait for it"
    run.committed(0)
    assert _overfull(run)
    assert _confirm(run) == 3
    assert not _overfull(run)
    run.commit()
    run.committed(0)
    assert _confirm(run) == 6
    assert not _overfull(run)


def test_readings_are_late_after_a_restart_behind_one_that_does_not_come_again() -> None:
    run = _with_cut_on_its_way()
    _confirm(run)
    _take(run, 200, 1)
    run.partials.full = True
    run.commit()
    run.committed(0)
    assert _confirm(run) == 2
    _take(run, 70, 1)
    run.commit()
    run.committed(0)
    again = ShardRun("air", "air", run.durable, _plan())
    assert again.next_offset == run.next_offset - 1
    _take(again, 70, 1)
    assert again.watermark == run.watermark
    again.take_counts()
    _take(again, 150, 5)
    assert again.take_counts().late == 5


def test_readings_of_the_last_cut_come_again_after_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cut_policy, "MOST_ROWS", 5)
    again = ShardRun("air", "air", _with_cut_on_its_way().durable, _plan())
    assert again.next_offset == 0
    _take(again, 30, 3)
    assert not _overfull(again), "only when all have come can the cut be sent"
    _take(again, 61, 1)
    assert not _overfull(again)
    _take(again, 62, 6)
    assert _overfull(again)
    again.commit()
    again.committed(0)
    assert _confirm(again) == 3
    assert not _overfull(again)


def test_a_restart_sends_the_parts_that_the_commit_has(monkeypatch: pytest.MonkeyPatch) -> None:
    def parts(run: ShardRun) -> list[tuple[int, list[str]]]:
        documents = [orjson.loads(record.value) for record in run.out]
        return [(one["_"]["place"][1], one["groups"][0]) for one in documents if one["_"]["kind"] == "cut"]

    monkeypatch.setattr(cut_policy, "PART_BYTES", 200)
    run = _with_cut_on_its_way()
    sent = parts(run)
    assert len(sent) > 1
    monkeypatch.undo()
    again = ShardRun("air", "air", run.durable, _plan())
    _take(again, 30, 3)
    _take(again, 61, 1)
    again.commit()
    again.committed(0)
    assert parts(again) == sent
