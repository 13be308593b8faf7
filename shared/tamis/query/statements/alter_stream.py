"""ALTER STREAM: changes of a raw stream while alerts read it, and CREATE OR REPLACE of a stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from tamis.declarations.definitions import ColumnDef
from tamis.declarations.streams import StreamDef
from tamis.errors import SqlError, SqlErrors
from tamis.query.model import AlertDef, DerivedDef, Redefine
from tamis.query.redefinition import meaning, readers
from tamis.query.statements import options
from tamis.query.statements.statement_input import END_STATEMENT, StatementInput
from tamis.query.statements.stream_text import Part, StreamText, source, without
from tamis.query.syntax.cursor import COLUMN_NAME, Cursor, Name
from tamis.wording.names import suggest

_EXAMPLE = (
    "write ALTER STREAM name ADD COLUMN column TYPE, ALTER COLUMN column SET CHECK (…), "
    "or SET (option = value)"
)
_COLUMN = "write SET CHECK (…), DROP CHECK, SET NOT NULL or DROP NOT NULL"
_TYPE = "the type of a column can't change: tuples with the old type are on their way"
_ANEW = "DROP STREAM and CREATE STREAM make it anew"
CHANGEABLE = ("keys", "rate", "max_stall", "idle_timeout", "max_ahead")
"""The options that ALTER STREAM can change."""

_REFUSED: Mapping[tuple[str, ...], tuple[str, str]] = {
    ("DROP",): (
        "a column can't be dropped: tuples and queries from before the change still need it",
        "leave it: sources need not send it if it isn't NOT NULL",
    ),
    ("RENAME",): (
        "nothing can be renamed: sources, messages and queries use the names",
        "add a column with the new name",
    ),
    ("OWNER",): ("streams have no owner", "rights are those of the registry's tokens"),
}


def parse_alter(given: StatementInput) -> Redefine | None:
    """ALTER from after that word to the end; None if a mistake was reported."""
    cursor, context = given.cursor, given.context
    if not cursor.word("STREAM"):
        kind = cursor.peek()
        hint = {
            "TABLE": "for a stream write ALTER STREAM; a table is made anew with DROP TABLE and CREATE TABLE",
            "ALERT": "write CREATE OR REPLACE ALERT name …",
            "FUNCTION": "write CREATE OR REPLACE FUNCTION name …",
        }.get(kind, _EXAMPLE)
        raise cursor.unexpected("STREAM", hint)
    name = cursor.name("the name of a stream", _EXAMPLE)
    stream = _stream(given, name)
    if stream is None:
        return None
    before = len(context.errors)
    text = StreamText.of(stream.sql)
    if cursor.current is None:
        raise cursor.unexpected("a change", _EXAMPLE)
    for item in cursor.items():
        try:
            _change(given, item, stream, text)
        except SqlError as error:
            context.errors.append(error)
    if len(context.errors) > before:
        return None
    made = _made(given, name, stream, text)
    return None if made is None else _redefined(given, name, stream, made, "alter")


def replaced(given: StatementInput, made: StreamDef | DerivedDef) -> StreamDef | DerivedDef | Redefine | None:
    """CREATE OR REPLACE STREAM: a change of the stream if it exists; None if a mistake was reported."""
    catalog, error = given.context.catalog, given.context.error
    name = Name(made.name, given.start)
    known = catalog.raw_stream(made.name)
    if isinstance(made, DerivedDef) or made.name in catalog.derived:
        hint = f"write DROP STREAM {made.name}; CREATE STREAM …"
        error("OR REPLACE is for streams with columns of their own, not for AS SELECT", given.start, hint)
        return None
    if known is None:
        return made
    if meaning(made) == meaning(known):
        return Redefine("replace", known, (), made.position)
    refused = len(given.context.errors)
    _check_options(given, name, known, made)
    return None if len(given.context.errors) > refused else _redefined(given, name, known, made, "replace")


def _stream(given: StatementInput, name: Name) -> StreamDef | None:
    """The raw stream that changes; None if a mistake was reported."""
    context = given.context
    found = context.catalog.raw_stream(name.text)
    if found is not None:
        return found
    if name.text in context.catalog.derived:
        hint = f"alter the stream that it reads; to change its query, write DROP STREAM {name.text} first"
        context.error(f"'{name.text}' is a derived stream", name.offset, hint)
    elif name.text in context.catalog.tables:
        hint = f"write DROP TABLE {name.text}; CREATE TABLE …"
        context.error(f"'{name.text}' is a table", name.offset, hint)
    elif name.text not in context.broken_streams and "stream" not in context.incomplete:
        hint = suggest(name.text, context.catalog.raw_streams, "SHOW STREAMS lists the streams")
        context.error(f"there is no stream '{name.text}'", name.offset, hint)
    return None


def _change(given: StatementInput, item: Cursor, stream: StreamDef, text: StreamText) -> None:
    """Carry out one change on the text of the stream. Raises SqlError."""
    offset = item.offset
    if item.word("ADD"):
        _add_column(given, item, stream, text, offset)
    elif item.word("SET"):
        _set_options(given, item.group("name = value, …", "write SET (name = value, …)"), text)
        item.finish(END_STATEMENT)
    elif item.word("RESET"):
        for one in item.group("name, …", "write RESET (name, …)").items():
            option = one.name("the name of an option", "write RESET (name, …)")
            _check_changeable(given, option)
            text.options.pop(option.text, None)
        item.finish(END_STATEMENT)
    elif item.word("ALTER", "WATERMARK") or item.word("MODIFY", "WATERMARK"):
        item.expect_word("FOR", "write ALTER WATERMARK FOR column AS column - INTERVAL '5' SECOND")
        if text.watermark is None:
            hint = "without event time it is another stream: " + _ANEW
            raise given.context.text.error(f"stream '{stream.name}' has no WATERMARK", offset, hint)
        text.watermark = Part(f"WATERMARK FOR {source(item, item.at)}", offset)
    elif item.word("ALTER"):
        item.word("COLUMN")
        _alter_column(given, item, text, offset)
    else:
        for words, (what, hint) in _REFUSED.items():
            if item.word(*words):
                raise given.context.text.error(what, offset, hint)
        raise item.unexpected("ADD COLUMN, ALTER COLUMN, ALTER WATERMARK, SET or RESET", _EXAMPLE)


def _add_column(
    given: StatementInput, item: Cursor, stream: StreamDef, text: StreamText, offset: int
) -> None:
    item.word("COLUMN")
    if item.peek() == "IF":
        raise item.unexpected("a name", "leave IF NOT EXISTS out: a column that is the same changes nothing")
    first = item.at
    name = item.name(COLUMN_NAME, _EXAMPLE)
    error = given.context.text.error
    while item.current is not None:
        place = item.offset
        if item.word("NOT", "NULL"):
            hint = (
                "add it without NOT NULL; when all sources send it, write "
                f"ALTER STREAM {stream.name} ALTER COLUMN {name.text} SET NOT NULL"
            )
            raise error(
                "a new column can't be NOT NULL: readings that are on their way have none", place, hint
            )
        if item.word("KEY"):
            raise error("a new column can't be a KEY: it would tell other devices apart", place, _ANEW)
        if item.symbol("("):
            item.at -= 1
            item.group("condition", _EXAMPLE)
        else:
            item.take()
    part = Part(source(item, first), offset)
    known = text.columns.get(name.text)
    if known is not None and " ".join(known.text.split()).lower() != " ".join(part.text.split()).lower():
        hint = f"write ALTER COLUMN {name.text} SET CHECK (…), or choose another name"
        raise error(f"stream '{stream.name}' has a column '{name.text}' already", offset, hint)
    if known is None:
        text.columns[name.text] = part


def _alter_column(given: StatementInput, item: Cursor, text: StreamText, offset: int) -> None:
    name = item.name(COLUMN_NAME, _COLUMN)
    error = given.context.text.error
    if name.text not in text.columns:
        hint = suggest(name.text, text.columns, "ADD COLUMN adds one")
        raise error(f"there is no column '{name.text}'", name.offset, hint)
    column = text.columns[name.text].text
    if item.word("SET", "CHECK"):
        opening = item.at
        item.group("condition", "write SET CHECK (condition)")
        column = f"{without(column, ('CHECK',))} CHECK {source(_until(item), opening)}"
    elif item.word("DROP", "CHECK"):
        column = without(column, ("CHECK",))
    elif item.word("SET", "NOT", "NULL"):
        column = f"{without(column, ('NOT', 'NULL'))} NOT NULL"
    elif item.word("DROP", "NOT", "NULL"):
        column = without(column, ("NOT", "NULL"))
    elif item.peek() == "TYPE" or (item.peek(), item.peek(1)) == ("SET", "DATA"):
        raise error(_TYPE, item.offset, f"add a column of the new type, or: {_ANEW}")
    else:
        raise item.unexpected("SET CHECK, DROP CHECK, SET NOT NULL or DROP NOT NULL", _COLUMN)
    item.finish("write a comma between two changes")
    text.columns[name.text] = Part(column, offset)


def _until(item: Cursor) -> Cursor:
    """The tokens of an item that were taken."""
    return Cursor(item.text, item.tokens[: item.at], item.offset)


def _set_options(given: StatementInput, group: Cursor, text: StreamText) -> None:
    # Mistakes in the values are reported here, at their places.
    before = len(given.context.errors)
    copy = Cursor(group.text, group.tokens, group.end)
    options.parse_options(given.context, copy, options.STREAM)
    if len(given.context.errors) > before:
        return
    for item in group.items():
        option = item.name("the name of an option", _EXAMPLE)
        _check_changeable(given, option)
        item.symbol("=")
        text.options[option.text] = source(item, item.at)


def _check_changeable(given: StatementInput, option: Name) -> None:
    """Raises SqlError for an option that can't change."""
    if option.text in CHANGEABLE:
        return
    if option.text not in options.STREAM:
        hint = suggest(option.text, CHANGEABLE, f"the options are: {', '.join(CHANGEABLE)}")
        raise given.context.text.error(f"there is no option '{option.text}' here", option.offset, hint)
    hint = f"{', '.join(CHANGEABLE)} can change; {_ANEW}"
    raise given.context.text.error(_unchangeable(option.text), option.offset, hint)


