"""Reasons of a plan version that statements give: their first lines."""

from __future__ import annotations

from collections.abc import Iterable

from tamis.query.model import Drop, Explain, Redefine, SetPaused, Show, Statement
from tamis_registry.core.statements.outcomes import Outcome

MOST_CHARACTERS = 120

_NOTHING = ("unchanged", "kept", "shown", "explained")


def reasons(statements: Iterable[Statement], outcomes: Iterable[Outcome]) -> tuple[str, ...]:
    """The first line of each statement that has changed something."""
    pairs = zip(statements, outcomes, strict=True)
    return tuple(_line(statement) for statement, outcome in pairs if outcome.result not in _NOTHING)


def _line(statement: Statement) -> str:
    match statement:
        case Drop():
            text = f"DROP {statement.kind.upper()} {statement.name}"
        case SetPaused():
            text = f"{'PAUSE' if statement.paused else 'RESUME'} ALERT {statement.name}"
        case Redefine(verb="alter"):
            text = f"ALTER {statement.kind.upper()} {statement.name}"
        case Redefine():
            text = f"CREATE OR REPLACE {statement.kind.upper()} {statement.name}"
        case Show() | Explain():
            text = ""  # they change nothing
        case _:
            text = statement.sql.partition("\n")[0].rstrip()
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"
