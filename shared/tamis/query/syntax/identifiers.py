"""Identifiers of SQL: folded to lower case unless quoted, as in Postgres."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from tamis.query.syntax.dialect import span


@dataclass(frozen=True)
class Name:
    """A name after case folding, and the offset at which it stands."""

    text: str
    offset: int


def name_of(identifier: exp.Expr) -> Name:
    """The name of an identifier in a syntax tree."""
    text = identifier.name
    return Name(text if identifier.args.get("quoted") else text.lower(), span(identifier)[0])
