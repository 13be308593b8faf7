"""Files of SQL as input of commands."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tamis.cli.common.output import say
from tamis.errors import InputError
from tamis.offline.statements import parsed
from tamis.query.model import Catalog, Statement
from tamis.wording.file_text import encoding_problem

STANDARD_INPUT = "-"


def statements_of(source: str) -> tuple[Catalog, list[Statement]]:
    """The statements of a file of SQL, and the catalogue after all of them.

    Raises SqlErrors with every mistake at FILE:line:column.
    """
    return parsed(read_sql(source), file_name(source), say)


def show_notices(notices: Sequence[str]) -> None:
    """Print notices on files of patterns to standard error."""
    for notice in notices:
        say(notice)


def file_name(source: str) -> str:
    """The name of a file of SQL in messages."""
    return "<stdin>" if source == STANDARD_INPUT else source


def read_sql(source: str) -> str:
    """The text of a file of SQL; `-` is standard input."""
    try:
        data = sys.stdin.buffer.read() if source == STANDARD_INPUT else Path(source).read_bytes()
        return data.decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror}", where=source) from None
    except UnicodeDecodeError as error:
        problem = encoding_problem(data)
        hint = "save it as UTF-8" if problem is None else problem[1]
        raise InputError(f"is not UTF-8 at byte {error.start}", where=source, hint=hint) from None
