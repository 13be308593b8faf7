"""Replay of windowed joins: the alarms of the full join, with the same alert, key and window.

All streams omit. Tamis raises no alarm that the full join doesn't have.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.oracle.operators.replay.verify_runs import hold, missed_and_extra
from tests.oracle.random_cases import SEED, also_long, cases
from tests.oracle.random_windowed_alerts import WindowedFile

from tamis.offline import verify as verify_module
from tamis.omission.window_batch import retained_in_windows
from tamis.operators.time_join import tuple_entries
from tamis.operators.time_join.replay import Replay, replay

LONG = also_long(40)
FIRST = SEED * 10_000_000


@pytest.mark.parametrize("times", LONG)
def test_nothing_is_missed_and_nothing_extra(times: int, tmp_path: Path) -> None:
    seeds = range(FIRST, FIRST + cases(0.00075) * times)
    hold(((seed, WindowedFile(seed)) for seed in seeds), tmp_path)


def _broken(folder: Path) -> tuple[int, int]:
    """Missed and extra alarms of some files."""
    return missed_and_extra(map(WindowedFile, range(FIRST + 5_000_000, FIRST + 5_000_015)), folder)


def test_windows_a_pane_too_long_are_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def greedy(keys: Any, times: Any, values: Any, slide: int, size: int, **rest: Any) -> Any:
        return retained_in_windows(keys, times, values, slide, size + slide, **rest)

    monkeypatch.setattr(tuple_entries, "retained_in_windows", greedy)
    missed, extra = _broken(tmp_path)
    assert missed > 0 and extra == 0


def test_windows_that_start_elsewhere_are_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def shifted(keys: Any, times: Any, values: Any, slide: int, size: int, **rest: Any) -> Any:
        return retained_in_windows(keys, times + slide // 2, values, slide, size, **rest)

    monkeypatch.setattr(tuple_entries, "retained_in_windows", shifted)
    missed, extra = _broken(tmp_path)
    assert missed > 0 and extra == 0


def test_an_alarm_of_another_window_stands_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def moved(*args: Any) -> Replay:
        found = replay(*args)
        if found.starts is None or found.definition.window is None:
            return found
        return replace(found, starts=found.starts + found.definition.window.slide)

    monkeypatch.setattr(verify_module, "replay", moved)
    missed, extra = _broken(tmp_path)
    assert missed > 0 and extra > 0
