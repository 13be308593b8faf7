"""The tokens of one statement of a text."""

from __future__ import annotations

from sqlglot.errors import SqlglotError

from tamis.query.context import Context
from tamis.query.syntax.cursor import Cursor
from tamis.query.syntax.dialect import tokenize
from tamis.query.syntax.text import Piece


def statement_cursor(context: Context, piece: Piece) -> Cursor:
    """A cursor over the tokens of a statement, with their offsets in the whole text. If the statement has no
    tokens of SQL, that is reported, and the cursor is empty.
    """
    try:
        tokens = tokenize(context.text.text[piece.start : piece.end])
    except SqlglotError:
        context.error(
            "this statement can't be read as SQL",
            piece.start,
            "look for characters that SQL doesn't allow",
        )
        tokens = []
    for token in tokens:
        token.start += piece.start
        token.end += piece.start
    return Cursor(context.text, tokens, tokens[-1].end + 1 if tokens else piece.end)
