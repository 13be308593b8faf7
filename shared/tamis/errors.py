"""Exceptions of Tamis, in one tree.

    TamisError
    ├── InputError            a mistake in the user's input: text, request or file (HTTP 400)
    │   ├── SqlError          one mistake in a SQL text, with its position
    │   └── SqlErrors         all mistakes of one text
    ├── RefusedError          a valid request that Tamis doesn't carry out (in use, of another release)
    │   └── NotAcceptedError  a query whose memory is not proven to be bounded (HTTP 422)
    └── UnavailableError      something that Tamis needs is not available; a retry may succeed

If an exception ends a command, its exit code is 2, or 1 for NotAcceptedError. The variable
TAMIS_EXIT_UNAVAILABLE sets another code for errors that a retry may solve.

Every error says what was wrong, where, and what to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tamis.printable import printable

EXIT_INPUT = 2  # wrong input: a retry would end in the same way
# The environment variable with the exit code that tells a supervisor to try again.
EXIT_UNAVAILABLE = "TAMIS_EXIT_UNAVAILABLE"


class TamisError(Exception):
    """Base class: `what` was wrong, `where`, and a `hint` what to do."""

    retriable = False
    exit_code = EXIT_INPUT  # of a command that this error ends

    def __init__(self, what: str, *, where: str | None = None, hint: str | None = None) -> None:
        self.what = what
        self.where = where
        self.hint = hint
        super().__init__(str(self))

    @property
    def shown(self) -> str:
        """The message for a terminal: a mistake in a text shows its line with a mark below the place."""
        return str(self)

    def __reduce__(self) -> tuple[object, ...]:
        # Pickling for another process must not call the constructor, whose parameters differ by class.
        return _rebuilt, (type(self), self.args, self.__dict__)

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        advice = f"; {self.hint}" if self.hint else ""
        return f"{place}{self.what}{advice}"


def _rebuilt(kind: type[TamisError], args: tuple[object, ...], state: dict[str, object]) -> TamisError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class InputError(TamisError, ValueError):
    """A mistake in the user's input: a text, a request or a file."""


class RefusedError(TamisError):
    """A valid request that Tamis doesn't carry out; the message says why."""


class NotAcceptedError(RefusedError):
    """A valid query that Tamis doesn't accept: its memory is not proven to be bounded, or one of its
    conditions is not supported.
    """

    exit_code = 1


class UnavailableError(TamisError):
    """Something that Tamis needs is not available; a retry may succeed."""

    retriable = True


@dataclass(frozen=True, order=True)
class Position:
    """A position in a text: line and column, both from 1, and the file if it is known. `marked` shows it: the
    line of the text, and a mark below the column.

    >>> str(Position(3, 7)), str(Position(3, 7, "alerts.sql"))
    ('line 3, column 7', 'alerts.sql:3:7')
    """

    line: int
    column: int
    file: str | None = field(default=None, compare=False)
    marked: str = field(default="", compare=False, repr=False)

    def __str__(self) -> str:
        if self.file is not None:
            return f"{self.file}:{self.line}:{self.column}"
        return f"line {self.line}, column {self.column}"


class SqlError(InputError):
    """One mistake in a SQL text."""

    def __init__(self, what: str, position: Position | None = None, hint: str | None = None) -> None:
        self.position = position
        # It may have a name or a text of somebody else, in which a line break would begin another message.
        super().__init__(printable(what), where=str(position) if position else None, hint=hint)

    @property
    def shown(self) -> str:
        """The message, and the line of the text with a mark below the place."""
        return f"{self}\n{self.position.marked}" if self.position and self.position.marked else str(self)


class SqlErrors(InputError):
    """All mistakes of one SQL text, in the order of their positions."""

    def __init__(self, errors: Sequence[SqlError]) -> None:
        self.errors = tuple(sorted(errors, key=lambda e: e.position or Position(0, 0)))
        super().__init__("\n".join(str(e) for e in self.errors))

    @property
    def shown(self) -> str:
        """Each message with the line of the text and a mark below the place."""
        return "\n".join(error.shown for error in self.errors)
