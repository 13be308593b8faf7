"""Recordings through the cuts of several shards, with crashes: the rows are those over all readings.

Random queries over random files, of which some have late readings. The rows are compared with those of the
operator that takes the readings one by one, and with DuckDB's.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import duckdb
import numpy as np
import pytest
from tests.oracle.operators.windowed_queries import (
    Lower,
    Tuple,
    batch_of,
    comparable,
    expected_rows,
    random_case,
    random_tuples,
    rows_of,
)
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.operators.cuts import replay
from tamis.operators.cuts.chain import CutChain
from tamis.operators.cuts.cut import ChainCommit
from tamis.operators.cuts.replay import run_by_cuts
from tamis.operators.recording_runs import run_windowed
from tamis.plan.nodes import Windows
from tamis.planning.explanations.measured import partial_topic
from tamis.planning.link.cost import LinkCost
from tamis.planning.physical.lowering import lowered
from tamis.query.parse import catalog_of
from tamis.recordings.typed import Recording

_EMPTY = -(2**60)


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Partial aggregates also where readings take fewer bytes."""
    monkeypatch.setattr(LinkCost, "tuples_are_cheaper", False)


def _marks(files: list[list[Tuple]], delay: int) -> list[int]:
    """The watermark of its file when each tuple came."""
    return [
        mark - delay if mark > _EMPTY else _EMPTY
        for file in files
        for mark in [_EMPTY, *accumulate((one[0] for one in file), max)][: len(file)]
    ]


def _compare(number: int, reference: duckdb.DuckDBPyConnection) -> tuple[int, int]:
    """Compare the rows of a case; returns the numbers of rows and of late readings."""
    r = random.Random(SEED * 7_368_787 + number)
    lower = Lower.drawn(r)
    sql, parts, windows = random_case(r, lower)
    catalog = catalog_of(sql)
    alert, stream = catalog.alerts["q"], catalog.streams["s"]
    files = [random_tuples(r, lower.rate) for _ in range(r.choice((1, 1, 2)))]
    tuples = [one for file in files for one in file]
    marks = _marks(files, lower.delay)
    late = np.array([one[0] < mark for one, mark in zip(tuples, marks, strict=True)], np.bool_)
    recording = Recording(stream, batch_of(stream, tuples), late, {}, 0, files=tuple(map(len, files)))
    node, topic = lowered(alert.query, catalog), partial_topic(alert, catalog)
    assert isinstance(node, Windows)
    assert topic is not None
    found = run_by_cuts(node, topic, recording, catalog.file_access, r)
    whole = run_windowed(node, catalog.file_access, recording)
    note = number, sql, files
    assert rows_of(found.rows) == rows_of(whole.rows), note
    assert found.late == whole.late, note
    expected = expected_rows(reference, parts, windows, tuples, marks)
    assert sorted(map(comparable, rows_of(found.rows))) == sorted(map(comparable, expected)), note
    return len(expected), found.late


def _compare_many(tried: int) -> list[tuple[int, int]]:
    reference = duckdb.connect(":memory:")
    return [_compare(number, reference) for number in range(tried)]


# 60 cases.
@pytest.mark.parametrize("times", also_long(400))
def test_rows_by_cuts_are_those_over_all_readings(times: int) -> None:
    found = _compare_many(cases(0.0025) * times)
    assert sum(rows > 0 for rows, _ in found) > len(found) // 2
    assert sum(late > 0 for _, late in found) > len(found) // 20


def _later(self: CutChain, next_offset: int) -> int:
    return next_offset


def _twice(self: Any, records: Any) -> None:
    for record in records:
        self._taken[record.shard] = (0, 0)
        _TAKE(self, iter([record]))


def _anew(since: int, commit: ChainCommit) -> CutChain:
    return CutChain(since, commit._replace(done=since, offset=since))


def _unsent(since: int, commit: ChainCommit) -> CutChain:
    return CutChain(since, commit._replace(pending=None))


def _without_first(self: CutChain, batch: Any, rows: Any, now: int) -> None:
    _ADD(self, batch, rows[1:], now)


_TAKE, _ADD = replay._Joiner.take, CutChain._add
FAULTS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "a commit says that open panes were sent": (CutChain, "done", _later),
    "a record that comes again counts again": (replay._Joiner, "take", _twice),
    "a restart reads again what was sent": (replay, "CutChain", _anew),
    "a restart forgets the pending cut": (replay, "CutChain", _unsent),
    "a reading is lost": (CutChain, "_add", _without_first),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_reading_that_is_lost_or_doubled_is_seen(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*FAULTS[fault])
    with pytest.raises(AssertionError):
        _compare_many(60)
