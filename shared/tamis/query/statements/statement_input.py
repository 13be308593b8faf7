"""The input of one statement's parser, with the parts that several statements have."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sqlglot.errors import SqlglotError

from tamis.errors import Position
from tamis.query.context import Context
from tamis.query.model import Query
from tamis.query.other_systems.rewriting import refusal
from tamis.query.other_systems.table_functions import without_table_functions
from tamis.query.selects.set_operations import resolve_query
from tamis.query.statements.options import Option, parse_options
from tamis.query.syntax.cursor import Cursor, Name
from tamis.query.syntax.dialect import tokenize
from tamis.query.syntax.parser import select_tree
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


# Names of streams and alerts are parts of the names of topics, metrics and files. Kafka allows these
# characters.
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

END_STATEMENT = "end the statement with a semicolon"


class StatementInput:
    """The tokens of one statement, the context, and the text that the definition keeps."""

    def __init__(self, context: Context, cursor: Cursor, sql: str) -> None:
        self.context = context
        self.cursor = cursor
        self.sql = sql
        self.start = cursor.offset

    def position(self, name: Name | None = None) -> Position:
        """The position of a name, or of the statement."""
        return self.context.text.position(self.start if name is None else name.offset)

    @property
    def functions(self) -> tuple[str, ...]:
        """The functions that the statement has called so far."""
        return tuple(sorted(self.context.called_functions))

    def plain_name(self, kind: str, hint: str) -> Name:
        """Take the plain name of a stream, table or alert; `kind` is "a stream" or the like."""
        name = self.cursor.name(f"the name of {kind}", hint)
        if not _PLAIN.fullmatch(name.text):
            # Other statements may use the right name, which isn't known.
            self.context.incomplete |= {"stream", "alert"}
            hint = "use only letters, digits and _: the names of topics and metrics contain this name"
            self.context.error(f"'{name.text}' can't be the name of {kind}", name.offset, hint)
        return name

    def options(self, known: Mapping[str, Option]) -> dict[str, Any]:
        """Take WITH (…), if it is next; returns the values by name."""
        if not self.cursor.word("WITH"):
            return {}
        group = self.cursor.group("name = value, …", "write WITH (name = value, …)")
        return parse_options(self.context, group, known)

    def query(self) -> Query | None:
        """Take the SELECT, to the end of the statement; None if a mistake was reported."""
        offset, before = self.cursor.offset, len(self.context.errors)
        tokens = without_table_functions(self.cursor.tokens[self.cursor.at :])
        self.cursor.tokens[self.cursor.at :] = self.context.select_tokens = tokens
        elsewhere = refusal(self.context.text, tokens, self.context.catalog)
        if elsewhere is not None:
            raise elsewhere
        tree = select_tree(self.cursor, self.context.errors)
        self.context.recovered = len(self.context.errors) > before
        query = resolve_query(self.context, tree, offset)
        return query if len(self.context.errors) == before else None
