"""Limits of size and depth, checked before anything recurses over a statement or an expression."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from tamis.expressions.nodes import Call, Expr
from tamis.query.syntax.cursor import Cursor

# Code that walks an expression recurses over its depth, and the time of proofs grows with its size.
DEEPEST = 100
LARGEST = 10_000
# Depth of nested parentheses and CASEs: the parser takes some thirty stack frames a level.
DEEPEST_NESTING = 16
# Tokens of one statement. A long IN list fits; a table of data doesn't belong into SQL.
MOST_TOKENS = 20_000
# Tokens of CREATE PATTERN: more than the longest text has.
MOST_PATTERN_TOKENS = 1_000_000
# Parts and tokens of a predicate outside of a query: it may have thousands of clauses, and nothing is proved
# about it. This many take some ten seconds.
LARGEST_PREDICATE = 200_000


def check_limits(cursor: Cursor, most: int = MOST_TOKENS) -> None:
    """Raises `SqlError` if the tokens are too many or nest too deeply for the recursive parser."""
    depth = run = 0
    for count, token in enumerate(cursor.tokens):
        kind = token.token_type
        depth += kind in (TokenType.L_PAREN, TokenType.CASE)
        depth -= kind in (TokenType.R_PAREN, TokenType.END)
        prefix = kind in (
            TokenType.DASH,
            TokenType.NOT,
            TokenType.PLUS,
            TokenType.INTERVAL,
            TokenType.TILDE,
        )
        run = run + 1 if prefix else 0
        if depth > DEEPEST_NESTING or run > DEEPEST_NESTING:
            what = f"the expression is nested deeper than {DEEPEST_NESTING} levels"
            raise cursor.text.error(
                what, token.start, "remove parentheses, or move a part into CREATE FUNCTION or CREATE STREAM"
            )
        if count >= most:
            what = f"the statement has more than {most} tokens (words, numbers and signs)"
            raise cursor.text.error(what, token.start, "split it into several statements")


def too_deep(node: exp.Expr) -> bool:
    """Tell if a syntax tree is deeper than `DEEPEST`; a chain of ANDs or ORs counts as one level."""
    stack = [(node, 1)]
    while stack:
        top, depth = stack.pop()
        if depth > DEEPEST:
            return True
        for child in top.iter_expressions():
            same = type(child) is type(top) and isinstance(child, exp.And | exp.Or)
            stack.append((child, depth if same else depth + 1))
    return False


def oversize(expr: Expr, largest: int = LARGEST) -> bool:
    """Tell if an expression has more than `largest` nodes or is deeper than `DEEPEST`."""
    count, stack = 0, [(expr, 1)]
    while stack:
        top, depth = stack.pop()
        count += 1
        if count > largest or depth > DEEPEST:
            return True
        if isinstance(top, Call):
            stack += [(arg, depth + 1) for arg in top.args]
    return False
