"""The one tree of errors that Tamis raises on purpose.

    TamisError
    ├── InputError            what a user typed, sent or pointed to is wrong (HTTP 400)
    │   ├── SqlError          one mistake in SQL text, with its position
    │   └── SqlErrors         all the mistakes of one text
    ├── RefusedError          understood, but Tamis will not do it (in use, of another release)
    │   └── NotAcceptedError  a query that is not proven to be bounded: the answer is no (HTTP 422)
    └── UnavailableError      something that Tamis needs is away; trying again may help

A command that one of them ends has exit code 2, or 1 where the answer is no.

Every error says what was wrong, where, and what to do about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


class TamisError(Exception):
    """Base class: `what` went wrong, `where`, and `hint`, what to do about it."""

    retriable = False
    exit_code = 2  # of a command that ends by it

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


class NotAcceptedError(RefusedError):
    """A query that Tamis does not accept: its memory is not proven to be bounded, or a condition of it can't
    be executed. Nothing is wrong with what was asked; the answer is no.
    """

    exit_code = 1


class UnavailableError(TamisError):
    """Something that Tamis needs is away; trying again may help."""

    retriable = True


@dataclass(frozen=True, order=True)
class Position:
    """A place in a text: line and column, both from 1, and the text's file where one is known.

    >>> str(Position(3, 7)), str(Position(3, 7, "alerts.sql"))
    ('line 3, column 7', 'alerts.sql:3:7')
    """

    line: int
    column: int
    file: str | None = field(default=None, compare=False)

    def __str__(self) -> str:
        if self.file is not None:
            return f"{self.file}:{self.line}:{self.column}"
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
