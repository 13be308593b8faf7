"""The promise on random alerts over random recordings: nothing missed, nothing extra; and that a broken
Tamis would be found out.

`TAMIS_CASES` multiplies the number of files, `TAMIS_SEED` is the first seed; a failure names its own.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.oracle.random_alerts import RandomFile

from tamis.cli import verify as verify_command
from tamis.cli._recorded import read_recordings
from tamis.cli.verify import verify
from tamis.evaluation import replay as replay_module
from tamis.evaluation.replay import Replay, replay
from tamis.omission import kernel
from tamis.planning.plan import Definition
from tamis.query.model import Catalog
from tamis.query.parse import catalog_of
from tamis.recordings import Recording
from tamis.verification import plain_join, prune, reference

FILES = 50 * int(os.environ.get("TAMIS_CASES", "1"))
FIRST = int(os.environ.get("TAMIS_SEED", "0"))


def _loaded(seed: int, folder: Path) -> tuple[str, Catalog, dict[str, Recording]]:
    case = RandomFile(seed)
    catalog = catalog_of(case.sql)
    alerts = list(catalog.alerts.values())
    read = {source.stream for alert in alerts for source in alert.query.sources}
    files = {name: paths for name, paths in case.write(folder).items() if name in read}
    return case.sql, catalog, read_recordings(catalog, alerts, files, None)


@pytest.mark.parametrize("chunk", range(6))
def test_nothing_is_missed_and_nothing_extra(chunk: int, tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for seed in range(FIRST + chunk * FILES, FIRST + (chunk + 1) * FILES):
        sql, catalog, recordings = _loaded(seed, tmp_path)
        for verdict in verify(catalog, recordings):
            assert verdict.same, f"seed {seed}: {verdict}\n{sql}"
            seen["omitted"] += verdict.retained < verdict.tuples
            seen["alarms"] += verdict.reference_alarms > 0
            seen["fewer"] += verdict.alarms < verdict.reference_alarms
            seen["late"] += verdict.late > 0
    print(f"seeds {FIRST + chunk * FILES} to {seed}: {dict(seen)}")
    assert min(seen[what] for what in ("omitted", "alarms", "fewer", "late")) > FILES // 6, seen


def test_buckets_lose_nothing_of_the_plain_join(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pruned = 0
    for seed in range(FIRST + 100_000, FIRST + 100_000 + FILES // 2):
        sql, catalog, recordings = _loaded(seed, tmp_path)
        for alert in catalog.alerts.values():
            fast = plain_join(alert.query, recordings)
            with monkeypatch.context() as context:
                context.setattr(reference, "windows", lambda *_: {})
                plain = plain_join(alert.query, recordings)
            names = [source.alias for source in alert.query.sources]
            pruned += len(prune.windows([c.expr for c in alert.query.conjuncts], names)) > 0
            listed = [
                sorted(zip(*(one.rows[name].tolist() for name in names), strict=True))
                for one in (fast, plain)
            ]
            assert listed[0] == listed[1], f"seed {seed}\n{sql}"
    assert pruned > FILES // 8


def _totals(seeds: range, folder: Path) -> tuple[int, int]:
    missed = extra = 0
    for seed in seeds:
        _, catalog, recordings = _loaded(seed, folder)
        for verdict in verify(catalog, recordings):
            missed += verdict.missed
            extra += verdict.extra
    return missed, extra


BROKEN = range(FIRST + 200_000, FIRST + 200_015)


def test_a_longer_interval_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = kernel.retained_by_key

    def greedy(keys: Any, times: Any, values: Any, interval: int, **rest: Any) -> Any:
        return honest(keys, times, values, 4 * interval, **rest)

    monkeypatch.setattr(replay_module, "retained_by_key", greedy)
    missed, extra = _totals(BROKEN, tmp_path)
    assert missed > 0 and extra == 0


def test_omission_of_the_wrong_side_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = kernel.retained_by_key
    other = {"above": "below", "below": "above", "both": "both"}

    def mirrored(*args: Any, sides: str, **rest: Any) -> Any:
        return honest(*args, sides=other[sides], **rest)  # type: ignore[arg-type]

    monkeypatch.setattr(replay_module, "retained_by_key", mirrored)
    assert _totals(BROKEN, tmp_path)[0] > 0


def test_dropped_alarms_are_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(*args: Any) -> Replay:
        found = replay(*args)
        return replace(found, rows={alias: rows[:0] for alias, rows in found.rows.items()})

    monkeypatch.setattr(verify_command, "replay", forgetful)
    missed, extra = _totals(BROKEN, tmp_path)
    assert missed > 0 and extra == 0


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
        return replace(found, rows=rows)

    monkeypatch.setattr(verify_command, "replay", inventive)
    missed, extra = _totals(BROKEN, tmp_path)
    assert missed == 0 and extra > 50
