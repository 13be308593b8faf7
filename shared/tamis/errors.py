"""The one tree of errors that Tamis raises on purpose.

    TamisError
    ├── InputError          what a user typed, sent or pointed to is wrong (exit code 2, HTTP 400)
    │   ├── SqlError        one mistake in SQL text, with its position
    │   └── SqlErrors       all the mistakes of one text
    ├── RefusedError        understood, but Tamis will not do it (not bounded, in use, not yet built)
    └── UnavailableError    something that Tamis needs is away; trying again may help

Every error says what was wrong, where, and what to do about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class TamisError(Exception):
    """Base class: `what` went wrong, `where`, and `hint`, what to do about it."""

    retriable = False

    def __init__(self, what: str, *, where: str | None = None, hint: str | None = None) -> None:
        self.what = what
        self.where = where
        self.hint = hint
        super().__init__(str(self))

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        advice = f"; {self.hint}" if self.hint else ""
        return f"{place}{self.what}{advice}"


class InputError(TamisError, ValueError):
    """What a user typed, sent or pointed to is wrong."""


class RefusedError(TamisError):
    """Understood, but Tamis will not do it; the message says why."""


class UnavailableError(TamisError):
    """Something that Tamis needs is away; trying again may help."""

    retriable = True


@dataclass(frozen=True, order=True)
class Position:
    """A place in a text: line and column, both from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


class SqlError(InputError):
    """One mistake in SQL text."""

    def __init__(self, what: str, position: Position | None = None, hint: str | None = None) -> None:
        self.position = position
        super().__init__(what, where=str(position) if position else None, hint=hint)


class SqlErrors(InputError):
    """All the mistakes of one SQL text, in the order of their positions."""

    def __init__(self, errors: Sequence[SqlError]) -> None:
        self.errors = tuple(sorted(errors, key=lambda e: e.position or Position(0, 0)))
        super().__init__("\n".join(str(e) for e in self.errors))
