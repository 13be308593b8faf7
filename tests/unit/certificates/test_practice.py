"""Certificates of conditions from practice and the rules that give them, as the page in docs/ shows them."""

from __future__ import annotations

import pytest
from tests.oracle.certificates.violation_search import claim_of
from tests.unit.certificates.practice import (
    BEGIN,
    END,
    PAGE,
    Condition,
    conditions,
    found,
    table,
)

from tamis.expressions.nodes import Column, Literal, Type, columns, conjunction

CONDITIONS = conditions()


@pytest.mark.parametrize("condition", CONDITIONS, ids=lambda c: c.name)
def test_verdicts(condition: Condition) -> None:
    judged = condition.judged()
    assert {o.alias: found(o) for o in judged.omissions} == condition.verdict
    whole = conjunction(judged.analysis.conditions)
    assert whole is not None
    domains = {
        Column(alias, column.name, column.type): _ends(condition, alias, column.name, column.type)
        for alias, stream in judged.analysis.streams.items()
        for column in stream.columns
        if column.name not in ("k", "ts")
    }
    for omission in judged.omissions:
        if omission.value is None or isinstance(omission.value, Literal):
            continue
        assert omission.sides is not None
        key = tuple(c for c in columns(whole) if c.alias == omission.alias and c.name in omission.key)
        claim = claim_of(
            whole, omission.value, omission.sides, fixed=key, domains=domains, alias=omission.alias
        )
        wrong = claim.sampled(1, fixings=200) or claim.searched(1)
        assert wrong is None, wrong


def _ends(condition: Condition, alias: str, name: str, type_: Type) -> tuple[float, float]:
    """The declared domain, read from the file and not from what the planner makes of it."""
    (stream,) = (part for part in condition.streams.split(";") if part.strip().startswith(f"{alias}:"))
    (words,) = (c.split() for c in stream.partition(":")[2].split(",") if c.split()[0] == name)
    return (0.0, 1.0) if type_ is Type.BOOLEAN else (float(words[1]), float(words[2]))


def test_there_are_enough_and_some_are_refused() -> None:
    assert len(CONDITIONS) >= 40
    assert sum(v.startswith("refused") for c in CONDITIONS for v in c.verdict.values()) >= 10


def test_the_page_shows_the_same_table() -> None:
    text = PAGE.read_text()
    assert text.partition(BEGIN)[2].partition(END)[0] == table(), (
        "run python -m tests.unit.certificates.practice"
    )
