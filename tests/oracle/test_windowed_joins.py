"""The promise over windows: for every combination and window of the full join that raises an alarm, Tamis
raises one of the same alert, key and window, and none that the full join doesn't have. All streams omit.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.oracle.brackets import SEED, cases
from tests.oracle.random_windows import WindowedFile

from tamis.cli import verify as verify_command
from tamis.cli._recorded import read_recordings
from tamis.cli.verify import verify
from tamis.evaluation import replay as replay_module
from tamis.evaluation.replay import Replay, replay
from tamis.omission.windows import retained_in_windows
from tamis.query.model import Catalog
from tamis.query.parse import catalog_of
from tamis.recordings import Recording

LONG = [pytest.param(1), pytest.param(40, marks=[pytest.mark.soundness, pytest.mark.timeout(0)])]
FIRST = SEED * 10_000_000


def _loaded(seed: int, folder: Path) -> tuple[str, Catalog, dict[str, Recording]]:
    case = WindowedFile(seed)
    catalog = catalog_of(case.sql)
    alerts = list(catalog.alerts.values())
    read = {source.stream for alert in alerts for source in alert.query.sources}
    files = {name: paths for name, paths in case.write(folder).items() if name in read}
    return case.sql, catalog, read_recordings(catalog, alerts, files, None)


@pytest.mark.parametrize("times", LONG)
def test_nothing_is_missed_and_nothing_extra(times: int, tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    files = cases(0.0015) * times
    for seed in range(FIRST, FIRST + files):
        sql, catalog, recordings = _loaded(seed, tmp_path)
        for verdict in verify(catalog, recordings):
            assert verdict.same, f"seed {seed}: {verdict}\n{sql}"
            seen["omitted"] += verdict.retained < verdict.tuples
            seen["alarms"] += verdict.reference_alarms > 0
            seen["fewer"] += verdict.alarms < verdict.reference_alarms
            seen["late"] += verdict.late > 0
    assert min(seen[what] for what in ("omitted", "alarms", "fewer", "late")) >= files // 6, seen


def _totals(seeds: range, folder: Path) -> tuple[int, int]:
    missed = extra = 0
    for seed in seeds:
        _, catalog, recordings = _loaded(seed, folder)
        for verdict in verify(catalog, recordings):
            missed += verdict.missed
            extra += verdict.extra
    return missed, extra


BROKEN = range(FIRST + 5_000_000, FIRST + 5_000_015)


def test_windows_a_pane_too_long_are_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def greedy(keys: Any, times: Any, values: Any, slide: int, size: int, **rest: Any) -> Any:
        return retained_in_windows(keys, times, values, slide, size + slide, **rest)

    monkeypatch.setattr(replay_module, "retained_in_windows", greedy)
    missed, extra = _totals(BROKEN, tmp_path)
    assert missed > 0 and extra == 0


def test_windows_that_start_elsewhere_are_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def shifted(keys: Any, times: Any, values: Any, slide: int, size: int, **rest: Any) -> Any:
        return retained_in_windows(keys, times + slide // 2, values, slide, size, **rest)

    monkeypatch.setattr(replay_module, "retained_in_windows", shifted)
    missed, extra = _totals(BROKEN, tmp_path)
    assert missed > 0 and extra == 0


def test_an_alarm_of_another_window_stands_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def moved(*args: Any) -> Replay:
        found = replay(*args)
        if found.starts is None or found.definition.window is None:
            return found
        return replace(found, starts=found.starts + found.definition.window.slide)

    monkeypatch.setattr(verify_command, "replay", moved)
    missed, extra = _totals(BROKEN, tmp_path)
    assert missed > 0 and extra > 0
