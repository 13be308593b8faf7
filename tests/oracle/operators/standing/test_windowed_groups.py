"""Aggregates of windows: the rows are DuckDB's over all tuples that came in time.

Batches are random, and the state is dumped and loaded at random points. The number of entries never exceeds
the bound.
"""

from __future__ import annotations

import random

import duckdb
import numpy as np
import pytest
from tests.operators import run_query
from tests.oracle.operators.windowed_queries import (
    Row,
    Tuple,
    WindowQuery,
    batch_of,
    comparable,
    expected_rows,
    late_tuples,
    random_case,
    random_tuples,
    rows_of,
)
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.operators import recording_runs
from tamis.operators.windows.groups import WindowedGroups
from tamis.query.parse import catalog_of
from tamis.recordings.typed import Recording
from tamis.verification.aggregates import compare_windowed_groups, with_group_keys

_EMPTY = -(2**60)


@pytest.mark.parametrize("times", also_long(30))
def test_the_rows_of_windows_are_those_of_duckdb(times: int) -> None:
    reference = duckdb.connect(":memory:")
    productive = late = 0
    tried = cases(0.003) * times
    for case in range(tried):
        r = random.Random(SEED * 1_000_003 + case)
        rows, missed = _play(r, reference, f"case {case} of seed {SEED}")
        productive += rows > 0
        late += missed > 0
    assert productive > tried // 2
    assert late > tried // 50


def test_recordings_are_files_with_watermarks_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    reference = duckdb.connect(":memory:")
    late = 0
    for case in range(cases(0.0007)):
        r = random.Random(SEED * 1_000_003 + case)
        monkeypatch.setattr(recording_runs, "BATCH", r.choice((1, 3, 10, 1_000)))
        sql, parts, window = random_case(r)
        asked = WindowQuery(sql, catalog_of(sql), parts.delay)
        files = [random_tuples(r, False) for _ in range(r.randint(1, 3))]
        tuples = [one for file in files for one in file]
        marks = [
            max((one[0] for one in file[:at]), default=_EMPTY) - asked.delay
            for file in files
            for at in range(len(file))
        ]
        stream = asked.catalog.streams["s"]
        recording = Recording(
            stream,
            batch_of(stream, tuples),
            np.zeros(len(tuples), np.bool_),
            {},
            0,
            None,
            tuple(map(len, files)),
        )
        query = asked.query
        found = run_query(query, asked.catalog, {recording.stream.name: recording})
        expected = expected_rows(reference, parts, window, tuples, marks)
        rows = rows_of(found.rows)
        assert sorted(map(comparable, rows)) == sorted(map(comparable, expected)), (case, sql, files)
        assert [row[0] for row in rows] == sorted(row[0] for row in rows), (case, sql)  # type: ignore[type-var]
        assert found.late == late_tuples(reference, parts.condition, window), (case, sql, files)
        late += found.late
        keys = run_query(with_group_keys(query), asked.catalog, {recording.stream.name: recording}).rows
        assert compare_windowed_groups("q", query, {"s": recording}, keys.columns).same, (case, sql, files)
    assert late > 0


def _play(r: random.Random, reference: duckdb.DuckDBPyConnection, case: str) -> tuple[int, int]:
    """How many rows a random query has over random tuples, and how many of these were late."""
    sql, parts, window = random_case(r)
    asked = WindowQuery(sql, catalog_of(sql), parts.delay)
    rows = late = 0
    for _ in range(3):
        tuples = random_tuples(r, parts.rate)
        found, marks, missed = _rows(r, asked, tuples, case)
        expected = expected_rows(reference, parts, window, tuples, marks)
        assert sorted(map(comparable, found)) == sorted(map(comparable, expected)), (case, sql, tuples)
        ends = [row[0] for row in found]
        assert ends == sorted(ends), (case, sql)  # type: ignore[type-var]
        assert missed == late_tuples(reference, parts.condition, window), (case, sql, tuples)
        rows += len(found)
        late += missed
    return rows, late


def _rows(
    r: random.Random, asked: WindowQuery, tuples: list[Tuple], case: str
) -> tuple[list[Row], list[int], int]:
    """All rows; for each tuple the watermark when it came; and how many were late."""
    query = asked.fresh()
    rows: list[Row] = []
    marks: list[int] = []
    mark, at = _EMPTY, 0
    most = r.choice((1, 1, 4, 100))
    while at < len(tuples):
        batch = tuples[at : at + r.randint(1, most)]
        at += len(batch)
        assert len(query.take("s", batch_of(asked.catalog.streams["s"], batch), len(batch))) == 0
        marks += [mark] * len(batch)
        if r.random() < 0.9:
            mark = max(one[0] for one in tuples[:at]) - asked.delay
            rows += _listed(query, mark)
            if asked.bound is not None:
                assert query.entries() <= asked.bound, (case, asked.sql, tuples)
        if r.random() < 0.2:
            state, query = query.dump(), asked.fresh()
            query.load(state)
    rows += _listed(query, 2**62)
    assert query.entries() == 0
    return rows, marks, query.late


def _listed(query: WindowedGroups, mark: int) -> list[Row]:
    found = query.advance("s", mark)
    assert (found.completed == -1).all()
    assert len(query.advance("s", mark)) == 0
    return rows_of(found)
