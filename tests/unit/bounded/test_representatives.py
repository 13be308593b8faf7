"""Verdicts on queries of which few tuples stand for all tuples of a stream, with their numbers of entries."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from tamis.errors import SqlErrors
from tamis.planning.explain import explain
from tamis.query.model import AlertDef, Explain
from tamis.query.parse import catalog_of, parse


class Case(NamedTuple):
    """A query, with the verdicts that are correct."""

    name: str
    streams: str
    sql: str
    expected: tuple[str, ...]


def _cases() -> list[Case]:
    text = (Path(__file__).parents[2] / "fixtures/bounded/representatives.sql").read_text()
    found, streams = [], ""
    for section in text.split("\n---- ")[1:]:
        name, _, body = section.partition("\n")
        if name.startswith("streams "):
            streams = body
            continue
        sql, _, expected = body.partition("--! ")
        found.append(Case(name, streams, sql.strip(), tuple(expected.strip().split(" or "))))
    return found


CASES = _cases()

# These cases aren't decided yet, or their number is too large. Remove a name as soon as its test fails
# because the case is decided.
LATER = frozenset(
    {
        # UNION, EXISTS and application time.
        "UNION of two comparisons",
        "a sum in application time",
        "a comparison in application time",
        "EXISTS: an earlier tuple",
        "EXISTS of a later tuple, with DISTINCT",
    }
)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_verdict_and_the_number_of_entries(case: Case) -> None:
    decided = _decided(case)
    if case.name not in LATER:
        assert decided in case.expected
        return
    assert decided not in case.expected, f"{case.name} is decided: remove it from LATER"
    verdict, _, entries = decided.partition(" ")
    wanted, _, necessary = case.expected[0].partition(" ")
    if verdict == "bounded":
        assert wanted == "bounded", "a bound for a query that needs unlimited memory"
        assert int(entries) > int(necessary)


def test_later_names_cases() -> None:
    assert LATER.issubset(case.name for case in CASES)


def _decided(case: Case) -> str:
    """The verdict, with the number of entries if it is bounded; `refused` by the parser."""
    catalog = catalog_of(case.streams)
    try:
        (statement,) = parse(f"EXPLAIN {case.sql}", catalog)
    except SqlErrors:
        return "refused"
    assert isinstance(statement, Explain) and isinstance(statement.target, AlertDef)
    memory = explain(catalog, statement.target).memory
    return f"bounded {memory.bound}" if memory.verdict == "bounded" else memory.verdict
