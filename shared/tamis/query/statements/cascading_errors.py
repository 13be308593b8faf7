"""Suppression of cascading errors: a mistake in one statement is reported once, at its place.

The name that a statement with a mistake would have defined is *broken*: mistakes of statements that use it
are not reported. If not even the name can be read, its namespace is *incomplete*: any unknown name may be
the missing one. An unknown name is broken once it was reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from sqlglot.tokenizer_core import Token, TokenType

from tamis.declarations.definitions import FunctionDef, PatternDef, TableDef
from tamis.declarations.streams import StreamDef
from tamis.query.context import Context, Namespace
from tamis.query.model import AlertDef, Catalog, DerivedDef, Drop, Explain, Redefine, SetPaused, Statement
from tamis.query.syntax.dialect import RESERVED, is_word

_NAMESPACES: dict[str, tuple[Namespace, ...]] = {
    "STREAM": ("stream",),
    "TABLE": ("stream",),
    "ALERT": ("alert",),
    "FUNCTION": ("function",),
    "PATTERN": ("pattern",),
}
_ANY: tuple[Namespace, ...] = ("stream", "alert", "function", "pattern")
# Similarity by difflib from which a word counts as a misspelt keyword, such as STRAEM and CRAETE.
_CLOSE = 0.8


def mark_broken(context: Context, tokens: Sequence[Token]) -> None:
    """Remember the names that a statement with a mistake would have defined. It has several if a semicolon is
    missing.
    """
    for at, token in enumerate(tokens):
        word = _word(token)
        if word == "CREATE" or (at == 0 and get_close_matches(word, ("CREATE",), 1, _CLOSE)):
            _mark_definition(context, tokens[at + 1 : at + 6])


def _mark_definition(context: Context, tokens: Sequence[Token]) -> None:
    """Remember the name of one definition; `tokens` are those behind CREATE."""
    if [_word(token) for token in tokens[:2]] == ["OR", "REPLACE"]:
        tokens = tokens[2:]
    if [_word(token) for token in tokens[1:4]] == ["IF", "NOT", "EXISTS"]:
        tokens = [*tokens[:1], *tokens[4:]]
    meant = get_close_matches(_word(tokens[0]), _NAMESPACES, 1, _CLOSE) if tokens else []
    namespaces = _NAMESPACES[meant[0]] if meant else _ANY
    named = tokens[1:2]
    if not meant and len(tokens) > 1 and not _name(tokens[1]):
        named = tokens[:1]  # STREAM, ALERT or the like is missing
    name = _name(named[0]) if named else ""
    for namespace in namespaces:
        if not name:
            context.incomplete.add(namespace)
        elif not defined(context.catalog, namespace, name):
            context.broken(namespace).add(name)


def _word(token: Token) -> str:
    return token.text.upper() if is_word(token) else ""


def _name(token: Token) -> str:
    if token.token_type == TokenType.IDENTIFIER:
        return token.text
    return token.text.lower() if is_word(token) and token.text.upper() not in RESERVED else ""


def defined(catalog: Catalog, namespace: Namespace, name: str) -> bool:
    """Tell if the catalogue has a name in a namespace."""
    if namespace == "stream":
        return bool(catalog.raw_stream(name)) or name in catalog.derived or name in catalog.tables
    if namespace == "pattern":
        return name in catalog.patterns
    return name in (catalog.alerts if namespace == "alert" else catalog.functions)


def caused_by_earlier_error(context: Context, statement: Statement) -> bool:
    """Tell if `statement` can't be carried out because of an earlier mistake, and remember the names that it
    breaks itself.
    """
    match statement:
        case StreamDef() | TableDef() | DerivedDef():
            # Nobody knows which of the two definitions others mean, nor the right name of this one.
            context.incomplete.add("stream")
            context.broken_streams.add(statement.name)
            return statement.name in context.failed_drops
        case FunctionDef():
            context.incomplete.add("function")
            context.broken_functions.add(statement.name)
        case PatternDef():
            context.incomplete.add("pattern")
            context.broken_patterns.add(statement.name)
        case AlertDef():
            context.incomplete.add("alert")
        case Redefine():
            pass
        case Drop() if statement.kind in ("stream", "table") and defined(
            context.catalog, "stream", statement.name
        ):
            context.failed_drops.add(statement.name)
        case Drop() | SetPaused() | Explain(target=str()):
            return _unknown(context, statement)
    return False


def _unknown(context: Context, statement: Drop | SetPaused | Explain) -> bool:
    """Tell if an unknown name may be that of a definition whose name could not be read."""
    name = statement.target if isinstance(statement, Explain) else statement.name
    namespace: Namespace = "alert"
    if isinstance(statement, Drop) and statement.kind != "alert":
        namespace = _NAMESPACES[statement.kind.upper()][0]
    if not isinstance(name, str) or defined(context.catalog, namespace, name):
        return False
    context.broken(namespace).add(name)
    return namespace in context.incomplete
