"""A SELECT with a constant where a part of it can't be parsed: what stands in the other parts is still read,
so that a syntax error hides no other mistake.

Parts are the columns of SELECT and the conjuncts of ON and WHERE. A mistake elsewhere (in FROM, or behind
WHERE) is beyond mending.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from sqlglot.tokenizer_core import Token, TokenType

from tamis.query.dialect import SyntaxProblem, parse_select

_JOINS = frozenset(
    {
        TokenType.COMMA,
        TokenType.JOIN,
        TokenType.INNER,
        TokenType.LEFT,
        TokenType.RIGHT,
        TokenType.FULL,
        TokenType.CROSS,
        TokenType.NATURAL,
    }
)
_TAIL = frozenset(
    {
        TokenType.GROUP_BY,
        TokenType.HAVING,
        TokenType.ORDER_BY,
        TokenType.LIMIT,
        TokenType.OFFSET,
        TokenType.FETCH,
        TokenType.QUALIFY,
        TokenType.WINDOW,
        TokenType.UNION,
        TokenType.EXCEPT,
        TokenType.INTERSECT,
    }
)
_OPENING = frozenset({TokenType.L_PAREN, TokenType.CASE})
_CLOSING = frozenset({TokenType.R_PAREN, TokenType.END})

Clause = Literal["select", "from", "condition", "tail"]


def mend(tokens: list[Token], problem: SyntaxProblem) -> tuple[list[Token], list[Token]] | None:
    """The tokens of a SELECT with a constant for the part in which the parser stopped, and that part; None
    where it stopped outside all parts.
    """
    for clause, start, end in _parts(tokens):
        part = tokens[start:end]
        first = tokens[start].start if start < len(tokens) else tokens[-1].end + 1
        last = tokens[end].start if end < len(tokens) else problem.offset
        if not first <= problem.offset <= last:
            continue
        kind = TokenType.NULL if clause == "select" else TokenType.TRUE
        named = _named(part) if clause == "select" else []
        if [token.token_type for token in part[: len(part) - len(named)]] == [kind]:
            return None  # the constant of an earlier mending: what is wrong is around it
        constant = Token(kind, kind.name, start=first, end=first)
        return [*tokens[:start], constant, *named, *tokens[end:]], part
    return None


def _parts(tokens: list[Token]) -> Iterator[tuple[Clause, int, int]]:
    """Clause, first and last index (exclusive) of every column of SELECT and every conjunct; a column that
    runs to the end has swallowed FROM and is none.
    """
    clause: Clause = "select"
    start, depth, betweens = 1, 0, 0
    if len(tokens) > 1 and tokens[1].token_type in (TokenType.DISTINCT, TokenType.ALL):
        start = 2
    for index in range(start, len(tokens)):
        kind = tokens[index].token_type
        depth += (kind in _OPENING) - (kind in _CLOSING)
        if depth > 0:
            continue
        following = _following(clause, kind, betweens)
        if kind == TokenType.BETWEEN:
            betweens += 1
        elif kind == TokenType.AND and betweens:
            betweens -= 1
        if following is None:
            continue
        if clause in ("select", "condition"):
            yield clause, start, index
        clause, start, betweens = following, index + 1, 0
        if clause == "tail":
            return
    if clause == "condition":
        yield clause, start, len(tokens)


def _following(clause: Clause, kind: TokenType, betweens: int) -> Clause | None:
    """The clause that begins behind this token, or goes on with its next part; None inside a part."""
    if kind in _TAIL:
        return "tail"
    if kind == TokenType.WHERE:
        return "condition"
    match clause:
        case "select":
            return {TokenType.COMMA: "select", TokenType.FROM: "from"}.get(kind)  # type: ignore[return-value]
        case "from":
            return "condition" if kind == TokenType.ON else None
        case _:
            if kind == TokenType.AND and not betweens:
                return "condition"
            return "from" if kind in _JOINS else None


def _named(part: list[Token]) -> list[Token]:
    """The AS and the name that a column of SELECT ends with, if it does."""
    if len(part) > 2 and part[-2].token_type == TokenType.ALIAS:
        try:
            parse_select([Token(TokenType.SELECT, "SELECT"), Token(TokenType.NULL, "NULL"), *part[-2:]])
        except SyntaxProblem:
            return []
        return part[-2:]
    return []
