"""Positions of the clauses of a SELECT in its tokens, before anything is parsed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot.tokenizer_core import Token, TokenType

from tamis.query.syntax.dialect import RESERVED, is_word

_ENDS = frozenset({"WHERE", "GROUP", "GROUP BY", "HAVING", "EMIT", "UNION", "LIMIT", "ORDER BY"})
_TWO_WORDS = (TokenType.GROUP_BY, TokenType.ORDER_BY)
_JOINS = frozenset({"JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS"})
_AFTER_GROUPS = frozenset({"HAVING", "EMIT", "UNION", "LIMIT", "ORDER BY"})


@dataclass(frozen=True)
class Item:
    """One stream in FROM: the index of its name, and the name by which the query calls it."""

    at: int
    name: str
    alias: str
    end: int  # the index after its alias


def word(token: Token) -> str:
    """A token in capitals if it is a word or a keyword of two words such as GROUP BY, else an empty text."""
    if is_word(token):
        return token.text.upper()
    return " ".join(token.text.upper().split()) if token.token_type in _TWO_WORDS else ""


def closing(tokens: Sequence[Token], opening: int) -> int | None:
    """The index of the parenthesis that closes the one at `opening`; None if there is none."""
    depth = 0
    for at in range(opening, len(tokens)):
        depth += (tokens[at].token_type is TokenType.L_PAREN) - (tokens[at].token_type is TokenType.R_PAREN)
        if depth == 0:
            return at
    return None


def arguments(tokens: Sequence[Token], opening: int, end: int) -> Iterator[tuple[int, int]]:
    """The range of each argument between the parenthesis at `opening` and the one at `end`."""
    depth, start = 0, opening + 1
    for at in range(opening + 1, end):
        kind = tokens[at].token_type
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        if kind is TokenType.COMMA and not depth:
            yield start, at
            start = at + 1
    if start < end:
        yield start, end


def outside_parentheses(tokens: Sequence[Token], words: frozenset[str], start: int = 0) -> int:
    """The index of the first of these words that is in no parentheses; the number of tokens if there is
    none.
    """
    depth = 0
    for at in range(start, len(tokens)):
        kind = tokens[at].token_type
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        if not depth and word(tokens[at]) in words:
            return at
    return len(tokens)


def item_after(tokens: Sequence[Token], at: int) -> Item | None:
    """The stream that is named after FROM or JOIN at `at`; None if there is no plain name."""
    if at + 1 >= len(tokens) or (name := _name(tokens[at + 1])) is None:
        return None
    after = at + 2
    given = after < len(tokens) and word(tokens[after]) == "AS"
    after += given
    alias = _name(tokens[after]) if after < len(tokens) else None
    if alias is None or (not given and alias.upper() in ("WINDOW", "WITHIN", "EMIT")):
        return Item(at + 1, name, name, at + 2)
    return Item(at + 1, name, alias, after + 1)


def items(tokens: Sequence[Token]) -> list[Item] | None:
    """The streams of FROM and its JOINs; None if one of them isn't a plain name."""
    begin = outside_parentheses(tokens, frozenset({"FROM"}))
    stop = outside_parentheses(tokens, _ENDS, begin)
    places = [begin]
    depth = 0
    for at in range(begin + 1, stop):
        kind = tokens[at].token_type
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        if not depth and (word(tokens[at]) == "JOIN" or kind is TokenType.COMMA):
            places.append(at)
    found = [item_after(tokens, at) for at in places]
    named = [one for one in found if one is not None]
    return named if len(named) == len(found) else None


def groups(tokens: Sequence[Token]) -> tuple[int, int] | None:
    """The range of the columns of GROUP BY; None without GROUP BY."""
    at = outside_parentheses(tokens, frozenset({"GROUP BY"}))
    if at == len(tokens):
        return None
    return at + 1, outside_parentheses(tokens, _AFTER_GROUPS, at)


def end_of_condition(tokens: Sequence[Token], on: int) -> int:
    """The index after the condition of the ON at `on`."""
    return outside_parentheses(tokens, _ENDS | _JOINS, on + 1)


def end_of_sources(tokens: Sequence[Token]) -> int:
    """The index of the first clause after FROM and WHERE, where GROUP BY stands."""
    return outside_parentheses(tokens, _AFTER_GROUPS | {"GROUP BY"})


def _name(token: Token) -> str | None:
    if token.token_type is TokenType.IDENTIFIER:
        return token.text
    if not is_word(token) or token.text.upper() in RESERVED or word(token) in _ENDS | _JOINS:
        return None
    return token.text.lower()
