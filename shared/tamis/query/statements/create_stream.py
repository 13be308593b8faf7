"""CREATE STREAM: a raw stream with its options, or a derived stream AS SELECT; and CREATE TABLE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, assert_never

from tamis.declarations.definitions import ColumnDef, TableDef
from tamis.declarations.streams import StreamDef
from tamis.expressions.nodes import Call, Column, Literal, Type
from tamis.query.model import (
    ApplicationTimeSelect,
    ApplicationTimeUnion,
    DerivedDef,
    JoinByTime,
    LatestValueJoin,
    NestedQuery,
    Query,
    SessionGroupBy,
    TimelessGroupBy,
    TimelessSelect,
    TimelessUnion,
    WindowGroupBy,
)
from tamis.query.scalars.operators import logic
from tamis.query.statements import options
from tamis.query.statements.columns import parse_columns
from tamis.query.statements.statement_input import END_STATEMENT, StatementInput
from tamis.query.syntax.cursor import Name
from tamis.query.unsupported import USE_WINDOWS

_EXAMPLE = "write CREATE STREAM name (column TYPE, …, WATERMARK FOR column AS column - INTERVAL '5' SECOND)"


def parse_stream(given: StatementInput) -> StreamDef | DerivedDef | None:
    """CREATE STREAM from its name to the end; None if a mistake was reported."""
    name = given.plain_name("a stream", _EXAMPLE)
    context, cursor = given.context, given.cursor
    if cursor.word("AS"):
        return _derived(given, name)
    if cursor.peek() == "SELECT":
        raise cursor.unexpected("AS", "write CREATE STREAM name AS SELECT …")
    before = len(context.errors)
    columns, watermark = parse_columns(context, cursor.group("columns", _EXAMPLE))
    values = given.options(options.STREAM)
    cursor.finish(f"{END_STATEMENT}; options are written as WITH (name = value, …)")
    if len(context.errors) == before:
        _check_end(given, name, values, timed=watermark is not None)
    if len(context.errors) > before:
        return None
    time, delay = watermark or (None, 0)
    if "until" in values:
        columns = [_with_end(c, values["until"]) if c.name == time else c for c in columns]
    return StreamDef(
        name.text,
        tuple(columns),
        time,
        delay,
        **values,
        max_ahead_given="max_ahead" in values,
        functions=given.functions,
        sql=given.sql,
        position=given.position(name),
    )


def _check_end(given: StatementInput, name: Name, values: Mapping[str, Any], *, timed: bool) -> None:
    """Report a finite stream without an end or without event time, and an end of another stream."""
    error = given.context.error
    finite = values.get("finite", False)
    if "until" in values and not finite:
        hint = "leave until out, or add finite = true"
        error("the option 'until' is only for finite streams", name.offset, hint)
    if finite and "until" not in values:
        hint = "add until = '2026-01-31T12:00:00Z', its last event time"
        error("a finite stream needs the option 'until'", name.offset, hint)
    if finite and not timed:
        hint = "add WATERMARK FOR column AS column, or write its rows to a file and CREATE TABLE"
        error("a finite stream needs event time", name.offset, hint)


def _with_end(column: ColumnDef, until: int) -> ColumnDef:
    """The event time of a finite stream, with the stream's end as a CHECK."""
    time = Column("", column.name, column.type)
    end = Call("<=", (time, Literal(until, Type.TIMESTAMP)), Type.BOOLEAN)
    return replace(column, check=end if column.check is None else logic("and", [column.check, end]))


def _derived(given: StatementInput, name: Name) -> DerivedDef | None:
    query = given.query()
    if query is None:
        return None
    refusal = _unsupported(query)
    if refusal is not None:
        raise given.context.text.error(refusal[0], name.offset, refusal[1])
    return DerivedDef(name.text, query, given.functions, given.sql, given.position(name))


def _unsupported(query: Query) -> tuple[str, str] | None:
    """The refusal of a query that a derived stream can't have, and a hint; None if the query is supported."""
    match query:
        case NestedQuery():
            return _unsupported(query.query)
        case TimelessUnion() | ApplicationTimeUnion():
            hint = "write the UNION in each alert that needs it"
            return "CREATE STREAM … AS with a UNION is not supported yet", hint
        case SessionGroupBy():
            return "CREATE STREAM … AS with SESSION is not supported yet", "write SESSION in the alerts"
        case JoinByTime() if query.windowed:
            stream = query.sources[0].stream
            hint = f"select from {stream} in this stream, and write the windows in the alerts"
            return "CREATE STREAM … AS with windows is not supported yet", hint
        case LatestValueJoin():
            hint = "write the ASOF JOIN in each alert that needs it"
            return "CREATE STREAM … AS with ASOF JOIN is not supported yet", hint
        case TimelessSelect() | ApplicationTimeSelect() if query.distinct:
            hint = "write DISTINCT in the alert that reads the stream"
            return "CREATE STREAM … AS SELECT DISTINCT is not supported yet", hint
        case JoinByTime() if query.exists or query.absences:
            hint = "write EXISTS or NO READING in the alert that reads the stream"
            return "CREATE STREAM … AS with EXISTS or NO READING is not supported yet", hint
        case TimelessGroupBy():
            hint = "write the aggregates in an alert: their rows change, and a stream's tuples can't;"
            hint += f" for rows of windows, {USE_WINDOWS}"
            return "CREATE STREAM … AS with aggregates and without windows is not supported yet", hint
        case JoinByTime() | TimelessSelect() | ApplicationTimeSelect() | WindowGroupBy():
            if any(output.name == "_" for output in query.select):
                hint = "choose another name: Tamis uses _ for its own fields in messages"
                return "a column of a stream can't have the name _", hint
            return None
        case _:
            assert_never(query)


_TABLE = "write CREATE TABLE name (column TYPE, …) WITH (path = 'file.csv')"


def parse_table(given: StatementInput) -> TableDef | None:
    """CREATE TABLE from its name to the end; None if a mistake was reported."""
    context, cursor = given.context, given.cursor
    before = len(context.errors)
    name = given.plain_name("a table", _TABLE)
    columns, watermark = parse_columns(context, cursor.group("columns", _TABLE))
    # With a WATERMARK, a stream was meant: the options of a stream are no further mistake then.
    known = options.TABLE if watermark is None else {**options.STREAM, **options.TABLE}
    values = given.options(known)
    cursor.finish(END_STATEMENT)
    if watermark is not None:
        hint = "leave WATERMARK out, or write CREATE STREAM"
        context.error("a table has no event time: its rows don't change", name.offset, hint)
    if len(context.errors) == before and "path" not in values:
        context.error("a table needs the option 'path', the file of its rows", name.offset, _TABLE)
    if len(context.errors) > before:
        return None
    return TableDef(
        name.text, tuple(columns), values["path"], given.functions, given.sql, given.position(name)
    )
