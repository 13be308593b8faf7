"""Answers to mistakes: each case of `answer_cases` is answered word by word as it is written there."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.answers.answer_cases import Case, cases

from tamis.query.parse import catalog_of, parse

CASES = list(cases())


@pytest.mark.parametrize("case", [c for _, c in CASES], ids=[f"{file}: {c.title}" for file, c in CASES])
def test_answer(case: Case, tmp_path: Path) -> None:
    found = [line.rstrip() for line in case.answered(tmp_path)]
    assert found == list(case.answer)


REWRITTEN = [
    c for file, c in CASES if file == "windows" and any("; write SELECT" in line for line in c.answer)
]


@pytest.mark.parametrize("case", REWRITTEN, ids=[c.title for c in REWRITTEN])
def test_a_query_that_an_answer_rewrites_is_accepted(case: Case) -> None:
    (line,) = (line for line in case.answer if "; write SELECT" in line)
    streams, _, _ = case.sql.partition("CREATE ALERT")
    parse(f"CREATE ALERT q AS {line.partition('; write ')[2]}", catalog_of(streams))
