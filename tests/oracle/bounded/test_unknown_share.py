"""Few random queries get the verdict *unknown*: with fixed seeds, no more than when this was measured."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.oracle.bounded import timeless_queries
from tests.oracle.bounded.unknown_share import shares, write_table
from tests.oracle.operators.standing import test_application_time

COUNT = 60
MOST = {"rows": 2, "aggregates": 11, "expressions and unions": 5, "checks": 8, "application time": 12}


def test_few_random_queries_are_undecided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_table()
    for module in (timeless_queries, test_application_time):
        monkeypatch.setattr(module, "CONSTANT", 0)
    found = {name: verdicts["unknown"] for name, verdicts, _ in shares(COUNT)}
    assert all(found[name] <= most for name, most in MOST.items()), found
    assert set(found) == set(MOST)
