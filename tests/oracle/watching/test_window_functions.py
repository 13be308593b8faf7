"""Window functions over random recordings, compared with following every reading from its arrival on."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.oracle.random_cases import SEED, also_long, cases
from tests.oracle.watching.brute_force import Reading, released
from tests.oracle.watching.frames_by_hand import values
from tests.oracle.watching.random_recordings import RandomRecording

from tamis.declarations.streams import watched_stream
from tamis.declarations.watches import Frame, Function, WindowFunction
from tamis.expressions.evaluate import evaluate
from tamis.expressions.nodes import Call, Column, Expr, Literal, Type
from tamis.expressions.vectors import Vector
from tamis.offline.recordings import watched_recording
from tamis.recordings.typed import Recording
from tamis.verification.watched_columns import checked_recording
from tamis.watching.key_history import most_readings
from tamis.watching.series_watcher import SeriesWatcher
from tamis.watching.watched_columns import WindowValues

SECOND = 1_000_000
VALUE, LEVEL = Column("", "value", Type.DOUBLE), Column("", "level", Type.INT)
KEY, TIME = Column("", "k", Type.VARCHAR), Column("", "ts", Type.TIMESTAMP)
ODD = Call("=", (Call("mod", (LEVEL, Literal(2, Type.INT)), Type.INT), Literal(1, Type.INT)), Type.BOOLEAN)
VALUES: tuple[Function, ...] = ("lag", "first_value", "last_value")
NUMBERS: tuple[Function, ...] = ("sum", "avg", "var_pop", "var_samp", "stddev_pop", "stddev_samp")


def functions(random: np.random.Generator, count: int) -> list[WindowFunction]:
    """Random window functions over the columns of `RandomRecording`."""
    return [_function(random) for _ in range(count)]


def _function(random: np.random.Generator) -> WindowFunction:
    value: Expr = (VALUE, VALUE, VALUE, LEVEL, KEY, TIME, ODD)[int(random.integers(7))]
    allowed: list[Function] = [*VALUES, "lag", "count"]
    if value.type is not Type.VARCHAR:
        allowed += ["min", "max"]
    if value.type.numeric:
        allowed += NUMBERS
    name = allowed[int(random.integers(len(allowed)))]
    span = int(random.choice([1, 5, 30, 3600])) * SECOND
    last = int(random.choice([0, 0, 1, 3]))
    frame = Frame(last + int(random.choice([0, 1, 2, 5, 20])), last, span)
    if name == "lag":
        rows = int(random.choice([1, 1, 2, 7]))
        frame = Frame(rows, rows, span)
    elif random.random() < 0.4:
        frame = Frame(None, 0, span)
    type_ = value.type
    if name in ("avg", "var_pop", "var_samp", "stddev_pop", "stddev_samp"):
        type_ = Type.DOUBLE
    elif name == "count" or (name == "sum" and value is LEVEL):
        type_ = Type.BIGINT
    default = value if name == "lag" and random.random() < 0.3 else None
    return WindowFunction(name, value, frame, type_, default)


def expected(case: RandomRecording, recording: Recording, function: WindowFunction) -> list[Any]:
    arguments: list[Any] = []
    for _, key, time, number, level in case.rows:
        odd = level % 2 == 1
        known: dict[Expr, Any] = {VALUE: number, LEVEL: level, KEY: key, TIME: time, ODD: odd}
        arguments.append(known[function.value])
    assert len(arguments) == len(recording)
    readings = [Reading(file, key if case.keyed else "", time, None) for file, key, time, _, _ in case.rows]
    defaults = [None] * len(arguments) if function.default is None else arguments
    return values(function, readings, case.delay, arguments, defaults)


def column(recording: Recording, function: WindowFunction) -> list[Any]:
    return recording.columns[function.column.name].to_list()


@pytest.mark.parametrize("times", also_long(200))
def test_columns_are_those_of_brute_force_and_of_duckdb(times: int, tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for seed in range(SEED, SEED + cases(0.001) * times):
        case = RandomRecording(seed, 90)
        recording = case.recording(tmp_path)
        asked = functions(case.random, 5)
        ours = watched_recording(recording, watched_stream(case.stream, tuple(asked)))
        reference = checked_recording(ours)
        for function in asked:
            right = expected(case, recording, function)
            assert column(ours, function) == right, f"seed {seed}: {function}"
            assert column(reference, function) == right, f"seed {seed}: {function}"
            seen[function.function] += sum(one is not None for one in right)
            seen["null"] += sum(one is None for one in right)
            seen["domains"] += _check_domain(function, ours)
        seen["late"] += int(recording.late.sum())
    few = [
        name
        for name in (*VALUES, *NUMBERS, "count", "min", "max", "null", "late", "domains")
        if seen[name] < 20
    ]
    assert not few or times * cases(0.001) < 20, seen


def _check_domain(function: WindowFunction, ours: Recording) -> bool:
    """Check that no value is outside of the domain that follows from the tightest CHECKs of the columns."""
    checks: dict[str, Expr] = {}
    for of in (VALUE, LEVEL, TIME):
        known = [one for one in ours.columns[of.name].to_list() if one is not None]
        tests: list[Expr] = []
        for op, end in ((">=", min(known)), ("<=", max(known))):
            tests.append(Call(op, (of, Literal(end, of.type)), Type.BOOLEAN))
        checks[of.name] = Call("and", tuple(tests), Type.BOOLEAN)
    domain = function.domain(checks)
    if domain is None:
        return False
    holds = evaluate(domain, {("", function.column.name): ours.columns[function.column.name]}, len(ours))
    assert False not in holds.to_list(), function
    return True


@pytest.mark.parametrize("times", also_long(200))
def test_a_wrong_value_is_replaced_by_that_of_duckdb(times: int, tmp_path: Path) -> None:
    found = 0
    for seed in range(SEED, SEED + cases(0.0003) * times):
        case = RandomRecording(seed, 60)
        recording = case.recording(tmp_path)
        (function,) = functions(case.random, 1)
        ours = watched_recording(recording, watched_stream(case.stream, (function,)))
        right = expected(case, recording, function)
        rows = [row for row, one in enumerate(right) if one is not None]
        if not rows:
            continue
        row = int(case.random.choice(rows))
        for wrong in _wrong(right[row]):
            changed = [*right[:row], wrong, *right[row + 1 :]]
            columns = {
                **ours.columns,
                function.column.name: Vector.from_list(changed, function.type),
            }
            mended = column(checked_recording(replace(ours, columns=columns)), function)
            if isinstance(right[row], float):
                assert mended[row] == pytest.approx(right[row], rel=1e-6, abs=1e-3), (
                    f"seed {seed}: {function}"
                )
                assert mended[row] != wrong
                mended[row] = right[row]
            assert mended == right, f"seed {seed}: {function}"
            found += 1
    assert found >= cases(0.0003) * times


def _wrong(right: Any) -> list[Any]:
    """Values that are wrong."""
    if isinstance(right, bool):
        return [None, not right]
    if isinstance(right, str):
        return [None, right + "x"]
    if isinstance(right, float):
        return [None, right + max(abs(right), 1.0) * 1e-4]
    return [None, right + 1]


@pytest.mark.parametrize("times", also_long(200))
def test_readings_may_come_in_any_batches_and_be_forgotten(times: int, tmp_path: Path) -> None:
    for seed in range(SEED, SEED + cases(0.0005) * times):
        case = RandomRecording(seed, 200)
        recording = case.recording(tmp_path)
        asked = functions(case.random, 6)
        stream = watched_stream(case.stream, tuple(asked))
        whole = watched_recording(recording, stream)
        # The edge's order: each file is a shard of its own.
        for file in np.unique(recording.file_numbers).tolist():
            of_file = [row for row in case.rows if row[0] == file]
            rows_of_file = np.flatnonzero(recording.file_numbers == file)
            readings = [Reading(0, row[1] if case.keyed else "", row[2], None) for row in of_file]
            order = rows_of_file[released(readings, case.delay)[0]]
            _play(case, recording, whole, order, stream.watches)


def _play(
    case: RandomRecording, recording: Recording, whole: Recording, order: Any, watches: tuple[Any, ...]
) -> None:
    """Push readings in random batches, forget what isn't needed any more, and change the watches."""
    keys: dict[Any, int] = {}
    codes = np.array([keys.setdefault(row[1] if case.keyed else "", len(keys)) for row in case.rows])
    times = recording.columns["ts"].data
    watcher, at = SeriesWatcher(watches), 0
    while at < len(order):
        rows = order[at : at + int(case.random.choice([1, 2, 7, 50]))]
        at += len(rows)
        found = watcher.push(
            codes[rows],
            times[rows],
            {("", name): vector.take(rows) for name, vector in recording.columns.items()},
            len(rows),
        )
        for one in found:
            if not isinstance(one, WindowValues) or one.watch not in watches:
                continue
            vector = one.values
            right = whole.columns[one.watch.column.name].take(rows).to_list()
            assert vector.to_list() == right, one.watch
        if at < len(order) and case.random.random() < 0.5:
            # The next reading may come at the watermark.
            watermark = int(times[order[at]])
            oldest = watcher.forget_history(watermark)
            assert (oldest <= watermark).sum() == (oldest < 2**63 - 1).sum()
            _check_bound(watcher, times[order[:at]], codes[order[:at]])
        if case.random.random() < 0.2:
            # Another query comes or goes; the readings that its frames need stay until they are forgotten.
            again = SeriesWatcher([*functions(case.random, int(case.random.integers(2))), *watches])
            again.continue_from(watcher)
            watcher = again


def _check_bound(watcher: SeriesWatcher, times: Any, codes: Any) -> None:
    """No key has more readings than a frame of the next reading can have."""
    for group in watcher.windows:
        kept = group.history.kept
        for key in np.flatnonzero(kept).tolist():
            own = times[codes == key]

            def within(span: int, own: Any = own) -> float:
                return float(np.count_nonzero(own >= own[-1] - span))

            most = most_readings(group.functions, within)
            assert most is not None and kept[key] <= most
