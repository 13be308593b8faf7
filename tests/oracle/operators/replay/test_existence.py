"""Alerts with EXISTS, NOT EXISTS and NO READING over recordings: against nested loops, and against DuckDB."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.oracle.random_cases import SEED, also_long, cases
from tests.oracle.random_existence import RandomExistence

from tamis.analysis.topology import omission_interval
from tamis.cli.common.recordings import read_recordings
from tamis.errors import NotAcceptedError
from tamis.offline.verify import verify
from tamis.operators.time_join.replay import Replay, replay
from tamis.plan.model import Definition
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of
from tamis.recordings.typed import Recording

LONG = also_long(40)
FIRST = SEED * 10_000_000

Tuple = tuple[Any, ...]


def played(case: RandomExistence, folder: Path) -> tuple[Replay, Definition, dict[str, Recording]] | None:
    """The rows of Tamis; None for an alert that is refused since its conditions contradict each other."""
    catalog = catalog_of(case.sql)
    alert = catalog.alerts["q"]
    try:
        plan = first_plan(catalog)
    except NotAcceptedError:
        return None
    read = {source.stream for source in alert.query.sources}
    files = {name: paths for name, paths in case.write(folder).items() if name in read}
    recordings = read_recordings(catalog, [alert], files, None, as_arrived=True)
    return replay(plan.definitions[0], plan.streams, recordings), plan.definitions[0], recordings


def rows_of(case: RandomExistence, found: Replay, recordings: dict[str, Recording]) -> set[Tuple]:
    """The rows as the values of their tuples."""
    sides = []
    for alias, stream in case.sources.items():
        listed = [recordings[stream].columns[name].to_list() for name in ("k", "ts", "x", "y")]
        sides.append([tuple(column[row] for column in listed) for row in found.rows[alias].tolist()])
    return set(zip(*sides, strict=True))


def expected_rows(case: RandomExistence, **limits: Any) -> set[Tuple]:
    """The rows by nested loops, in the same form."""
    return {
        tuple(tuple(row[alias][name] for name in ("k", "ts", "x", "y")) for alias in case.sources)
        for row in case.rows(**limits)
    }


def stands_for(case: RandomExistence, definition: Definition, one: Tuple, other: Tuple) -> bool:
    """Tell if a row may replace another one: each tuple has the same key, and lies within the omission
    interval. For a silence, the times are equal.
    """
    intervals = {source.alias: 0 if case.silent else source.interval for source in definition.inputs}
    return all(
        mine[0] == yours[0] and abs(mine[1] - yours[1]) <= intervals[alias]
        for alias, mine, yours in zip(case.sources, one, other, strict=True)
    )


@pytest.mark.parametrize("times", LONG)
def test_rows_are_those_of_nested_loops(times: int, tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    count = cases(0.004) * times
    for seed in range(FIRST, FIRST + count):
        case = RandomExistence(seed)
        found = played(case, tmp_path)
        expected = expected_rows(case)
        if found is None:
            seen["refused"] += 1
            assert not expected or "NOT EXISTS" in case.sql or "LEFT" in case.sql or "ANTI" in case.sql, (
                case.sql
            )
            continue
        ours, definition, recordings = found
        rows = rows_of(case, ours, recordings)
        assert len(rows) == len(ours) or any(len(set(map(str, r))) < len(r) for r in case.recordings.values())
        assert rows <= expected, f"seed {seed}: extra {rows - expected}\n{case.sql}"
        lost = [
            row for row in expected - rows if not any(stands_for(case, definition, one, row) for one in rows)
        ]
        assert not lost, f"seed {seed}: missed {lost}\n{case.sql}"
        omits = any(source.interval for source in definition.inputs if source.alias in case.sources)
        assert omits or rows == expected, f"seed {seed}"
        seen["rows"] += bool(rows)
        seen["omitted"] += ours.retained < ours.tuples
        seen["silent"] += case.silent and bool(rows)
        for test in case.tests:
            seen[test.form] += 1
    rare = [what for what in ("left", "anti", "semi", "filtered silence") if seen[what] < count // 40]
    assert not rare and min(seen["rows"], seen["omitted"]) > count // 3 and seen["refused"] < count // 4, seen


@pytest.mark.parametrize("times", LONG)
def test_verify_finds_nothing_missed_and_nothing_extra(times: int, tmp_path: Path) -> None:
    count = cases(0.0008) * times
    raised = 0
    for seed in range(FIRST + 1_000_000, FIRST + 1_000_000 + count):
        case = RandomExistence(seed)
        catalog = catalog_of(case.sql)
        try:
            first_plan(catalog)
        except NotAcceptedError:
            continue
        alert = catalog.alerts["q"]
        read = {source.stream for source in alert.query.sources}
        files = {name: paths for name, paths in case.write(tmp_path).items() if name in read}
        (verdict,) = verify(catalog, read_recordings(catalog, [alert], files, None, as_arrived=True))
        assert verdict.same, f"seed {seed}: {verdict}\n{case.sql}"
        raised += verdict.alarms > 0
    assert raised > count // 3


def _wrong(folder: Path, seeds: range) -> Counter[str]:
    """The number of cases whose rows are not those of nested loops, of silences and of others."""
    wrong: Counter[str] = Counter()
    for seed in seeds:
        case = RandomExistence(seed)
        found = played(case, folder)
        if found is not None:
            rows, expected = rows_of(case, found[0], found[2]), expected_rows(case)
            lost = [r for r in expected - rows if not any(stands_for(case, found[1], o, r) for o in rows)]
            wrong["silences" if case.silent else "others"] += bool(lost) or not rows <= expected
    return wrong


def test_intervals_that_are_too_long_are_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = omission_interval

    def longer(*args: Any) -> int | None:
        found = exact(*args)
        return None if found is None else found + 2_000_000

    monkeypatch.setattr("tamis.planning.omission_rules.omission_interval", longer)
    wrong = _wrong(tmp_path, range(FIRST + 2_000_000, FIRST + 2_000_050))
    assert wrong["silences"] and wrong["others"]