def _unchangeable(option: str) -> str:
    return f"the option '{option}' can't change: it says what readings from before the change mean"


def _made(given: StatementInput, name: Name, stream: StreamDef, text: StreamText) -> StreamDef | None:
    """The stream with the changes; None if a mistake was reported."""
    context, sql = given.context, text.sql()
    without_it = context.catalog.copy()
    del without_it.streams[stream.name]
    try:
        (made,) = context.parse(sql, without_it, None)
    except SqlErrors as error:
        for one in error.errors:
            line = one.position.line if one.position else 0
            offset = text.offset(line)
            context.error(one.what, name.offset if offset is None else offset, one.hint or _EXAMPLE)
        return None
    assert isinstance(made, StreamDef)
    return replace(made, position=given.position(name))


def _redefined(
    given: StatementInput, name: Name, before: StreamDef, made: StreamDef, verb: str
) -> Redefine | None:
    """The change with all definitions that read the stream; None if a mistake was reported."""
    context, refused = given.context, len(given.context.errors)
    for check in _CHECKS:
        check(given, name, before, made)
    if len(context.errors) > refused:
        return None
    position = given.position(name)
    if meaning(made) == meaning(before):
        return Redefine("alter" if verb == "alter" else "replace", before, (), position)
    try:
        found = readers(context.catalog, made, position, context.parse)
    except SqlErrors as error:
        context.errors.extend(error.errors)
        return None
    return Redefine("alter" if verb == "alter" else "replace", made, found, position)


