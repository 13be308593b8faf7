"""Alerts with EXISTS, NOT EXISTS and NO READING through the cores of edge and joiner, against nested loops.

The fleet is that of `test_windows_in_the_fleet`: shards lag behind each other, edges and joiner restart. Late
tuples make two differences. A late tuple under NOT EXISTS may come after a row was given, and a late row is
left out if it could have been decided before.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.oracle.fleet.test_windows_in_the_fleet import Fleet
from tests.oracle.operators.replay.test_existence import expected_rows, stands_for
from tests.oracle.random_cases import SEED, also_long, cases
from tests.oracle.random_existence import RandomExistence, Row

from tamis.errors import NotAcceptedError
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of
from tamis.recordings.typed import Recording, read_recording

LONG = also_long(40)
FIRST = SEED * 10_000_000 + 7_000_000


class Given(dict[str, dict[str, Any]]):
    """Alarms by id, and how often each was given."""

    def __init__(self) -> None:
        super().__init__()
        self.times: Counter[str] = Counter()

    def __setitem__(self, id_: str, alarm: dict[str, Any]) -> None:
        self.times[id_] += 1
        super().__setitem__(id_, alarm)


class SteadyFleet(Fleet):
    """A fleet whose edges don't restart, so that no tuple is sent twice. Its joiner restarts."""

    def crash(self, stream: str) -> None:
        """Do nothing."""


def punctual(case: RandomExistence, recordings: dict[str, Recording]) -> dict[str, list[Row]]:
    """The tuples that were not late, by stream."""
    found = {name: list(rows) for name, rows in case.recordings.items()}
    for name, recording in recordings.items():
        late = recording.late.tolist()
        found[name] = [row for row, behind in zip(case.recordings[name], late, strict=True) if not behind]
    return found


@pytest.mark.parametrize("times", LONG)
def test_rows_are_those_of_nested_loops(times: int, tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    count = cases(0.0012) * times
    for seed in range(FIRST, FIRST + count):
        case = RandomExistence(seed)
        catalog = catalog_of(case.sql)
        read = sorted({source.stream for source in catalog.alerts["q"].query.sources})
        files = case.write(tmp_path)
        recordings = {
            name: read_recording(catalog.streams[name], files[name], as_arrived=True) for name in read
        }
        try:
            plan = first_plan(catalog, shards={f"{name}:e/file": name for name in read})
        except NotAcceptedError:
            continue
        steady = seed % 2 == 0 and not case.late
        fleet = (SteadyFleet if steady else Fleet)(plan, recordings, random.Random(seed))
        fleet.alarms = given = Given()
        fleet.play()
        if steady:
            assert all(times == 1 for times in given.times.values()), f"seed {seed}\n{case.sql}"
            seen["once"] += bool(given)
        (definition,) = plan.definitions
        rows = {
            tuple((alarm["tuples"][alias].get("k"), alarm["tuples"][alias]["ts"]) for alias in case.sources)
            for alarm in fleet.alarms.values()
        }
        on_time = punctual(case, recordings)
        negated = any(test.negated for test in case.tests)
        # A late witness may be missing when a row is decided, and a late row may be left out.
        possible = expected_rows(case) | (expected_rows(case, witnesses=on_time) if negated else set())
        certain = expected_rows(case, outer=on_time) & expected_rows(case, outer=on_time, witnesses=on_time)
        seen["late"] += len(possible) > len(certain)

        def short(row: tuple[tuple[object, ...], ...]) -> tuple[tuple[object, ...], ...]:
            return tuple(one[:2] for one in row)

        assert rows <= set(map(short, possible)), (
            f"seed {seed}: extra {rows - set(map(short, possible))}\n{case.sql}"
        )
        lost = [
            row
            for row in set(map(short, certain)) - rows
            if not any(stands_for(case, definition, one, row) for one in rows)
        ]
        assert not lost, f"seed {seed}: missed {lost}\n{case.sql}"
        seen["rows"] += bool(rows)
        seen["decided"] += bool(rows) and negated
    assert min(seen["rows"], seen["decided"], seen["once"]) > count // 8 and seen["late"], seen
