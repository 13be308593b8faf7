"""What a statement does to the catalogue when a text may be applied again: what is there already stays.

`tamis.query.catalog.apply` takes every name once; the registry is asked for a state of things instead, so
that a file of statements can be applied as often as one likes.
"""

from __future__ import annotations

from dataclasses import replace

from tamis.errors import Position, SqlError
from tamis.query.catalog import apply, readers
from tamis.query.model import (
    AlertDef,
    Catalog,
    DerivedDef,
    Drop,
    FunctionDef,
    Statement,
    StreamDef,
    TableDef,
)
from tamis_registry.core.state import Defined


class Conflict(SqlError):
    """The statement is right in itself; what is there already stands against it."""


def carry_out(catalog: Catalog, statement: Statement) -> None:
    """Apply `statement` unless it says what is so already. Raises Conflict or SqlError."""
    match statement:
        case AlertDef() | StreamDef() | TableDef() | DerivedDef() | FunctionDef():
            current = existing(catalog, statement)
            if current is None:
                apply(catalog, statement)
            elif not same(current, statement):
                _change(catalog, statement)
        case Drop():
            users = list(readers(catalog, statement.kind, statement.name))
            if users:
                raise Conflict(
                    f"{statement.kind} '{statement.name}' is read by {', '.join(users)}",
                    statement.position,
                    "drop what reads it first",
                )
            apply(catalog, statement)
        case _:
            apply(catalog, statement)


def existing(catalog: Catalog, statement: Defined) -> Defined | None:
    """What has the name that the statement defines."""
    name = statement.name
    match statement:
        case AlertDef():
            return catalog.alerts.get(name)
        case FunctionDef():
            return catalog.functions.get(name)
        case _:
            return catalog.streams.get(name) or catalog.derived.get(name) or catalog.tables.get(name)


def same(one: Defined, other: Defined) -> bool:
    """Whether two definitions mean the same, however they are written."""
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
        f"choose another name, or write DROP {kind.upper()} {name} first",
    )


def word(statement: Defined) -> str:
    """How SQL calls the kind of what a statement defines."""
    match statement:
        case FunctionDef():
            return "function"
        case TableDef():
            return "table"
        case _:
            return "stream"


def _meaning(definition: Defined) -> Defined:
    if isinstance(definition, AlertDef):
        return replace(definition, sql="", replace=False, position=Position(1, 1))
    return replace(definition, sql="", position=Position(1, 1))