def _check_columns(given: StatementInput, name: Name, before: StreamDef, made: StreamDef) -> None:
    error = given.context.error
    for column in before.columns:
        now = made.column(column.name)
        if now is None:
            what, hint = _REFUSED["DROP",]
            error(f"column '{column.name}': {what}", name.offset, hint)
        elif now.type != column.type:
            what = f"column '{column.name}': {_TYPE}"
            error(what, name.offset, f"add a column of the new type, or: {_ANEW}")
        elif now.key != column.key:
            error(f"'{column.name}': a KEY can't change, since it tells devices apart", name.offset, _ANEW)
    for column in made.columns:
        if before.column(column.name) is None and (column.key or column.not_null):
            what = f"the new column '{column.name}' can't be KEY or NOT NULL"
            error(what, name.offset, "add it without, and SET NOT NULL when all sources send it")
    if before.time != made.time:
        error("the event time of a stream can't change", name.offset, _ANEW)


def _check_order(given: StatementInput, name: Name, before: StreamDef, made: StreamDef) -> None:
    names = [column.name for column in before.columns]
    if [column.name for column in made.columns if column.name in names] != names:
        hint = "keep the order, and write new columns behind the others"
        given.context.error("the order of the columns can't change", name.offset, hint)


def _check_patterns(given: StatementInput, name: Name, before: StreamDef, made: StreamDef) -> None:
    """A pattern is compared with a series of readings, and a window function reads one. After a restart an
    edge reads the series again, and it must consist of the same readings.
    """
    if _domains(before.columns) == _domains(made.columns[: len(before.columns)]) and not any(
        column.check for column in made.columns[len(before.columns) :]
    ):
        return
    catalog = given.context.catalog
    queries: list[DerivedDef | AlertDef] = [*catalog.derived.values(), *catalog.alerts.values()]
    for reader in queries:
        if any(stream.base == before.name for stream in reader.query.watched):
            kind = "stream" if isinstance(reader, DerivedDef) else "alert"
            what = (
                f"{kind} '{reader.name}' reads series of '{before.name}' (similar() or OVER): with another "
                "CHECK or NOT NULL, a restart would rebuild these series from other readings"
            )
            given.context.error(what, name.offset, f"drop {kind} {reader.name} first, and create it again")


def _domains(columns: tuple[ColumnDef, ...]) -> list[object]:
    return [(column.not_null, column.check) for column in columns]


def _check_options(given: StatementInput, name: Name, before: StreamDef, made: StreamDef) -> None:
    for option in ("finite", "until", "value_format", "time_unit"):
        if getattr(before, option) != getattr(made, option):
            given.context.error(_unchangeable(option), name.offset, _ANEW)


_CHECKS: tuple[Callable[[StatementInput, Name, StreamDef, StreamDef], None], ...] = (
    _check_columns,
    _check_order,
    _check_patterns,
)
