"""The column list of CREATE STREAM and CREATE TABLE: types, keys, CHECKs, and the watermark."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from tamis.declarations.definitions import ColumnDef
from tamis.errors import SqlError
from tamis.expressions import python_functions
from tamis.expressions.nodes import Call, Column, Literal, Type
from tamis.query.context import Context
from tamis.query.scalars import operators
from tamis.query.scalars.unqualified import UnqualifiedNames, resolve_expression
from tamis.query.syntax.cursor import COLUMN_NAME, Cursor
from tamis.wording.names import suggest

TYPES = {kind.value: kind for kind in Type if kind is not Type.INTERVAL}
_OTHER_SYSTEMS = {
    "TEXT": "VARCHAR", "STRING": "VARCHAR", "CHAR": "VARCHAR", "CHARACTER": "VARCHAR", "UUID": "VARCHAR",
    "BOOL": "BOOLEAN", "INTEGER": "INT", "SMALLINT": "INT", "TINYINT": "INT", "INT4": "INT", "INT8": "BIGINT",
    "LONG": "BIGINT", "FLOAT": "DOUBLE", "REAL": "DOUBLE", "NUMERIC": "DOUBLE", "DECIMAL": "DOUBLE",
    "FLOAT8": "DOUBLE", "DATETIME": "TIMESTAMP", "TIMESTAMPTZ": "TIMESTAMP", "DATE": "TIMESTAMP",
}  # fmt: skip
_INSTEAD = {"PRIMARY": "write KEY", "NULL": "leave NULL out: columns may be NULL by default"}


def parse_columns(context: Context, group: Cursor) -> tuple[list[ColumnDef], tuple[str, int] | None]:
    """The columns, and the watermark as event time column and delay; parts with a reported mistake are left
    out.
    """
    columns: dict[str, ColumnDef] = {}
    checks: list[tuple[str, Cursor]] = []
    watermarks: list[Cursor] = []
    complete = True
    for item in group.items():
        try:
            if item.word("WATERMARK", "FOR"):
                watermarks.append(item)
                continue
            if (
                item.peek() in ("CHECK", "PRIMARY", "UNIQUE", "CONSTRAINT", "FOREIGN")
                and item.peek(1) not in TYPES
            ):
                hint = "write KEY or CHECK (…) after the type of the column"
                raise item.unexpected("a column or WATERMARK", hint)
            column = _column(context, item, checks)
            if column.name in columns:
                what = f"the column '{column.name}' is defined twice"
                context.error(what, item.tokens[0].start, "give each column a name of its own")
                complete = False  # one of the two has a wrong name
            columns[column.name] = column
        except SqlError as error:
            context.errors.append(error)
            complete = False
    scope = UnqualifiedNames("column", {c.name: c.type for c in columns.values()}, complete)
    for column_name, inside in checks:
        place = inside.offset
        check = resolve_expression(context, inside, scope, condition="a CHECK")
        if any(python_functions.calls(check)):
            hint = "put the condition into the WHERE of the alerts"
            context.error("a CHECK can't call a Python function", place, hint)
        if check is not None and column_name in columns:
            old = columns[column_name]
            both = check if old.check is None else operators.logic("and", [old.check, check])
            columns[column_name] = ColumnDef(old.name, old.type, old.key, old.not_null, both)
    watermark = None
    for item in watermarks:
        if watermark is not None:
            context.error(
                "a stream can have only one WATERMARK", item.tokens[0].start, "leave one of them out"
            )
        watermark = _watermark(context, item, scope) or ("", 0)
    return list(columns.values()), watermark


def _column(context: Context, item: Cursor, checks: list[tuple[str, Cursor]]) -> ColumnDef:
    example = "write column TYPE, then KEY, NOT NULL or CHECK (…)"
    name = item.name(COLUMN_NAME, example)
    if name.text == "_":
        raise context.text.error("a column can't have the name _", name.offset, "choose another name")
    kind = parse_type(item)
    key = not_null = False
    while item.current is not None:
        if item.word("KEY"):
            key = True
        elif item.word("NOT", "NULL"):
            not_null = True
        elif item.word("CHECK"):
            opening = item.offset
            group = item.group("condition", "write CHECK (condition)")
            if not group.tokens:
                raise context.text.error(
                    "this CHECK is empty", opening, "write CHECK (value BETWEEN 0 AND 100)"
                )
            checks.append((name.text, group))
        else:
            hint = _INSTEAD.get(item.peek(), "write a comma between two columns")
            raise item.unexpected("KEY, NOT NULL or CHECK (…)", hint)
    return ColumnDef(name.text, kind, key, not_null)


def parse_type(cursor: Cursor) -> Type:
    """Take a type. Raises `SqlError` for any other token, such as a type of another system."""
    word = cursor.peek()
    if word not in TYPES:
        known = ", ".join(TYPES)
        hint = (
            f"write {_OTHER_SYSTEMS[word]}"
            if word in _OTHER_SYSTEMS
            else suggest(word, TYPES, f"types are {known}")
        )
        hint = f"{hint} (types are {known})" if known not in hint else hint
        raise cursor.unexpected_in_column("a type", hint)
    cursor.take()
    if word == "DOUBLE":
        cursor.word("PRECISION")
    if word == "TIMESTAMP" and cursor.peek() in ("WITH", "WITHOUT"):
        raise cursor.unexpected("the next column", "write TIMESTAMP alone: it is always in UTC")
    token = cursor.current
    if token is not None and token.text == "(" and token.token_type == TokenType.L_PAREN:
        raise cursor.unexpected("the next column", f"write {word} without a length")
    return TYPES[word]


def _watermark(context: Context, item: Cursor, scope: UnqualifiedNames) -> tuple[str, int] | None:
    """The event time column and the delay of WATERMARK FOR c AS c - INTERVAL …"""
    example = "write WATERMARK FOR column AS column - INTERVAL '5' SECOND"
    try:
        name = item.name(COLUMN_NAME, example)
        if not item.word("AS"):
            raise item.unexpected_in_column("AS", example)
    except SqlError as error:
        context.errors.append(error)
        return None
    kind = scope.columns.get(name.text)
    if kind is None:
        if scope.complete:
            hint = suggest(name.text, scope.columns)
            context.error(f"there is no column '{name.text}'", name.offset, hint)
        return None
    if kind is not Type.TIMESTAMP:
        context.error(
            f"event time must be TIMESTAMP, not {kind}", name.offset, "declare the column as TIMESTAMP"
        )
        return None
    place = item.offset
    delay = resolve_expression(context, item, scope)
    column = Column("", name.text, Type.TIMESTAMP)
    match delay:
        case None:
            return None
        case Column() if delay == column:
            return name.text, 0
        case Call("-", (first, Literal(int(length), Type.INTERVAL))) if first == column and length >= 0:
            return name.text, length
    context.error(f"a watermark must be '{name.text}' minus a constant INTERVAL", place, example)
    return None
