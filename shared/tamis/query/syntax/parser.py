"""Syntax trees of the SELECT or the expression that ends a statement, by sqlglot's parser.

The part of a SELECT with a syntax error is replaced by a constant, so that a syntax error hides no other
mistake. Parts are the columns of SELECT and the conjuncts of ON and WHERE. A syntax error elsewhere, in FROM
or after WHERE, can't be recovered.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from tamis.errors import SqlError
from tamis.query.syntax.cursor import Cursor
from tamis.query.syntax.dialect import SyntaxProblem, parse_expression, parse_select
from tamis.query.syntax.syntax_errors import OPTIONS_FIRST, syntax_error

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


def without_failed_part(
    tokens: list[Token], problem: SyntaxProblem
) -> tuple[list[Token], list[Token]] | None:
    """The tokens of a SELECT with a constant instead of the part in which the parser stopped, and the
    tokens of that part. None if the parser stopped outside all parts.
    """
    for clause, start, end in _parts(tokens):
        part = tokens[start:end]
        first = tokens[start].start if start < len(tokens) else tokens[-1].end + 1
        last = tokens[end].start if end < len(tokens) else problem.offset
        if not first <= problem.offset <= last:
            continue
        kind = TokenType.NULL if clause == "select" else TokenType.TRUE
        alias = _alias(part) if clause == "select" else []
        if [token.token_type for token in part[: len(part) - len(alias)]] == [kind]:
            return None  # the constant of an earlier recovery: the mistake is around it
        constant = Token(kind, kind.name, start=first, end=first)
        return [*tokens[:start], constant, *alias, *tokens[end:]], part
    return None


def _parts(tokens: list[Token]) -> Iterator[tuple[Clause, int, int]]:
    """Clause, first index and end index (exclusive) of every column of SELECT and every conjunct. A column
    that runs to the end of the tokens has swallowed FROM and is left out.
    """
    clause: Clause = "select"
    start, depth, betweens = _first_column(tokens), 0, 0
    for index in range(start, len(tokens)):
        kind = tokens[index].token_type
        depth += (kind in _OPENING) - (kind in _CLOSING)
        if depth > 0:
            continue
        next_clause = _next_clause(clause, kind, betweens)
        if kind == TokenType.BETWEEN:
            betweens += 1
        elif kind == TokenType.AND and betweens:
            betweens -= 1
        if next_clause is None:
            continue
        if clause in ("select", "condition"):
            yield clause, start, index
        clause, start, betweens = next_clause, index + 1, 0
        if clause == "tail":
            return
    if clause == "condition":
        yield clause, start, len(tokens)


def _first_column(tokens: list[Token]) -> int:
    """The index of the first column of SELECT, after the subqueries of WITH."""
    start = depth = 0
    while start < len(tokens) and (depth or tokens[start].token_type != TokenType.SELECT):
        kind = tokens[start].token_type
        depth += (kind in _OPENING) - (kind in _CLOSING)
        start += 1
    start += 1
    if start < len(tokens) and tokens[start].token_type in (TokenType.DISTINCT, TokenType.ALL):
        start += 1
    return start


def _next_clause(clause: Clause, kind: TokenType, betweens: int) -> Clause | None:
    """The clause of the part that begins after this token; None if the token is inside a part."""
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


def _alias(part: list[Token]) -> list[Token]:
    """The tokens of AS and a name at the end of a column of SELECT; empty if there are none."""
    if len(part) > 2 and part[-2].token_type == TokenType.ALIAS:
        try:
            parse_select([Token(TokenType.SELECT, "SELECT"), Token(TokenType.NULL, "NULL"), *part[-2:]])
        except SyntaxProblem:
            return []
        return part[-2:]
    return []


# Limits of the syntax errors that one SELECT reports together, and of the tokens that are parsed again for
# them: each error takes another run of the parser, which reads some 20,000 tokens a second.
MOST_RECOVERIES = 20
MOST_REPARSED_TOKENS = 40_000


def select_tree(cursor: Cursor, errors: list[SqlError]) -> exp.Expr:
    """The syntax tree of the SELECT at the cursor, to the end of the statement.

    A part with a syntax error is replaced by a constant, and its error appended to `errors`, so that the
    mistakes in the other parts are found, too. Raises `SqlError` if no part can be replaced.
    """
    tokens = cursor.rest()
    if not tokens or tokens[0].text.upper() not in ("SELECT", "WITH", "("):
        cursor.at -= len(tokens)
        raise cursor.unexpected("SELECT", "write SELECT column, … FROM stream WHERE condition")
    if tokens[0].text.upper() == "WITH" and len(tokens) > 1 and tokens[1].text == "(":
        raise cursor.text.error("expected SELECT, found 'WITH'", tokens[0].start, OPTIONS_FIRST)
    recursive = [token.text.upper() for token in tokens[:2]] == ["WITH", "RECURSIVE"]
    if recursive and len(tokens) > 2 and tokens[2].text.upper() not in ("AS", "("):
        hint = "write WITH name AS (SELECT …); a subquery can't read itself"
        raise cursor.text.error("WITH RECURSIVE is not supported", tokens[1].start, hint)
    recoveries = min(MOST_RECOVERIES, MOST_REPARSED_TOKENS // len(tokens))
    while True:
        try:
            return parse_select(tokens)
        except SyntaxProblem as problem:
            recovered = without_failed_part(tokens, problem) if recoveries else None
            if recovered is None:
                raise syntax_error(cursor.text, problem, tokens) from problem
            query, (tokens, failed_part) = tokens, recovered
            recoveries -= 1
            errors.append(syntax_error(cursor.text, problem, failed_part, query))


def expression_tree(cursor: Cursor) -> exp.Expr:
    """The syntax tree of the expression at the cursor, to the end. Raises `SqlError`."""
    tokens = cursor.rest()
    if not tokens:
        raise cursor.unexpected("an expression", "write an expression such as t * 1.8 + 32")
    try:
        return parse_expression(tokens)
    except SyntaxProblem as problem:
        raise syntax_error(cursor.text, problem, tokens) from problem
