"""Redefinition of a stream or function: all definitions that read it are resolved again from their SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tamis.declarations.definitions import FunctionDef, TableDef
from tamis.declarations.streams import StreamDef
from tamis.errors import Position, SqlError, SqlErrors
from tamis.query.catalog import put, read_names, watched_patterns
from tamis.query.model import AlertDef, Catalog, DerivedDef, Statement

Reader = StreamDef | TableDef | FunctionDef | DerivedDef | AlertDef
Parse = Callable[[str, Catalog, str | None], list[Statement]]
"""Parses a text of a file (None: no file) with a catalogue, and applies nothing."""


def readers(
    catalog: Catalog, made: StreamDef | FunctionDef, position: Position, parse: Parse
) -> tuple[Reader, ...]:
    """All definitions of `catalog` that read the stream or function that becomes `made`, resolved with it.

    Raises SqlErrors with every definition that can't be resolved with it, and the reason.
    """
    after = catalog.copy()
    put(after, (made,))
    changed = {(_namespace(made), made.name)}
    found: list[Reader] = []
    errors: list[SqlError] = []
    for reader in _in_order(catalog):
        if not changed & _reads(reader):
            continue
        try:
            resolved = _resolved(reader, after, parse)
        except SqlErrors as error:
            errors += [_told(reader, one, position) for one in error.errors]
            continue
        found.append(resolved)
        if resolved is not reader:
            put(after, (resolved,))
            changed.add((_namespace(reader), reader.name))
    if errors:
        raise SqlErrors(errors)
    return tuple(found)


def meaning(definition: Reader) -> Reader:
    """The definition without its text and place. Two definitions with an equal meaning are the same."""
    if isinstance(definition, AlertDef):
        return replace(definition, replace=False, sql="", position=Position(1, 1))
    return replace(definition, sql="", position=Position(1, 1))


def described(definition: Reader) -> str:
    """The kind and name of a definition, for messages."""
    match definition:
        case AlertDef():
            kind = "alert"
        case FunctionDef():
            kind = "function"
        case TableDef():
            kind = "table"
        case _:
            kind = "stream"
    return f"{kind} '{definition.name}'"


def _in_order(catalog: Catalog) -> Iterator[Reader]:
    """All definitions that may read another one. Each comes after all definitions that it reads."""
    yield from _functions_in_order(catalog)
    yield from catalog.raw_streams.values()
    yield from catalog.tables.values()
    yield from catalog.derived.values()
    yield from catalog.alerts.values()


def _functions_in_order(catalog: Catalog) -> Iterator[FunctionDef]:
    """The functions, each after all functions that it calls. A replaced function may call later ones."""
    left = dict(catalog.functions)
    while left:
        ready = [one for one in left.values() if not left.keys() & set(one.functions)]
        # The parser refuses cycles, so at least one function calls none of the others.
        for one in ready:
            del left[one.name]
        yield from ready


def _namespace(definition: Reader) -> str:
    match definition:
        case FunctionDef():
            return "function"
        case AlertDef():
            return "alert"
        case _:
            return "stream"


def _reads(reader: Reader) -> set[tuple[str, str]]:
    found = {("function", name) for name in reader.functions}
    if isinstance(reader, DerivedDef | AlertDef):
        found |= {("stream", name) for name in read_names(reader.query)}
    return found


def _resolved(reader: Reader, catalog: Catalog, parse: Parse) -> Reader:
    """The definition, parsed with another catalogue; the same object if its meaning is the same."""
    without = catalog.copy()
    for names in (without.streams, without.tables, without.functions, without.derived, without.alerts):
        if names.get(reader.name) is reader:
            del names[reader.name]
    # ANY stands for the patterns that were there when the query was made.
    compared = watched_patterns(reader) if isinstance(reader, DerivedDef | AlertDef) else set()
    without.patterns = {
        name: one for name, one in without.patterns.items() if {m.name for m in one.members} <= compared
    }
    (made,) = parse(reader.sql, without, None)
    assert isinstance(made, type(reader))
    if meaning(made) == meaning(reader):
        return reader
    if not isinstance(made, DerivedDef | AlertDef):
        return made
    (placed,) = parse(_at_its_place(reader, made), without, reader.position.file)
    assert isinstance(placed, DerivedDef | AlertDef)
    return placed


def _at_its_place(reader: Reader, alone: DerivedDef | AlertDef) -> str:
    """The SQL of a query behind as many lines and columns as in its file, so that positions in it are those
    of the file. `alone`: the query, parsed from its SQL alone.
    """
    lines = reader.position.line - alone.position.line
    columns = reader.position.column - alone.position.column
    return "\n" * lines + " " * columns + reader.sql


def _told(reader: Reader, error: SqlError, position: Position) -> SqlError:
    return SqlError(f"{described(reader)} would no longer be valid: {error.what}", position, error.hint)
