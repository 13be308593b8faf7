"""Replay of random alerts over random recordings: nothing is missed or extra, and broken code is detected."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.oracle.operators.replay.verify_runs import hold, loaded, missed_and_extra
from tests.oracle.random_alerts import RandomFile
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.expressions.vectors import Vector
from tamis.offline import verify as verify_module
from tamis.omission import batch
from tamis.operators.time_join import tuple_entries
from tamis.operators.time_join.replay import Replay, replay
from tamis.plan.model import Definition
from tamis.recordings.typed import Recording
from tamis.verification import hash_joins, reference
from tamis.verification.reference import plain_join

LONG = also_long(10)
CHUNKS = 4
FIRST = SEED * 10_000_000 + 7_000_000


@pytest.mark.parametrize("times", LONG)
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_nothing_is_missed_and_nothing_extra(chunk: int, times: int, tmp_path: Path) -> None:
    first = FIRST + chunk * 100_000
    seeds = range(first, first + cases(1 / 200 / CHUNKS) * times)
    hold(((seed, RandomFile(seed)) for seed in seeds), tmp_path)


def test_buckets_lose_nothing_of_the_plain_join(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pruned = 0
    files = cases(1 / 2000)
    for seed in range(FIRST + 800_000, FIRST + 800_000 + files):
        case = RandomFile(seed)
        catalog, recordings = loaded(case, tmp_path)
        for alert in catalog.alerts.values():
            fast = plain_join(alert.query, recordings)
            with monkeypatch.context() as context:
                context.setattr(reference, "join_windows", lambda *_: {})
                plain = plain_join(alert.query, recordings)
            names = [source.alias for source in alert.query.sources]
            pruned += len(hash_joins.join_windows([c.expr for c in alert.query.conjuncts], names)) > 0
            listed = [
                sorted(zip(*(one.rows[name].tolist() for name in names), strict=True))
                for one in (fast, plain)
            ]
            assert listed[0] == listed[1], f"seed {seed}\n{case.sql}"
    assert pruned > files // 4


def _broken(folder: Path) -> tuple[int, int]:
    """Missed and extra alarms of some files."""
    return missed_and_extra(map(RandomFile, range(FIRST + 900_000, FIRST + 900_008)), folder)


def test_a_longer_interval_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = batch.retained_by_key

    def greedy(keys: Any, times: Any, values: Any, interval: int, **rest: Any) -> Any:
        return honest(keys, times, values, 4 * interval, **rest)

    monkeypatch.setattr(tuple_entries, "retained_by_key", greedy)
    missed, extra = _broken(tmp_path)
    assert missed > 0 and extra == 0


def test_omission_of_the_wrong_side_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = batch.retained_by_key
    other = {"above": "below", "below": "above", "both": "both"}

    def mirrored(*args: Any, sides: str, **rest: Any) -> Any:
        return honest(*args, sides=other[sides], **rest)  # type: ignore[arg-type]

    monkeypatch.setattr(tuple_entries, "retained_by_key", mirrored)
    assert _broken(tmp_path)[0] > 0


def test_dropped_alarms_are_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(*args: Any) -> Replay:
        found = replay(*args)
        return replace(found, rows={alias: rows[:0] for alias, rows in found.rows.items()})

    monkeypatch.setattr(verify_module, "replay", forgetful)
    missed, extra = _broken(tmp_path)
    assert missed > 0 and extra == 0


def _lengthened(vector: Vector, more: int) -> Vector:
    if not len(vector):
        return Vector(np.resize(vector.data, more), np.ones(more, np.bool_))
    return vector.take(np.arange(len(vector) + more) % len(vector))


def test_invented_alarms_are_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All combinations of the first tuples are raised: as many are extra as the plain join doesn't have."""

    def inventive(definition: Definition, streams: Any, recordings: dict[str, Recording]) -> Replay:
        found = replay(definition, streams, recordings)
        sizes = [min(3, len(recordings[source.stream])) for source in definition.inputs]
        grid = np.indices(sizes).reshape(len(sizes), -1)
        rows = {
            source.alias: np.concatenate([found.rows[source.alias], column])
            for source, column in zip(definition.inputs, grid, strict=True)
        }
        # An invented alarm has the values of another one, or NULL: it is extra by its tuples.
        selected = {name: _lengthened(one, len(grid[0])) for name, one in found.selected.items()}
        return replace(found, rows=rows, selected=selected)

    monkeypatch.setattr(verify_module, "replay", inventive)
    missed, extra = _broken(tmp_path)
    assert missed == 0 and extra > 50
