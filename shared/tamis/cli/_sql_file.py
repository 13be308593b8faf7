"""The file of SQL that several commands take."""

from __future__ import annotations

import sys
from pathlib import Path

from tamis.errors import InputError

STANDARD_INPUT = "-"


def read_sql(source: str) -> str:
    """The text of a file of SQL, `-` for standard input."""
    try:
        data = sys.stdin.buffer.read() if source == STANDARD_INPUT else Path(source).read_bytes()
        return data.decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror}", where=source) from None
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8 at byte {error.start}", where=source) from None
