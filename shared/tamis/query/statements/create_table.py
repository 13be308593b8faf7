"""CREATE TABLE: a static relation, whose rows are in a file."""

from __future__ import annotations

from tamis.query.model import TableDef
from tamis.query.statements import options
from tamis.query.statements.columns import parse_columns
from tamis.query.statements.statement_input import END_STATEMENT, StatementInput

_EXAMPLE = "write CREATE TABLE name (column TYPE, …) WITH (path = 'file.csv')"


def parse_table(given: StatementInput) -> TableDef | None:
    """CREATE TABLE from its name to the end; None if a mistake was reported."""
    context, cursor = given.context, given.cursor
    before = len(context.errors)
    name = given.plain_name("a table", _EXAMPLE)
    columns, watermark = parse_columns(context, cursor.group("columns", _EXAMPLE))
    # With a WATERMARK, a stream was meant: the options of a stream are no further mistake then.
    known = options.TABLE if watermark is None else {**options.STREAM, **options.TABLE}
    values = given.options(known)
    cursor.finish(END_STATEMENT)
    if watermark is not None:
        hint = "leave WATERMARK out, or write CREATE STREAM"
        context.error("a table has no event time: its rows don't change", name.offset, hint)
    if len(context.errors) == before and "path" not in values:
        context.error("a table needs the option 'path', the file of its rows", name.offset, _EXAMPLE)
    if len(context.errors) > before:
        return None
    return TableDef(
        name.text, tuple(columns), values["path"], given.functions, given.sql, given.position(name)
    )
