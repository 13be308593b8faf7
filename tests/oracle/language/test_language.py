"""Random queries over the whole language, through the cores of edge and joiner: DuckDB's rows, within bounds.

Each query combines several constructs: derived streams, subqueries, joins, EXISTS, windows, aggregates, ASOF
joins, window functions, tables, and functions. DuckDB gets the query in SQL of its own, which is made beside
that of Tamis and not from it. The readings have NULLs, duplicates and disorder, and shards that end early.
With late readings, `tamis verify` compares.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from tests.oracle.language.constructs import NAMES, constructs
from tests.oracle.language.late_readings import verified
from tests.oracle.language.queries import RandomQuery
from tests.oracle.language.readings import TABLE
from tests.oracle.language.reference import Reference, same
from tests.oracle.language.run import Played, differences_of, kind_of, play, run
from tests.oracle.random_cases import SEED, also_long, cases

FIRST = SEED * 10_000_000
BLOCKS = 40  # of the long search, which has 100,000 queries unless TAMIS_CASES says otherwise
REFUSED = 0.12  # the greatest share of refused queries


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tables") / "r.csv"
    path.write_text(TABLE)
    return path


def _chosen(least: int) -> list[int]:
    """Seeds of queries in which each construct occurs at least this often."""
    lacking = Counter(dict.fromkeys(NAMES, least))
    found = []
    for seed in range(FIRST, FIRST + 20_000):
        has = constructs(RandomQuery(seed).sql)
        if any(lacking[name] > 0 for name in has):
            found.append(seed)
            lacking.subtract(has)
        if max(lacking.values()) <= 0:
            break
    return found


def _hold(seeds: Iterable[int], table: Path) -> Counter[str]:
    """Run all of these queries, and count what occurs."""
    reference = Reference(table)
    seen: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    for seed in seeds:
        outcome = run(seed, reference, table)
        seen["queries"] += 1
        if outcome.refusal is not None:
            seen["refused"] += 1
            refused[kind_of(outcome.refusal)] += 1
            continue
        seen.update(constructs(outcome.query.sql))
        seen["with rows"] += outcome.rows > 0
        seen["fewer alarms"] += 0 < outcome.alarms < outcome.rows
        if outcome.bound:
            seen["bounded by a number"] += 1
            seen["near the bound"] += outcome.most > 0.25 * outcome.bound
    count = seen["queries"]
    print(f"{count} queries, {seen['refused']} refused")
    print(*(f"{share / count:7.2%} {why}" for why, share in refused.most_common()), sep="\n")
    assert seen["refused"] <= max(2, REFUSED * count), refused
    assert min(seen["with rows"], seen["bounded by a number"]) > count / 2, seen
    return seen


def test_rows_are_those_of_duckdb_within_the_bound(table: Path) -> None:
    seen = _hold(_chosen(max(1, cases(1 / 12_000))), table)
    lacking = [name for name in NAMES if not seen[name]]
    assert not lacking, lacking
    assert seen["fewer alarms"] and seen["near the bound"], seen


@pytest.mark.soundness
@pytest.mark.timeout(0)
@pytest.mark.parametrize("block", range(BLOCKS))
def test_rows_of_very_many_queries(block: int, table: Path) -> None:
    count = cases(100_000 / 24_000 / BLOCKS)
    first = FIRST + 1_000_000 + block * count
    seen = _hold(range(first, first + count), table)
    assert count < 1_000 or min(seen[name] for name in NAMES) > 0, seen
    assert seen["fewer alarms"] > count / 20, seen


@pytest.mark.parametrize("times", also_long(400))
def test_verify_finds_the_same_with_late_readings(times: int, table: Path) -> None:
    seen: Counter[str] = Counter()
    first = FIRST + 600_000
    for seed in range(first, first + cases(1 / 3_000) * times):
        seen["queries"] += 1
        found = verified(seed, table)
        if found is None:
            continue
        _, sql, late, verdict = found
        assert verdict.same, f"seed {seed}: {verdict}\n{sql}"
        seen["late"] += late > 0
        seen["with rows"] += verdict.reference_alarms > 0
    assert min(seen["late"], seen["with rows"]) > seen["queries"] / 3, seen


def test_lost_and_wrong_alarms_are_found(table: Path) -> None:
    reference = Reference(table)
    seen: Counter[str] = Counter()
    r = random.Random(SEED)
    for seed in range(FIRST + 500_000, FIRST + 500_000 + cases(1 / 3_000)):
        played = play(seed, table)
        if not isinstance(played, Played) or not played.alarms:
            continue
        rows = reference.rows(played.query, played.readings)
        seen["tried"] += 1
        lost = r.choice(played.alarms)
        if played.definition is None:
            fewer = [one for one in played.alarms if one is not lost]
            missed, extra = differences_of(played, rows, fewer)
            assert (len(missed), len(extra)) == (1, 0), (seed, missed, extra)
        wrong = [_changed(one) if one is lost else one for one in played.alarms]
        missed, extra = differences_of(played, rows, wrong)
        assert extra, (seed, played.query.sql)
        # Without any alarm, each row is lost.
        missed, extra = differences_of(played, rows, [])
        assert len(missed) == len(rows) and not extra, (seed, played.query.sql)
    assert seen["tried"] > cases(1 / 6_000), seen


def _changed(alarm: Any) -> Any:
    """The alarm with another value in its first column that isn't NULL."""
    row = dict(alarm["row"])
    name = next(one for one, value in row.items() if value is not None)
    row[name] = row[name] + "?" if isinstance(row[name], str) else row[name] + 1
    assert not same(tuple(row.values()), tuple(alarm["row"].values()))
    return {**alarm, "row": row}
