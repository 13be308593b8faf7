"""Messages between the registry and its proving processes, as pickles.

Both ends are the same release of Tamis. The registry starts the process, and only the two have the pipe.
"""

from __future__ import annotations

from dataclasses import dataclass

from tamis.errors import TamisError
from tamis.query.file_access import FileAccess
from tamis_registry.core.statements.reading import Read
from tamis_registry.proving.replica import Difference


@dataclass(frozen=True)
class Settings:
    """The first message to a process: limits of its memory, and of the processor time for one text."""

    file_access: FileAccess
    seconds: int
    data_bytes: int


@dataclass(frozen=True)
class Request:
    """A text to read, with the changes that the replica needs first."""

    difference: Difference
    text: str
    file: str | None
    keep: bool


@dataclass(frozen=True)
class Progress:
    """The query that is being proved."""

    query: str
    where: str


@dataclass(frozen=True)
class Failed:
    """The text has mistakes, is refused, or made the process fail. In the last case `error` describes it in
    general words.
    """

    error: TamisError


Answer = Progress | Failed | Read
