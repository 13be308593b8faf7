"""Parser of Tamis SQL: from a text to statements, or to all of its mistakes with positions and hints."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import islice

from tamis.errors import Position, SqlError, SqlErrors
from tamis.query.catalog import apply
from tamis.query.context import Context
from tamis.query.model import Catalog, Statement
from tamis.query.statements.cascading_errors import caused_by_earlier_error, mark_broken
from tamis.query.statements.create_function import cycles
from tamis.query.statements.parser import parse_statement
from tamis.query.statements.statement_input import statement_cursor
from tamis.query.syntax.cursor import Cursor
from tamis.query.syntax.dialect import is_word
from tamis.query.syntax.syntax_errors import END_BEFORE
from tamis.query.syntax.text import (
    LARGEST_TEXT,
    MOST_ERRORS,
    MOST_STATEMENTS,
    Text,
    split,
)

# A message that names more functions of a cycle would be too long to read.
MOST_SHOWN = 10
# Missing semicolons at which a text is divided. Each time, the rest of the text is read again.
MOST_DIVIDED = 20


def parse(
    text: str,
    catalog: Catalog,
    carry_out: Callable[[Catalog, Statement], None] = apply,
    file: str | None = None,
) -> list[Statement]:
    """The statements of `text`. Each is resolved against `catalog` and the statements before it; `catalog`
    itself doesn't change.

    `carry_out` applies a statement to the copy of the catalogue that the next statement sees; it may raise
    `SqlError`. `file` is the file name in positions.
    Raises `SqlErrors` with all mistakes of the text, each with line, column and hint.
    """
    if len(text) > LARGEST_TEXT:
        hint = "split it into several files or requests"
        what = f"the text is longer than {LARGEST_TEXT} characters"
        raise SqlErrors([SqlError(what, Position(1, 1, file), hint)])
    context = Context(Text(text, file), catalog.copy(), parse=_again)
    statements: list[Statement] = []
    pieces = list(islice(split(context.text, context.errors), MOST_STATEMENTS + 1))
    if len(pieces) > MOST_STATEMENTS:
        what, hint = (
            f"more than {MOST_STATEMENTS} statements",
            "split the text into several files or requests",
        )
        raise SqlErrors([context.text.error(what, pieces[-1].start, hint)])
    if len(context.errors) > MOST_ERRORS:
        raise SqlErrors(context.errors)
    cursors = deque((piece, statement_cursor(context, piece)) for piece in pieces)
    _report_cycles(context, [cursor for _, cursor in cursors])
    divided = 0
    while cursors:
        piece, cursor = cursors.popleft()
        if len(context.errors) >= MOST_ERRORS:
            context.errors.append(context.text.too_many(cursor.offset))
            break
        if not cursor.tokens:
            continue
        before = len(context.errors)
        statement = None if piece.damaged else _statement(context, cursor, carry_out)
        parts = _at_missing_semicolon(context, cursor, before)
        if parts and divided < MOST_DIVIDED:
            divided += 1
            cursors.extendleft((piece, part) for part in reversed(parts))
            continue
        if statement is None:
            mark_broken(context, cursor.tokens)
        else:
            statements.append(statement)
    if context.errors:
        raise SqlErrors(list({(str(error)): error for error in context.errors}.values()))
    return statements


def catalog_of(*texts: str, file: str | None = None) -> Catalog:
    """The catalogue after all statements of the texts, one text after the other.

    Raises `SqlErrors` as `parse` does.
    """
    catalog = Catalog()
    for text in texts:
        for statement in parse(text, catalog, file=file):
            apply(catalog, statement)
    return catalog


def _again(text: str, catalog: Catalog, file: str | None) -> list[Statement]:
    return parse(text, catalog, lambda *_: None, file)


def _statement(
    context: Context, cursor: Cursor, carry_out: Callable[[Catalog, Statement], None]
) -> Statement | None:
    """One statement, applied to the catalogue; None if a mistake was reported."""
    before = len(context.errors)
    context.reported.clear()
    sql = context.text.text[cursor.offset : cursor.end]
    statement = None
    try:
        statement = parse_statement(context, cursor, sql)
        if statement is not None and len(context.errors) == before:
            carry_out(context.catalog, statement)
            return statement
    except SqlError as error:
        if statement is None or not caused_by_earlier_error(context, statement):
            context.errors.append(error)
    except RecursionError:
        context.error(
            "this statement nests too deeply",
            cursor.tokens[0].start,
            "move a part into CREATE FUNCTION or CREATE STREAM",
        )
    return None


def _at_missing_semicolon(context: Context, cursor: Cursor, before: int) -> tuple[Cursor, ...]:
    """The two statements between which a semicolon is missing; empty if none is. Of the mistakes that were
    reported for them as one statement, after the first `before` ones, only the missing semicolon is kept: the
    others come from reading two statements as one, and those of each statement are found when it is read.
    """
    missing = next((error for error in context.errors[before:] if error.hint == END_BEFORE), None)
    if missing is None or missing.position is None:
        return ()
    context.errors[before:] = [missing]
    at = context.text.offset(missing.position)
    first = [token for token in cursor.tokens if token.start < at]
    if not first:
        return ()
    return (
        Cursor(context.text, first, first[-1].end + 1),
        Cursor(context.text, cursor.tokens[len(first) :], cursor.end),
    )


def _report_cycles(context: Context, cursors: list[Cursor]) -> None:
    """Report each cycle of functions that call each other, and remember the functions that the text
    defines.
    """
    calls: dict[str, set[str]] = {}
    places: dict[str, int] = {}
    for cursor in cursors:
        tokens = cursor.tokens
        if len(tokens) < 3 or [t.text.upper() for t in tokens[:2]] != ["CREATE", "FUNCTION"]:
            continue
        name = tokens[2].text.lower() if is_word(tokens[2]) else tokens[2].text
        body = next((i for i, t in enumerate(tokens) if is_word(t) and t.text.upper() == "AS"), len(tokens))
        # Where a semicolon is missing, the tokens go on with the next statement.
        ends = (i for i in range(body, len(tokens)) if tokens[i].text.upper() == "CREATE")
        end = next(ends, len(tokens))
        pairs = zip(tokens[body:end], tokens[body + 1 : end], strict=False)
        called = {a.text.lower() if is_word(a) else a.text for a, b in pairs if b.text == "("}
        calls.setdefault(name, called)
        places.setdefault(name, tokens[2].start)
    context.later_functions |= calls.keys()
    for cycle, whole in cycles(calls):
        shown = [*cycle[:MOST_SHOWN], *(["…"] if len(cycle) > MOST_SHOWN else []), cycle[0]]
        context.error(
            f"functions can't call themselves: {' → '.join(shown)}",
            places[cycle[0]],
            "write the expression without the call",
        )
        context.broken_functions |= whole
