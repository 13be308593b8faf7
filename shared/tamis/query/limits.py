"""How large and how deep what is read may be, told before anything recurses over it."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from tamis.expressions.nodes import Call, Expr
from tamis.query.cursor import Cursor

# Everything that walks an expression recurses over its depth, and the proofs cost time by its size.
DEEPEST = 100
LARGEST = 10_000
# How deep parentheses and CASE may nest: the parser recurses some thirty frames a level.
DEEPEST_NESTING = 16
# Tokens of one statement. A long IN list fits; a table of data does not belong here.
MOST_TOKENS = 20_000
# Parts and tokens of a predicate that stands alone: thousands of clauses, no proofs. Some ten seconds.
LARGEST_PREDICATE = 200_000


def check_limits(cursor: Cursor, most: int = MOST_TOKENS) -> None:
    """Refuse before the parser recurses what would be too deep or too long for it. Raises `SqlError`."""
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
            what = f"this nests deeper than {DEEPEST_NESTING} levels"
            raise cursor.text.error(what, token.start, "write it flatter, with functions or streams")
        if count >= most:
            what = f"this has more than {most} words and signs"
            raise cursor.text.error(what, token.start, "split it into several")


def too_deep(node: exp.Expr) -> bool:
    """Whether an expression nests deeper than `DEEPEST`; a chain of ANDs or ORs counts as one."""
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
    """Whether a tree has more than `largest` nodes or is deeper than `DEEPEST`."""
    count, stack = 0, [(expr, 1)]
    while stack:
        top, depth = stack.pop()
        count += 1
        if count > largest or depth > DEEPEST:
            return True
        if isinstance(top, Call):
            stack += [(arg, depth + 1) for arg in top.args]
    return False
