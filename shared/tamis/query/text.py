"""SQL text with positions, and how it falls into statements.

Statements are cut apart before anything is parsed, so that a syntax error in one can't hide the mistakes of
the next.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from tamis.errors import Position, SqlError

# A file of queries is written by hand; past this it is data that was passed by mistake.
LARGEST_TEXT = 1 << 20

_NEXT = re.compile(
    r"""'(?:[^']|'')*(?P<string>')?|"(?:[^"]|"")*(?P<name>")?|--[^\n]*|(?P<comment>/\*)|(?P<end>;)"""
    # Marks of other dialects' templates, parameters and escapes, for which this one has no use.
    r"""|(?P<foreign>[{}\\`$?@#\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufeff])"""
)
_COMMENT = re.compile(r"/\*|\*/")


@dataclass(frozen=True)
class Piece:
    """One statement's text, from offset `start` to `end` (without the semicolon)."""

    start: int
    end: int
    damaged: bool = False


class Text:
    """SQL text with the line and column of every offset."""

    def __init__(self, text: str, file: str | None = None) -> None:
        """`file` is the name by which positions call the text."""
        self.text = text
        self.file = file
        self._lines = [0, *(m.end() for m in re.finditer("\n", text))]

    def position(self, offset: int) -> Position:
        """Line and column, both from 1, of an offset."""
        line = bisect_right(self._lines, offset)
        return Position(line, offset - self._lines[line - 1] + 1, self.file)

    def error(self, what: str, offset: int, hint: str) -> SqlError:
        """A mistake at an offset."""
        return SqlError(what, self.position(offset), hint)


def split(text: Text, errors: list[SqlError]) -> Iterator[Piece]:
    """The statements of a text; strings, quoted names and comments may hold semicolons.

    What follows an unclosed string, name or comment can't be told apart from its inside: it is reported in
    `errors` and ends the text. So are characters that no statement holds; they leave the piece damaged.
    """
    body, start, at, damaged = text.text, 0, 0, False
    while match := _NEXT.search(body, at):
        at = match.end()
        opening = match.group()[0]
        if match["end"]:
            yield Piece(start, match.start(), damaged)
            start, damaged = at, False
        elif match["foreign"]:
            what = f"the character {opening!r} has no meaning here"
            errors.append(
                text.error(what, match.start(), "remove it, or quote the name or text that holds it")
            )
            damaged = True
        elif match["comment"]:
            closed = _comment_end(body, at)
            if closed is None:
                errors.append(text.error("this comment is never closed", match.start(), "close it with */"))
                return
            at = closed
        elif opening in "'\"" and not (match["string"] or match["name"]):
            what = "string" if opening == "'" else "quoted name"
            errors.append(
                text.error(f"this {what} is never closed", match.start(), f"close it with {opening}")
            )
            return
    yield Piece(start, len(body), damaged)


def _comment_end(body: str, at: int) -> int | None:
    """Where a comment that was opened before `at` ends; comments nest, as in Postgres."""
    depth = 1
    while depth:
        match = _COMMENT.search(body, at)
        if match is None:
            return None
        depth += 1 if match.group() == "/*" else -1
        at = match.end()
    return at
