"""Syntax trees of the SELECT or the expression that ends a statement, by sqlglot's parser."""

from __future__ import annotations

from sqlglot import exp

from tamis.errors import SqlError
from tamis.query.syntax.cursor import Cursor
from tamis.query.syntax.dialect import SyntaxProblem, parse_expression, parse_select
from tamis.query.syntax.recovery import without_failed_part
from tamis.query.syntax.syntax_errors import OPTIONS_FIRST, syntax_error

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
