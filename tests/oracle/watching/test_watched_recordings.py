"""The columns of watches over random recordings, compared with following every reading from its arrival."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.oracle.random_cases import SEED, also_long, cases
from tests.oracle.watching.brute_force import NEAR, Outcome, outcomes, released
from tests.oracle.watching.random_recordings import VALUES, RandomRecording

from tamis.declarations.streams import watched_stream
from tamis.declarations.watches import Watch
from tamis.expressions.vectors import Vector
from tamis.offline.recordings import watched_recording
from tamis.recordings.typed import Recording
from tamis.verification.watched_columns import checked_recording
from tamis.watching.series_watcher import SeriesWatcher


def columns_of(watch: Watch, recording: Recording) -> list[tuple[Any, Any, Any, Any]]:
    """Distance, scale, shift and name of each reading."""
    return list(zip(*(recording.columns[column.name].to_list() for column in watch.columns), strict=True))


def agrees(row: tuple[Any, Any, Any, Any], possible: list[Outcome]) -> bool:
    """True if the columns are one of the possible outcomes."""
    distance, scale, shift, name = row
    if name is None:
        return (distance, scale, shift) == (None, None, None) and any(one.name is None for one in possible)
    return any(one.name == name and abs(distance - one.distance) <= one.near for one in possible)


@pytest.mark.parametrize("times", also_long(200))
def test_columns_are_those_of_brute_force(times: int, tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for seed in range(SEED, SEED + cases(0.0005) * times):
        case = RandomRecording(seed, 120)
        recording = case.recording(tmp_path)
        values = [VALUES[int(case.random.integers(len(VALUES)))] for _ in range(2)]
        watches = [case.watch(value) for value in values]
        ours = watched_recording(recording, watched_stream(case.stream, tuple(watches)))
        reference = checked_recording(ours)
        assert reference.uncertain is not None
        open_rows = np.zeros(len(recording), np.bool_)
        for value, watch in zip(values, watches, strict=True):
            readings = case.readings(value)
            late = released(readings, case.delay)[1]
            assert late == np.flatnonzero(recording.late).tolist()
            possible = outcomes(watch, readings, case.delay)
            for number, (row, others) in enumerate(zip(columns_of(watch, ours), possible, strict=True)):
                assert agrees(row, others), f"seed {seed}, reading {number}: {row}, {others}, {watch}"
                seen["windows"] += 1
                seen["matches"] += row[3] is not None
                seen["open"] += len(others) > 1
            assert columns_of(watch, reference) == columns_of(watch, ours), f"seed {seed}"
            # Exact similarity is not always seen by long doubles.
            open_rows |= [
                len(others) > 1 or any(one.distance <= one.near for one in others) for others in possible
            ]
            seen["late"] += len(late)
        assert not (reference.uncertain & ~open_rows).any(), f"seed {seed}"
    assert seen["matches"] > seen["windows"] / 100, seen
    assert seen["late"] > seen["windows"] / 100, seen


@pytest.mark.parametrize("times", also_long(100))
def test_readings_may_come_in_any_batches(times: int, tmp_path: Path) -> None:
    for seed in range(SEED, SEED + cases(0.0004) * times):
        case = RandomRecording(seed, 300)
        recording = case.recording(tmp_path)
        watches = tuple(case.watch(value) for value in VALUES)
        stream = watched_stream(case.stream, watches)
        whole = watched_recording(recording, stream)
        order, late = released(case.readings(VALUES[0]), case.delay)
        keys: dict[Any, int] = {}
        codes = [keys.setdefault((row[0], row[1] if case.keyed else ""), len(keys)) for row in case.rows]
        watcher = SeriesWatcher(stream.watches)
        assert sorted(order + late) == list(range(len(recording)))
        at = 0
        while at < len(order):
            rows = np.array(order[at : at + int(case.random.choice([1, 2, 7, 50]))])
            at += len(rows)
            found = watcher.push(
                np.array(codes)[rows],
                recording.columns["ts"].data[rows],
                {("", name): vector.take(rows) for name, vector in recording.columns.items()},
                len(rows),
            )
            for one in found:
                for column, vector in zip(one.watch.columns, one.vectors(), strict=True):
                    expected = whole.columns[column.name].take(rows).to_list()
                    assert vector.to_list() == expected, f"seed {seed}"


@pytest.mark.parametrize("times", also_long(100))
def test_a_wrong_column_is_replaced_by_direct_computation(times: int, tmp_path: Path) -> None:
    found = 0
    for seed in range(SEED, SEED + cases(0.001) * times):
        case = RandomRecording(seed, 120)
        watch = case.watch(VALUES[0])
        stream = watched_stream(case.stream, (watch,))
        ours = watched_recording(case.recording(tmp_path), stream)
        reference = checked_recording(ours)
        possible = outcomes(watch, case.readings(VALUES[0]), case.delay)
        sure = [n for n, others in enumerate(possible) if len(others) == 1 and others[0].name is not None]
        if not sure:
            continue
        row = int(case.random.choice(sure))
        (outcome,) = possible[row]
        for wrong in _wrong(case.random, watch, columns_of(watch, ours)[row]):
            columns = dict(ours.columns)
            for column, value in zip(watch.columns, wrong, strict=True):
                values = columns[column.name].to_list()
                values[row] = value
                columns[column.name] = Vector.from_list(values, column.type)
            mended = columns_of(watch, checked_recording(replace(ours, columns=columns)))
            distance, scale, shift, name = mended[row]
            assert mended[:row] + mended[row + 1 :] == [
                one for n, one in enumerate(columns_of(watch, reference)) if n != row
            ]
            assert (name, distance) == (outcome.name, pytest.approx(outcome.distance, abs=outcome.near))
            assert scale is None or scale > 0
            assert (scale is None, shift is None) == tuple(
                one is None for one in columns_of(watch, ours)[row][1:3]
            )
            assert mended[row] != wrong, f"seed {seed}: {wrong}"
            found += 1
    assert found > 20


def _wrong(
    random: np.random.Generator, watch: Watch, right: tuple[Any, Any, Any, Any]
) -> list[tuple[Any, Any, Any, Any]]:
    """Columns that are wrong in one way each."""
    distance, scale, shift, name = right
    size = max(watch.epsilon, *(float(np.std(pattern.values)) for pattern in watch.patterns))
    made: list[tuple[Any, Any, Any, Any]] = [(None, None, None, None)]
    moved = distance + 100 * NEAR * size * random.choice([-1, 1])
    made.append((moved, scale, shift, name))
    if scale is not None and shift is not None:
        made += [(distance, -scale, shift, name), (distance, scale, None, name)]
    others = [pattern.name for pattern in watch.patterns if pattern.name != name]
    if others:
        made.append((distance, scale, shift, others[0]))
    return made
