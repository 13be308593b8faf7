"""Runs the statements of a text one after the other, and prints what each one did."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tamis.cli.common.output import say
from tamis.cli.common.sql_file import show_notices
from tamis.cli.common.tables import show_outcome, show_table
from tamis.cli.shell.newest_readings import (
    NewestReadings,
    is_select,
    newest_readings,
    readings_query,
    statement_of,
)
from tamis.durations import seconds
from tamis.errors import SqlError, SqlErrors
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Value
from tamis.instants import iso_text
from tamis.query.statements.inline_patterns import inline_patterns
from tamis.query.syntax.text import Piece, Text, split
from tamis.web.registry_client import RegistryClient

Result = NewestReadings | dict[str, Any]
"""The rows of a SELECT, or the outcome of another statement as the registry describes it."""


def results(registry: RegistryClient, sql: str, file: str | None) -> Iterator[Result]:
    """Run each statement of a text when its result is asked for. Mistakes are at their place in the text.

    Raises TamisError for the first statement that fails; those before it stay applied.
    """
    text, errors = Text(sql, file), list[SqlError]()
    pieces = list(split(text, errors))
    if errors:
        raise SqlErrors(errors)
    for piece in pieces:
        cursor = statement_of(text, piece)
        if is_select(cursor):
            yield newest_readings(registry, readings_query(cursor, registry.request("GET", "/v1/names")))
        elif cursor.tokens:
            inlined = inline_patterns(_alone(sql, piece), file)
            show_notices(inlined.notices)
            yield from registry.apply_sql(inlined.text, file)


def _alone(sql: str, piece: Piece) -> str:
    """A text with one statement only, at its line and column."""
    before = "".join(sign if sign == "\n" else " " for sign in sql[: piece.start])
    return before + sql[piece.start : piece.end]


def show(result: Result) -> None:
    """Print a result for people; notices are on standard error."""
    if isinstance(result, NewestReadings):
        kinds = [kind for _, kind in result.columns]
        rows = [[_cell(value, kind) for value, kind in zip(row, kinds, strict=True)] for row in result.rows]
        show_table([name for name, _ in result.columns], rows)
        for notice in result.notices:
            say(f"note: {notice}")
    else:
        show_outcome(result)


def document(result: Result) -> dict[str, Any]:
    """A result as a JSON object."""
    return result.document() if isinstance(result, NewestReadings) else result


def _cell(value: Value, kind: Type) -> str:
    """A value as people read it.

    >>> _cell(1_500_000, Type.TIMESTAMP), _cell(True, Type.BOOLEAN), _cell(None, Type.DOUBLE)
    ('1970-01-01T00:00:01.500Z', 'true', 'NULL')
    """
    if value is None:
        return "NULL"
    if kind is Type.TIMESTAMP:
        return iso_text(int(value))
    if kind is Type.INTERVAL:
        return seconds(int(value))
    return str(value).lower() if kind is Type.BOOLEAN else str(value)
