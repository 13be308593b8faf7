"""`tamis verify` over random queries with similar(…) and window functions."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from tests.oracle.operators.replay.verify_runs import drop_contradictory
from tests.oracle.random_cases import SEED, also_long, cases
from tests.oracle.watching.random_queries import RandomQueries

from tamis.cli.common.recordings import read_recordings
from tamis.errors import NotAcceptedError
from tamis.expressions.vectors import Vector
from tamis.offline.verify import verify
from tamis.query.model import Catalog
from tamis.query.parse import catalog_of
from tamis.recordings.typed import Recording


def loaded(case: RandomQueries, folder: Path) -> tuple[Catalog, dict[str, Recording]]:
    """The catalogue, and the recordings that the alert reads."""
    catalog = catalog_of(case.sql)
    alerts = list(catalog.alerts.values())
    read = {stream.shown_name for one in alerts for stream in one.query.watched}
    read |= {source.stream for one in alerts for source in one.query.sources}
    files = {name: paths for name, paths in case.write(folder).items() if name in read}
    return catalog, read_recordings(catalog, alerts, files, None, as_arrived=True)


@pytest.mark.parametrize("times", also_long(200))
def test_nothing_is_missed_and_nothing_extra(times: int, tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for seed in range(SEED, SEED + cases(0.00125) * times):
        case = RandomQueries(seed)
        catalog, recordings = loaded(case, tmp_path)
        try:
            (verdict,) = verify(catalog, recordings)
        except NotAcceptedError as error:
            if "never has a row" not in str(error):
                raise
            drop_contradictory(catalog, recordings)
            assert not catalog.alerts, case.sql
            continue
        assert verdict.same, f"seed {seed}: {verdict}\n{case.sql}"
        seen["cases"] += 1
        for kind, is_of in case.of.items():
            seen[kind] += is_of and verdict.reference_alarms > 0
        seen["alarms"] += verdict.reference_alarms > 0
        seen["omitted"] += verdict.retained < verdict.tuples
        seen["at_threshold"] += verdict.at_threshold > 0
    few = [what for what in ("alarms", "omitted") if seen[what] < seen["cases"] // 4]
    few += [what for what in ("distinct", "grouped", "join", "over") if seen[what] == 0]
    assert not few, seen
    assert seen["at_threshold"] or seen["cases"] < 500, seen


@pytest.mark.parametrize("times", also_long(100))
def test_wrong_columns_make_a_difference(times: int, tmp_path: Path) -> None:
    wrong = found = 0
    for seed in range(SEED, SEED + cases(0.001) * times):
        case = RandomQueries(seed)
        catalog, recordings = loaded(case, tmp_path)
        drop_contradictory(catalog, recordings)
        if not catalog.alerts:
            continue
        (right,) = verify(catalog, recordings)
        if right.reference_alarms < 3:
            continue
        # No window matches.
        broken = {name: _without_matches(one) for name, one in recordings.items()}
        (verdict,) = verify(catalog, broken)
        wrong += 1
        found += not verdict.same
    assert found > 0.7 * wrong > 3


def _without_matches(recording: Recording) -> Recording:
    none = {
        column.name: Vector.nulls(column.type, len(recording))
        for watch in recording.stream.watches
        for column in watch.columns
    }
    return replace(recording, columns={**recording.columns, **none})
