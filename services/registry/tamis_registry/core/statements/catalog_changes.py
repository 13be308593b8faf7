"""Application of a statement to the catalogue. To repeat an existing definition changes nothing.

`tamis.query.catalog.apply` accepts each name only once. The registry instead treats statements as a
description of the wanted state, so a file of statements can be applied any number of times.
"""

from __future__ import annotations

from dataclasses import replace

from tamis.declarations.definitions import FunctionDef, PatternDef, TableDef
from tamis.declarations.streams import StreamDef
from tamis.errors import Position, SqlError
from tamis.query.catalog import apply, dependents
from tamis.query.model import AlertDef, Catalog, DerivedDef, Drop, Redefine, SetPaused, Statement
from tamis.query.redefinition import meaning
from tamis_registry.core.state.model import Defined


class Conflict(SqlError):
    """A correct statement that conflicts with an existing definition."""


def carry_out(catalog: Catalog, statement: Statement) -> None:
    """Apply `statement`, unless its definition already exists. Raises Conflict or SqlError."""
    match statement:
        case AlertDef() | StreamDef() | TableDef() | DerivedDef() | FunctionDef() | PatternDef():
            current = existing(catalog, statement)
            if current is None:
                apply(catalog, statement)
            elif not same(current, statement):
                _change(catalog, statement)
        case Drop():
            users = list(dependents(catalog, statement.kind, statement.name))
            if users:
                raise Conflict(
                    f"{statement.kind} '{statement.name}' is read by {', '.join(users)}",
                    statement.position,
                    "drop what reads it first",
                )
            apply(catalog, statement)
        case _:
            apply(catalog, statement)


def stays(before: Catalog, statement: Statement) -> bool:
    """True if the statement's definition must stay as in `before`. Nothing is dropped then."""
    match statement:
        case AlertDef() | StreamDef() | TableDef() | DerivedDef() | FunctionDef() | PatternDef():
            return existing(before, statement) is not None
        case SetPaused():
            return statement.name in before.alerts
        case Drop():
            return True
        case Redefine():
            return statement.name in (before.streams if statement.kind == "stream" else before.functions)
        case _:
            return False


def existing(catalog: Catalog, statement: Defined) -> Defined | None:
    """The definition with the name that the statement defines."""
    name = statement.name
    match statement:
        case AlertDef():
            return catalog.alerts.get(name)
        case FunctionDef():
            return catalog.functions.get(name)
        case PatternDef():
            return catalog.patterns.get(name)
        case _:
            return catalog.raw_stream(name) or catalog.derived.get(name) or catalog.tables.get(name)


def same(one: Defined, other: Defined) -> bool:
    """True if two definitions have the same meaning, even if their texts differ."""
    return type(one) is type(other) and _meaning(one) == _meaning(other)


def _change(catalog: Catalog, statement: Defined) -> None:
    name = statement.name
    if isinstance(statement, AlertDef):
        if not statement.replace:
            raise Conflict(
                f"there is an alert '{name}' already, and it is different",
                statement.position,
                f"write CREATE OR REPLACE ALERT {name}, or choose another name",
            )
        apply(catalog, statement)
        return
    kind = word(statement)
    raise Conflict(
        f"there is a {kind} '{name}' already, and it is different",
        statement.position,
        _other_name(statement, kind),
    )


def _other_name(statement: Defined, kind: str) -> str:
    """The hint for a name that is taken."""
    match statement:
        case StreamDef():
            return (
                f"write ALTER STREAM {statement.name} … or CREATE OR REPLACE STREAM, or choose another name"
            )
        case FunctionDef():
            return f"write CREATE OR REPLACE FUNCTION {statement.name} …, or choose another name"
        case _:
            return f"choose another name, or write DROP {kind.upper()} {statement.name} first"


def word(statement: Defined) -> str:
    """SQL's word for the kind of a definition."""
    match statement:
        case FunctionDef():
            return "function"
        case PatternDef():
            return "pattern"
        case TableDef():
            return "table"
        case _:
            return "stream"


def _meaning(definition: Defined) -> Defined:
    if isinstance(definition, PatternDef):
        return replace(definition, sql="", position=Position(1, 1))
    return meaning(definition)
