"""Runs of `tamis verify` over random files of SQL with their recordings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.oracle.random_alerts import RandomFile

from tamis.cli.common.recordings import read_recordings
from tamis.offline.verify import verify
from tamis.planning.join_verdict import judge
from tamis.query.model import Catalog
from tamis.query.parse import catalog_of
from tamis.recordings.typed import Recording
from tamis.verification.reference import plain_join


def loaded(case: RandomFile, folder: Path) -> tuple[Catalog, dict[str, Recording]]:
    """What is defined, and the recordings of all streams that alerts read."""
    catalog = catalog_of(case.sql)
    alerts = list(catalog.alerts.values())
    read = {source.stream for alert in alerts for source in alert.query.sources}
    files = {name: paths for name, paths in case.write(folder).items() if name in read}
    recordings = read_recordings(catalog, alerts, files, None, as_arrived=True)
    drop_contradictory(catalog, recordings)
    return catalog, recordings


def drop_contradictory(catalog: Catalog, recordings: Mapping[str, Recording]) -> None:
    """Drop the alerts whose conditions contradict each other; the plain join has no row of them."""
    for name, alert in list(catalog.alerts.items()):
        if judge(alert, catalog).analysis.contradiction is not None:
            found = plain_join(alert.query, recordings)
            assert all(len(rows) == 0 for rows in found.rows.values()), alert.sql
            del catalog.alerts[name]


def hold(cases: Iterable[tuple[int, RandomFile]], folder: Path) -> None:
    """Nothing is missed and nothing extra in any of these files, by seed; and they have what can be."""
    seen: Counter[str] = Counter()
    for seed, case in cases:
        for verdict in verify(*loaded(case, folder)):
            assert verdict.same, f"seed {seed}: {verdict}\n{case.sql}"
            seen["omitted"] += verdict.retained < verdict.tuples
            seen["alarms"] += verdict.reference_alarms > 0
            seen["fewer"] += verdict.alarms < verdict.reference_alarms
            seen["late"] += verdict.late > 0
        seen["files"] += 1
    rare = [what for what in ("omitted", "alarms", "fewer", "late") if seen[what] < seen["files"] // 6]
    assert not rare, seen


def missed_and_extra(cases: Iterable[RandomFile], folder: Path) -> tuple[int, int]:
    """How many alarms are, in all of these files."""
    missed = extra = 0
    for case in cases:
        for verdict in verify(*loaded(case, folder)):
            missed += verdict.missed
            extra += verdict.extra
    return missed, extra
