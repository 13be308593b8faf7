"""SQL in which CREATE PATTERN has values instead of the names of files, for a registry that can't read these.

inlined = inline_patterns("CREATE PATTERN peak FROM 'peak.csv'; SHOW PATTERNS", "patterns.sql")
inlined.text      # CREATE PATTERN peak VALUES (0, 1, 4, 1, 0); SHOW PATTERNS
inlined.notices   # what was resampled
inlined.tables    # the files of tables, which stay files
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import TokenType

from tamis.declarations.definitions import PatternDef
from tamis.errors import Position, SqlError, SqlErrors
from tamis.query.context import Context
from tamis.query.model import Catalog
from tamis.query.statements.parser import parse_statement
from tamis.query.statements.statement_input import statement_cursor
from tamis.query.syntax.cursor import Cursor
from tamis.query.syntax.text import LARGEST_TEXT, Text, split


@dataclass(frozen=True)
class Inlined:
    """A text without files of patterns, and notices on the files that were read. `tables`: the paths that
    CREATE TABLE names.
    """

    text: str
    notices: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()


def inline_patterns(text: str, file: str | None = None) -> Inlined:
    """Read the files of patterns. All other statements stay as they are, on the same lines.

    Raises SqlErrors with the mistakes of the statements that name files, and for a text that becomes too
    long.
    """
    if len(text) > LARGEST_TEXT:
        return Inlined(text)  # its reader refuses it
    context = Context(Text(text, file), Catalog())
    parts: list[str] = []
    notices: list[str] = []
    tables: list[str] = []
    done = 0
    for piece in split(context.text, []):  # other mistakes are reported by the reader of the whole text
        cursor = None if piece.damaged else statement_cursor(Context(context.text, context.catalog), piece)
        if cursor is None or cursor.peek() != "CREATE":
            continue
        if cursor.peek(1) == "TABLE":
            tables += _paths(cursor)
            continue
        if (cursor.peek(1), cursor.peek(3)) != ("PATTERN", "FROM"):
            continue
        try:
            made = parse_statement(context, cursor, text[piece.start : piece.end])
        except SqlError as error:
            context.errors.append(error)
            continue
        if isinstance(made, PatternDef):
            start = cursor.tokens[0].start
            replaced = text[start : cursor.end]
            parts += [text[done:start], made.sql, "\n" * replaced.count("\n")]
            done = cursor.end
            notices += made.notices
    if context.errors:
        raise SqlErrors(context.errors)
    whole = "".join([*parts, text[done:]])
    if len(whole) > LARGEST_TEXT:
        what = f"with the values of its patterns, the text is longer than {LARGEST_TEXT} characters"
        hint = "put some of the patterns into a file of their own, and apply that file first"
        raise SqlErrors([SqlError(what, Position(1, 1, file), hint)])
    return Inlined(whole, tuple(notices), tuple(tables))


def _paths(cursor: Cursor) -> Iterator[str]:
    """The values of the option `path` in a statement."""
    tokens = cursor.tokens
    for name, equals, value in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if name.text.lower() == "path" and equals.text == "=" and value.token_type == TokenType.STRING:
            yield value.text
