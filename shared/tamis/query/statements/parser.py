"""The first words of a statement, which tell its kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from tamis.declarations.definitions import FunctionDef
from tamis.declarations.streams import StreamDef
from tamis.query.context import Context
from tamis.query.model import AlertDef, DerivedDef, Explain, Statement
from tamis.query.statements import commands
from tamis.query.statements.alter_stream import parse_alter, replaced
from tamis.query.statements.create_alert import parse_alert
from tamis.query.statements.create_function import parse_function, replaced_function
from tamis.query.statements.create_pattern import parse_pattern
from tamis.query.statements.create_stream import parse_stream, parse_table
from tamis.query.statements.statement_input import StatementInput
from tamis.query.syntax.cursor import Cursor
from tamis.query.syntax.limits import MOST_PATTERN_TOKENS, MOST_TOKENS, check_limits
from tamis.wording.names import suggest


def parse_statement(context: Context, cursor: Cursor, sql: str) -> Statement | None:
    """The statement at the cursor; None if a mistake was reported.

    Raises `SqlError` for a mistake after which nothing can be parsed.
    """
    context.called_functions.clear()
    pattern = [cursor.peek(), cursor.peek(1)] == ["CREATE", "PATTERN"]
    check_limits(cursor, MOST_PATTERN_TOKENS if pattern else MOST_TOKENS)
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
    if replace and kind in commands.KINDS and kind not in _REPLACEABLE:
        hint = f"write DROP {kind} name; CREATE {kind} …"
        what = f"OR REPLACE is for alerts, streams and functions, not for a {kind.lower()}"
        given.context.error(what, replace_offset, hint)
    if kind not in commands.KINDS:
        raise cursor.unexpected(commands.SUPPORTED, commands.kind_hint(kind))
    cursor.take()
    if cursor.peek() == "IF" and cursor.peek(1) == "NOT":
        raise cursor.unexpected("a name", "leave IF NOT EXISTS out")
    if kind == "ALERT":
        return parse_alert(given, replace)
    if replace and kind in _REPLACEABLE:
        return _replace(given, kind)
    return _DEFINITIONS[kind](given)


def _explain(given: StatementInput) -> Statement | None:
    """EXPLAIN from after that word to the end; None if a mistake was reported."""
    cursor = given.cursor
    if cursor.peek() != "CREATE":
        return commands.parse_explain(given)
    text, position = given.context.text.text, given.position()
    inner = StatementInput(given.context, cursor, text[cursor.offset : cursor.end].rstrip())
    created = cursor.offset
    cursor.take()
    made = _create(inner)
    if isinstance(made, AlertDef):
        return Explain(made, position, creates=True)
    if made is not None:
        hint = "write EXPLAIN CREATE ALERT …, or EXPLAIN SELECT …"
        given.context.error("EXPLAIN is for queries", created, hint)
    return None


def _replace(given: StatementInput, kind: str) -> Statement | None:
    """CREATE OR REPLACE of a stream or function. Its stored text has no OR REPLACE: it is applied again to
    an empty catalogue, and read by services that don't know OR REPLACE here.
    """
    given.sql = _OR_REPLACE.sub("CREATE", given.sql, count=1)
    made = _DEFINITIONS[kind](given)
    match made:
        case StreamDef() | DerivedDef():
            return replaced(given, made)
        case FunctionDef():
            return replaced_function(given, made)
        case _:
            return made


_REPLACEABLE = ("ALERT", "STREAM", "FUNCTION")
_OR_REPLACE = re.compile(r"CREATE\s+OR\s+REPLACE", re.IGNORECASE)
_DEFINITIONS: Mapping[str, Callable[[StatementInput], Statement | None]] = {
    "STREAM": parse_stream,
    "FUNCTION": parse_function,
    "TABLE": parse_table,
    "PATTERN": parse_pattern,
}
_STATEMENTS: Mapping[str, Callable[[StatementInput], Statement | None]] = {
    "CREATE": _create,
    "ALTER": parse_alter,
    "DROP": commands.parse_drop,
    "PAUSE": commands.parse_pause,
    "RESUME": commands.parse_resume,
    "SHOW": commands.parse_show,
    "EXPLAIN": _explain,
}
