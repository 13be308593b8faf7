"""Changes of the catalogue by statements, for the parser and for the registry alike."""

from __future__ import annotations

from collections.abc import Iterator

from tamis.errors import Position, SqlError
from tamis.query.model import (
    AlertDef,
    Catalog,
    DerivedDef,
    Drop,
    Explain,
    FunctionDef,
    SetPaused,
    Statement,
    StreamDef,
    TableDef,
)
from tamis.query.names import suggest


def apply(catalog: Catalog, statement: Statement) -> None:
    """Carry out `statement` on `catalog`. Raises `SqlError` if a name is taken, missing or in use.

    Streams, raw and derived, and tables share one namespace. Functions have another one, and alerts a
    third. An alert and a derived stream can't have the same name, since both are queries.
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
            catalog.derived[statement.name] = statement
        case FunctionDef():
            _free(catalog, "function", statement.name, statement.position)
            catalog.functions[statement.name] = statement
        case AlertDef():
            if statement.name in catalog.derived:
                raise _taken("a derived stream", statement.name, statement.position)
            if statement.name in catalog.alerts and not statement.replace:
                hint = f"write CREATE OR REPLACE ALERT {statement.name}, or choose another name"
                raise SqlError(f"there is already an alert '{statement.name}'", statement.position, hint)
            catalog.alerts[statement.name] = statement
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
    """The definitions that read a stream or call a function, as "alert 'q'", "stream 's'" or "function
    'f'".
    """
    if kind == "alert":
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
            and any(name == source.stream or name in source.via for source in definition.query.sources)
        )
        if reads or (kind == "function" and name in definition.functions):
            yield f"{what} '{definition.name}'"


def _drop(catalog: Catalog, statement: Drop) -> None:
    name = statement.name
    _exists(catalog, statement.kind, name, statement.position)
    users = list(dependents(catalog, statement.kind, name))
    if users:
        what = f"{statement.kind} '{name}' is used by {', '.join(users)}"
        raise SqlError(what, statement.position, "drop these first")
    if statement.kind == "alert":
        del catalog.alerts[name]
        catalog.paused.discard(name)
    elif statement.kind == "function":
        del catalog.functions[name]
    elif statement.kind == "table":
        del catalog.tables[name]
    else:
        (catalog.streams if name in catalog.streams else catalog.derived).pop(name)


def _names(catalog: Catalog, kind: str) -> list[str]:
    if kind == "stream":
        return [*catalog.streams, *catalog.derived]
    if kind == "table":
        return list(catalog.tables)
    return list(catalog.alerts if kind == "alert" else catalog.functions)


def _exists(catalog: Catalog, kind: str, name: str, position: Position) -> None:
    names = _names(catalog, kind)
    if name not in names:
        raise SqlError(f"there is no {kind} '{name}'", position, suggest(name, names))


def _free(catalog: Catalog, kind: str, name: str, position: Position) -> None:
    for taken in ("stream", "table") if kind in ("stream", "table") else (kind,):
        if name in _names(catalog, taken):
            hint = f"choose another name, or write DROP {taken.upper()} {name} first"
            raise SqlError(f"there is already a {taken} '{name}'", position, hint)


def _taken(by: str, name: str, position: Position) -> SqlError:
    return SqlError(f"'{name}' is already the name of {by}", position, "choose another name")
