"""Changes of the catalogue by statements, for the parser and for the registry alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tamis.declarations.definitions import FunctionDef, PatternDef, TableDef
from tamis.declarations.streams import StreamDef
from tamis.declarations.watches import pattern_watches
from tamis.errors import Position, SqlError
from tamis.query.model import (
    AlertDef,
    Catalog,
    DerivedDef,
    Drop,
    Explain,
    Query,
    Redefine,
    SetPaused,
    Statement,
)
from tamis.wording.names import listed, suggest


def apply(catalog: Catalog, statement: Statement) -> None:
    """Carry out `statement` on `catalog`. Raises `SqlError` if a name is taken, missing or in use.

    Streams, raw and derived, and tables share one namespace. Functions have another one, alerts a third, and
    patterns a fourth. An alert and a derived stream can't have the same name, since both are queries.
    """
    match statement:
        case StreamDef():
            _free(catalog, "stream", statement.name, statement.position)
            catalog.streams[statement.name] = statement
        case TableDef():
            _free(catalog, "table", statement.name, statement.position)
            catalog.tables[statement.name] = statement
        case DerivedDef():
            _free(catalog, "stream", statement.name, statement.position)
            if statement.name in catalog.alerts:
                raise _taken("an alert", statement.name, statement.position)
            _add_watched(catalog, statement)
            catalog.derived[statement.name] = statement
        case FunctionDef():
            _free(catalog, "function", statement.name, statement.position)
            catalog.functions[statement.name] = statement
        case PatternDef():
            _free(catalog, "pattern", statement.name, statement.position)
            catalog.patterns[statement.name] = statement
        case AlertDef():
            if statement.name in catalog.derived:
                raise _taken("a derived stream", statement.name, statement.position)
            if statement.name in catalog.alerts and not statement.replace:
                hint = f"write CREATE OR REPLACE ALERT {statement.name}, or choose another name"
                raise SqlError(f"there is already an alert '{statement.name}'", statement.position, hint)
            _add_watched(catalog, statement)
            before = catalog.alerts.get(statement.name)
            catalog.alerts[statement.name] = statement
            _remove_watched(catalog, before)
        case Redefine():
            put(catalog, (statement.made, *statement.readers))
        case Drop():
            _drop(catalog, statement)
        case SetPaused():
            _exists(catalog, "alert", statement.name, statement.position)
            (catalog.paused.add if statement.paused else catalog.paused.discard)(statement.name)
        case Explain(target=str(name)):
            if name not in catalog.alerts and name not in catalog.derived:
                hint = suggest(name, [*catalog.alerts, *catalog.derived])
                raise SqlError(f"there is no query '{name}'", statement.position, hint)


def dependents(catalog: Catalog, kind: str, name: str) -> Iterator[str]:
    """The definitions that read a stream, call a function or compare with a pattern, as "alert 'q'",
    "stream 's'" or "function 'f'".
    """
    if kind == "alert":
        return
    if kind == "pattern":
        yield from _pattern_readers(catalog, name)
        return
    definitions: list[tuple[str, StreamDef | TableDef | DerivedDef | AlertDef | FunctionDef]] = [
        *(("stream", s) for s in catalog.streams.values()),
        *(("table", t) for t in catalog.tables.values()),
        *(("stream", d) for d in catalog.derived.values()),
        *(("function", f) for f in catalog.functions.values()),
        *(("alert", a) for a in catalog.alerts.values()),
    ]
    for what, definition in definitions:
        reads = (
            kind in ("stream", "table")
            and isinstance(definition, DerivedDef | AlertDef)
            and name in read_names(definition.query)
        )
        if reads or (kind == "function" and name in definition.functions):
            yield f"{what} '{definition.name}'"


def read_names(query: Query) -> set[str]:
    """The names of the streams and tables that a query reads; the base in place of a watched stream."""
    shown = {stream.name: stream.shown_name for stream in query.watched}
    return {
        name for source in query.sources for name in (shown.get(source.stream, source.stream), *source.via)
    }


def _pattern_readers(catalog: Catalog, name: str) -> Iterator[str]:
    definition = catalog.patterns.get(name)
    members = set() if definition is None else {one.name for one in definition.members}
    for reader in _readers(catalog):
        if members & watched_patterns(reader):
            yield f"{'stream' if isinstance(reader, DerivedDef) else 'alert'} '{reader.name}'"


def _readers(catalog: Catalog) -> list[AlertDef | DerivedDef]:
    return [*catalog.derived.values(), *catalog.alerts.values()]


def watched_patterns(definition: AlertDef | DerivedDef) -> set[str]:
    """The names of all patterns that a query compares with, those of ANY and of folders among them."""
    watches = (watch for stream in definition.query.watched for watch in pattern_watches(stream.watches))
    return {pattern.name for watch in watches for pattern in watch.patterns}


def _add_watched(catalog: Catalog, definition: AlertDef | DerivedDef) -> None:
    for stream in definition.query.watched:
        for names, kind in ((catalog.tables, "table"), (catalog.derived, "stream")):
            if stream.name in names:
                raise _taken(f"a {kind}", stream.name, definition.position)
        if catalog.streams.setdefault(stream.name, stream) != stream:
            raise _taken("a stream", stream.name, definition.position)


def _remove_watched(catalog: Catalog, before: AlertDef | DerivedDef | None) -> None:
    """Remove the watched streams of a definition that has gone, unless another definition reads them."""
    gone = set() if before is None else {stream.name for stream in before.query.watched}
    if not gone:
        return
    for reader in _readers(catalog):
        gone -= {stream.name for stream in reader.query.watched}
    for name in gone:
        del catalog.streams[name]


def put(
    catalog: Catalog, definitions: Iterable[StreamDef | TableDef | FunctionDef | DerivedDef | AlertDef]
) -> None:
    """Put definitions in the places of those of the same names. The watched streams become those of the
    queries in the catalogue.
    """
    for made in definitions:
        match made:
            case StreamDef():
                catalog.streams[made.name] = made
            case TableDef():
                catalog.tables[made.name] = made
            case FunctionDef():
                catalog.functions[made.name] = made
            case DerivedDef():
                catalog.derived[made.name] = made
            case AlertDef():
                catalog.alerts[made.name] = made
    for name in [name for name, stream in catalog.streams.items() if stream.base is not None]:
        del catalog.streams[name]
    for reader in _readers(catalog):
        for stream in reader.query.watched:
            catalog.streams.setdefault(stream.name, stream)


def _drop(catalog: Catalog, statement: Drop) -> None:
    name = statement.name
    _exists(catalog, statement.kind, name, statement.position)
    users = list(dependents(catalog, statement.kind, name))
    if users:
        what = f"{statement.kind} '{name}' is used by {listed(users)}"
        raise SqlError(what, statement.position, "drop these first")
    if statement.kind == "alert":
        _remove_watched(catalog, catalog.alerts.pop(name))
        catalog.paused.discard(name)
    elif statement.kind == "function":
        del catalog.functions[name]
    elif statement.kind == "table":
        del catalog.tables[name]
    elif statement.kind == "pattern":
        del catalog.patterns[name]
    elif name in catalog.streams:
        del catalog.streams[name]
    else:
        _remove_watched(catalog, catalog.derived.pop(name))


def _names(catalog: Catalog, kind: str) -> list[str]:
    if kind == "stream":
        return [*catalog.raw_streams, *catalog.derived]
    if kind == "pattern":
        return list(catalog.patterns)
    if kind == "table":
        return list(catalog.tables)
    return list(catalog.alerts if kind == "alert" else catalog.functions)


def _exists(catalog: Catalog, kind: str, name: str, position: Position) -> None:
    names = _names(catalog, kind)
    if name not in names:
        raise SqlError(f"there is no {kind} '{name}'", position, suggest(name, names))


def _free(catalog: Catalog, kind: str, name: str, position: Position) -> None:
    if kind in ("stream", "table") and name in catalog.streams and name not in catalog.raw_streams:
        raise _taken("a stream of Tamis' own", name, position)
    for taken in ("stream", "table") if kind in ("stream", "table") else (kind,):
        if name in _names(catalog, taken):
            hint = f"choose another name, or write DROP {taken.upper()} {name} first"
            raise SqlError(f"there is already a {taken} '{name}'", position, hint)


def _taken(by: str, name: str, position: Position) -> SqlError:
    return SqlError(f"'{name}' is already the name of {by}", position, "choose another name")
