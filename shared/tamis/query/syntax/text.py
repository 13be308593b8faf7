"""SQL text with positions, split into statements.

The text is split before anything is parsed, so that a syntax error in one statement can't hide the mistakes
in the next one.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from tamis.errors import Position, SqlError
from tamis.query.unsupported import MATCH_RECOGNIZE

# People write files of queries by hand; a larger text is data that was passed by mistake.
LARGEST_TEXT = 1 << 20
# About as many short statements as such a text can hold; each one takes some work before it is parsed.
MOST_STATEMENTS = 10_000
# People correct the first few mistakes; a file of random text must not produce megabytes of messages.
MOST_ERRORS = 200
# The characters around a mistake that its message shows: a statement with a pattern may be one long line.
_BEFORE, _BEHIND = 60, 40

_NEXT = re.compile(
    r"""'(?:[^']|'')*(?P<string>')?|"(?:[^"]|"")*(?P<name>")?|--[^\n]*|(?P<comment>/\*)|(?P<end>;[;\s]*)"""
    # Signs of other dialects' templates, parameters and escapes, which this dialect doesn't have. A pair of
    # backquotes is one mistake.
    r"""|(?P<foreign>`[^`;\n]*`|[{}\\`$?@#\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufeff])"""
)
_MATCH = re.compile(r"\bMATCH_RECOGNIZE\b", re.IGNORECASE)
_BLANK = re.compile(r"\s*")
_COMMENT = re.compile(r"/\*|\*/")


@dataclass(frozen=True)
class Piece:
    """The text of one statement, from offset `start` to `end`, without the semicolon. `damaged`: a
    character in it was reported as a mistake.
    """

    start: int
    end: int
    damaged: bool = False


class Text:
    """A SQL text, with the line and column of every offset."""

    def __init__(self, text: str, file: str | None = None) -> None:
        """`file` is the file name in positions."""
        self.text = text
        self.file = file
        self._lines = [0, *(m.end() for m in re.finditer("\n", text))]

    def position(self, offset: int) -> Position:
        """The line and column of an offset, both from 1."""
        line = bisect_right(self._lines, offset)
        start = self._lines[line - 1]
        return Position(line, offset - start + 1, self.file, _marked(self.text, start, offset))

    def offset(self, position: Position) -> int:
        """The offset of a position in this text."""
        return self._lines[position.line - 1] + position.column - 1

    def error(self, what: str, offset: int, hint: str) -> SqlError:
        """A mistake at an offset."""
        return SqlError(what, self.position(offset), hint)

    def too_many(self, offset: int) -> SqlError:
        """The last mistake that is reported, at the offset where reading stops after too many mistakes."""
        what = f"more than {MOST_ERRORS} mistakes: the rest of the text was not read"
        return self.error(what, offset, "correct the mistakes above first")


def split(text: Text, errors: list[SqlError]) -> Iterator[Piece]:
    """The statements of a text, split at semicolons outside strings, quoted names and comments.

    Mistakes are appended to `errors`. An unclosed string, name or comment ends the text, since nothing
    tells its inside from what follows. A character that no statement can contain makes its piece damaged.
    Too many of them end the text, too; `errors` then has more than `MOST_ERRORS` items.
    """
    body, start, at, damaged = text.text, 0, 0, False
    multiline: dict[str, int] = {}  # by the quote: start of the first quoted text that has several lines
    while match := _NEXT.search(body, at):
        at = match.end()
        opening = match.group()[0]
        if match["end"]:
            if not _BLANK.fullmatch(body, start, match.start()):
                yield Piece(start, match.start(), damaged)
            start, damaged = at, False
        elif match["foreign"]:
            if len(errors) >= MOST_ERRORS:
                errors.append(text.too_many(match.start()))
                return
            pattern = _MATCH.search(body, start, match.start()) if opening in "{}" else None
            if pattern is not None:
                # Quantifiers of its patterns have braces: the whole clause is one mistake.
                if not damaged:
                    errors.append(text.error(MATCH_RECOGNIZE[0], pattern.start(), MATCH_RECOGNIZE[1]))
                damaged = True
                continue
            what = f"unexpected character {opening!r}"
            hint = "remove it, or put the name or text that contains it in quotes"
            if opening == "`":
                hint = 'put names in double quotes: "name"'
            errors.append(text.error(what, match.start(), hint))
            damaged = True
        elif match["comment"]:
            closed = _comment_end(body, at)
            if closed is None:
                errors.append(text.error("this comment is never closed", match.start(), "close it with */"))
                return
            at = closed
        elif opening in "'\"" and not (match["string"] or match["name"]):
            what = "string" if opening == "'" else "quoted name"
            errors.append(_unclosed(text, match.start(), what, multiline.get(opening)))
            return
        elif opening in "'\"" and "\n" in match.group():
            multiline.setdefault(opening, match.start())
    if not _BLANK.fullmatch(body, start):
        yield Piece(start, len(body), damaged)


def _marked(text: str, start: int, offset: int) -> str:
    """The line that begins at `start`, or the part of it around an offset, and a mark below the offset.

    >>> print(_marked("SELECT 1 FROM air;", 0, 14))
      SELECT 1 FROM air;
                    ^
    """
    first, last = max(start, offset - _BEFORE), min(len(text), offset + _BEHIND)
    end = text.find("\n", offset, last + 1)
    last, cut = (end, "") if end >= 0 else (last, "…" if last < len(text) else "")
    # Signs that move the cursor would separate the mark from its place.
    before, behind = (
        "".join(sign if sign.isprintable() else " " for sign in part)
        for part in (text[first:offset], text[offset:last].rstrip())
    )
    before = f"  {'…' if first > start else ''}{before}"
    return f"{before}{behind}{cut}\n{' ' * sum(map(_width, before))}^"


def _width(sign: str) -> int:
    """The columns of a terminal that a character takes."""
    return 0 if unicodedata.combining(sign) else 1 + (unicodedata.east_asian_width(sign) in "WF")


def _unclosed(text: Text, offset: int, what: str, multiline: int | None) -> SqlError:
    """The mistake of a missing quote. It is reported at the first quoted text of several lines, if there is
    one: if its end is missing, every later quoted text begins where it should end.
    """
    sign = text.text[offset]
    if multiline is None:
        return text.error(f"this {what} is never closed", offset, f"close it with {sign}")
    return text.error(f"this {what} isn't closed on its line", multiline, f"close it with {sign}")


def _comment_end(body: str, at: int) -> int | None:
    """The end of a comment that began before `at`; comments nest, as in Postgres. None if it isn't closed."""
    depth = 1
    while depth:
        match = _COMMENT.search(body, at)
        if match is None:
            return None
        depth += 1 if match.group() == "/*" else -1
        at = match.end()
    return at
