"""Statements of a SQL text, and the catalogue after all of them."""

from __future__ import annotations

from collections.abc import Callable

from tamis.declarations.definitions import PatternDef
from tamis.query.catalog import apply
from tamis.query.model import Catalog, Statement
from tamis.query.parse import parse


def parsed(sql: str, file: str | None, notify: Callable[[str], object]) -> tuple[Catalog, list[Statement]]:
    """The statements of a text, and the catalogue after all of them. `file`: the name of the text in
    positions. `notify` gets the notices on files of patterns.

    Raises SqlErrors with every mistake and its position.
    """
    catalog = Catalog()
    statements = parse(sql, catalog, file=file)
    for statement in statements:
        apply(catalog, statement)
        if isinstance(statement, PatternDef):
            for notice in statement.notices:
                notify(notice)
    return catalog, statements
