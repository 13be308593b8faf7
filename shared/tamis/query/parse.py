"""SQL text to statements: every mistake of a text with its place and what to do, or none and the model.

The work is cut up by file: `text` (positions, cutting into statements), `dialect` (sqlglot), `cursor` and
`statements` (heads), `options` (WITH), `reading`, `calls`, `literals` and `operators` (expressions),
`limits`, `recovery` (a SELECT with a syntax error), `resolve` (SELECT), `catalog` (what a statement changes),
`refusals` (what isn't executed).
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token

from tamis.errors import Position, SqlError, SqlErrors
from tamis.query.catalog import apply
from tamis.query.context import Context
from tamis.query.cursor import Cursor
from tamis.query.dialect import is_word, tokenize
from tamis.query.model import Catalog, Statement
from tamis.query.statements import StatementReader
from tamis.query.text import LARGEST_TEXT, Piece, Text, split

# A person mends the first few; a file of noise must not become a message of megabytes.
MOST_ERRORS = 200

_HEAD = re.compile(r"\bCREATE\s+FUNCTION\s+([A-Za-z_]\w*)", re.IGNORECASE)


def parse(
    text: str,
    catalog: Catalog,
    carry_out: Callable[[Catalog, Statement], None] = apply,
    file: str | None = None,
) -> list[Statement]:
    """The statements of `text`, each seeing `catalog` and the ones before it; `catalog` isn't changed.

    `carry_out` is what a statement does to the catalogue that the next one sees; it may raise `SqlError`.
    `file` is the name by which positions call the text.
    Raises `SqlErrors` with all the mistakes of the text, each with line, column and hint.
    """
    if len(text) > LARGEST_TEXT:
        hint = "split it into several texts"
        what = f"the text is longer than {LARGEST_TEXT} characters"
        raise SqlErrors([SqlError(what, Position(1, 1, file), hint)])
    context = Context(Text(text, file), catalog.copy())
    statements: list[Statement] = []
    pieces = list(split(context.text, context.errors))
    cursors = [(piece, _cursor(context, piece)) for piece in pieces]
    _recursion(context, [cursor for _, cursor in cursors])
    for piece, cursor in cursors:
        if len(context.errors) >= MOST_ERRORS:
            place = cursor.offset
            context.error(
                f"more than {MOST_ERRORS} mistakes; the rest wasn't read", place, "mend those above first"
            )
            break
        if not cursor.tokens:
            continue
        statement = None if piece.damaged else _statement(context, cursor, carry_out)
        if statement is None:
            _mark_broken(context, cursor.tokens)
        else:
            statements.append(statement)
    if context.errors:
        raise SqlErrors(context.errors)
    return statements


def catalog_of(*texts: str, file: str | None = None) -> Catalog:
    """What stands once all statements of the texts are carried out, one text after the other.

    Raises `SqlErrors` as `parse` does.
    """
    catalog = Catalog()
    for text in texts:
        for statement in parse(text, catalog, file=file):
            apply(catalog, statement)
    return catalog


def _cursor(context: Context, piece: Piece) -> Cursor:
    """The tokens of a statement with their offsets in the whole text."""
    try:
        tokens = tokenize(context.text.text[piece.start : piece.end])
    except SqlglotError:
        context.error(
            "this statement can't be read", piece.start, "look for characters that don't belong in SQL"
        )
        tokens = []
    for token in tokens:
        token.start += piece.start
        token.end += piece.start
    return Cursor(context.text, tokens, tokens[-1].end + 1 if tokens else piece.end)


def _statement(
    context: Context, cursor: Cursor, carry_out: Callable[[Catalog, Statement], None]
) -> Statement | None:
    """One statement, applied to the catalogue; None where mistakes were reported."""
    before = len(context.errors)
    sql = context.text.text[cursor.offset : cursor.end]
    try:
        statement = StatementReader(context, cursor, sql).read()
        if statement is not None and len(context.errors) == before:
            carry_out(context.catalog, statement)
            return statement
    except SqlError as error:
        context.errors.append(error)
    except RecursionError:
        context.error(
            "this statement nests too deeply", cursor.tokens[0].start, "split it into functions or streams"
        )
    return None


def _mark_broken(context: Context, tokens: list[Token]) -> None:
    """Remember the name that a statement with a mistake would have defined."""
    words = [token.text.upper() if is_word(token) else "" for token in tokens[:5]]
    if words[:1] != ["CREATE"]:
        return
    at = 3 if words[1:3] == ["OR", "REPLACE"] else 1
    if len(tokens) <= at + 1:
        return
    name = tokens[at + 1].text.lower() if is_word(tokens[at + 1]) else tokens[at + 1].text
    broken = {
        "STREAM": (context.broken_streams, _read_from(context.catalog)),
        "TABLE": (context.broken_streams, _read_from(context.catalog)),
        "ALERT": (context.broken_alerts, set(context.catalog.alerts)),
        "FUNCTION": (context.broken_functions, set(context.catalog.functions)),
    }.get(words[at])
    if broken is not None and name not in broken[1]:
        broken[0].add(name)


def _read_from(catalog: Catalog) -> set[str]:
    """What can stand in FROM."""
    return {*catalog.streams, *catalog.derived, *catalog.tables}


def _recursion(context: Context, cursors: list[Cursor]) -> None:
    """Report each cycle of functions that call each other, and remember which are defined by the text."""
    calls: dict[str, set[str]] = {}
    places: dict[str, int] = {}
    for cursor in cursors:
        tokens = cursor.tokens
        if len(tokens) < 3 or [t.text.upper() for t in tokens[:2]] != ["CREATE", "FUNCTION"]:
            continue
        name = tokens[2].text.lower() if is_word(tokens[2]) else tokens[2].text
        body = next((i for i, t in enumerate(tokens) if is_word(t) and t.text.upper() == "AS"), len(tokens))
        pairs = zip(tokens[body:], tokens[body + 1 :], strict=False)
        called = {a.text.lower() if is_word(a) else a.text for a, b in pairs if b.text == "("}
        calls.setdefault(name, called)
        places.setdefault(name, tokens[2].start)
    context.later_functions |= calls.keys()
    for name in calls:
        cycle = _cycle(calls, name)
        if cycle is not None and name == min(cycle):
            context.error(
                f"functions can't call themselves: {' → '.join([*cycle, cycle[0]])}",
                places[name],
                "write the expression without the call",
            )
        if cycle is not None:
            context.broken_functions.add(name)


def _cycle(calls: dict[str, set[str]], start: str) -> list[str] | None:
    """The shortest chain of calls from `start` back to itself."""
    paths = {start: [start]}
    queue = [start]
    for name in queue:
        for called in sorted(calls.get(name, ())):
            if called == start:
                return paths[name]
            if called in calls and called not in paths:
                paths[called] = [*paths[name], called]
                queue.append(called)
    return None
