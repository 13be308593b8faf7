"""The first words of a statement, which tell its kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot.tokenizer_core import TokenType

from tamis.query.context import Context
from tamis.query.model import Statement
from tamis.query.names import suggest
from tamis.query.statements import commands
from tamis.query.statements.create_alert import parse_alert
from tamis.query.statements.create_function import parse_function
from tamis.query.statements.create_stream import parse_stream
from tamis.query.statements.create_table import parse_table
from tamis.query.statements.statement_input import END_STATEMENT, StatementInput
from tamis.query.syntax.cursor import Cursor
from tamis.query.syntax.limits import check_limits


def parse_statement(context: Context, cursor: Cursor, sql: str) -> Statement | None:
    """The statement at the cursor; None if a mistake was reported.

    Raises `SqlError` for a mistake after which nothing can be parsed.
    """
    context.called_functions.clear()
    check_limits(cursor)
    given = StatementInput(context, cursor, sql)
    for word, parse in _STATEMENTS.items():
        if cursor.word(word):
            return parse(given)
    word = cursor.peek()
    if word in ("SELECT", "WITH"):
        hint = "write CREATE ALERT name AS SELECT …, or EXPLAIN SELECT …"
        raise context.text.error("a SELECT alone isn't a statement", given.start, hint)
    raise cursor.unexpected(
        "a statement", suggest(word, _STATEMENTS, f"write one of {', '.join(_STATEMENTS)}")
    )


def _create(given: StatementInput) -> Statement | None:
    cursor = given.cursor
    replace_offset = cursor.offset
    replace = cursor.word("OR", "REPLACE")
    kind = cursor.peek()
    if replace and kind in commands.KINDS and kind != "ALERT":
        hint = f"write DROP {kind} name; CREATE {kind} …"
        what = f"OR REPLACE is only for alerts, not for a {kind.lower()}"
        given.context.error(what, replace_offset, hint)
    if kind not in commands.KINDS:
        raise cursor.unexpected(commands.SUPPORTED, commands.kind_hint(kind))
    cursor.take()
    if cursor.peek() == "IF" and cursor.peek(1) == "NOT":
        raise cursor.unexpected("a name", "leave IF NOT EXISTS out")
    if kind == "ALERT":
        return parse_alert(given, replace)
    return _DEFINITIONS[kind](given)


def _pattern(given: StatementInput) -> None:
    """CREATE PATTERN is parsed and not supported."""
    example = "write CREATE PATTERN name FROM 'file.csv'"
    name = given.plain_name("a pattern", example)
    given.cursor.expect_word("FROM", example)
    token = given.cursor.take()
    if token is None or token.token_type != TokenType.STRING:
        given.cursor.at -= token is not None
        raise given.cursor.unexpected("the name of a file", example)
    given.cursor.finish(END_STATEMENT)
    what = f"similarity queries, CREATE PATTERN {name.text}, are not supported yet"
    given.context.error(what, given.start, "compare single values with a threshold")


_DEFINITIONS: Mapping[str, Callable[[StatementInput], Statement | None]] = {
    "STREAM": parse_stream,
    "FUNCTION": parse_function,
    "TABLE": parse_table,
    "PATTERN": _pattern,
}
_STATEMENTS: Mapping[str, Callable[[StatementInput], Statement | None]] = {
    "CREATE": _create,
    "DROP": commands.parse_drop,
    "PAUSE": commands.parse_pause,
    "RESUME": commands.parse_resume,
    "SHOW": commands.parse_show,
    "EXPLAIN": commands.parse_explain,
}
