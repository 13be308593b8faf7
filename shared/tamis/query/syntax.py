"""SELECTs and expressions inside a statement: its limits, sqlglot's parsing, and what went wrong in it."""

from __future__ import annotations

import re
from itertools import pairwise

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from tamis.errors import SqlError
from tamis.expressions.nodes import Column, Expr, Type
from tamis.query import operators
from tamis.query.context import Context, Name, suggest
from tamis.query.cursor import Cursor, shorten
from tamis.query.dialect import SyntaxProblem, parse_expression, parse_select
from tamis.query.reading import Reader
from tamis.query.refusals import AGGREGATES, WINDOWS
from tamis.query.refusals import function as refused_function

# What sqlglot says that it expected.
_WANTED = re.compile(r"Expect(?:ing|ed) ([^<]{1,40}?)(?: but got .*)?$", re.DOTALL)
# How deep parentheses and CASE may nest: the parser recurses some thirty frames a level.
DEEPEST_NESTING = 16
# Tokens of one statement. A long IN list fits; a table of data does not belong here.
MOST_TOKENS = 20_000


class BareNames:
    """The scope of a CHECK, a WATERMARK or a function's body: bare names, under the empty alias."""

    def __init__(self, what: str, columns: dict[str, Type], complete: bool = True) -> None:
        self.what = what
        self.columns = columns
        self.complete = complete  # False: some have mistakes, so that an unknown name may be one of them

    def column(self, context: Context, node: exp.Expr, table: Name | None, name: Name) -> Expr | None:
        """See `tamis.query.reading.Scope`."""
        if table is None and name.text in self.columns:
            return Column("", name.text, self.columns[name.text])
        if table is not None:
            context.error(
                f"'{table.text}.{name.text}' isn't known here", node, f"write the name of a {self.what} alone"
            )
        elif self.complete:
            context.error(f"there is no {self.what} '{name.text}'", node, suggest(name.text, self.columns))
        return None


def check_limits(cursor: Cursor) -> None:
    """Refuse before the parser recurses what would be too deep or too long for it."""
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
            raise cursor.text.error(what, token.start, "split it into functions or streams")
        if count >= MOST_TOKENS:
            what = f"a statement has at most {MOST_TOKENS} words and signs"
            raise cursor.text.error(what, token.start, "split it into several statements")


def read_select(context: Context, cursor: Cursor) -> exp.Expr:
    """The SELECT that is left of a statement. Raises `SqlError` where it is none."""
    tokens = cursor.rest()
    if not tokens or tokens[0].text.upper() not in ("SELECT", "WITH", "("):
        cursor.at -= len(tokens)
        raise cursor.unexpected("SELECT", "write SELECT column, … FROM stream WHERE condition")
    try:
        return parse_select(tokens)
    except SyntaxProblem as problem:
        raise _mistake(context, problem, tokens) from problem


def read_expression(
    context: Context,
    cursor: Cursor,
    scope: BareNames,
    condition: str | None = None,
    returns: Type | None = None,
) -> Expr | None:
    """The expression that is left; a condition, or of a declared type, where that is asked for.

    None where mistakes were reported.
    """
    tokens = cursor.rest()
    if not tokens:
        context.errors.append(cursor.unexpected("an expression", "write an expression such as t * 1.8 + 32"))
        return None
    try:
        node = parse_expression(tokens)
    except SyntaxProblem as problem:
        context.errors.append(_mistake(context, problem, tokens))
        return None
    reader = Reader(context, scope)
    if condition:
        return reader.condition(node, condition)
    expr = reader.read(node)
    if expr is None or returns is None:
        return expr
    try:
        return operators.assigned(expr, returns, "the result")
    except operators.Mismatch as mismatch:
        context.error(mismatch.what, node, f"declare RETURNS {expr.type}")
        return None


def _mistake(context: Context, problem: SyntaxProblem, tokens: list[Token]) -> SqlError:
    """What a syntax problem is: a feature by its name, or what stands where it doesn't belong."""
    for token, following in pairwise(tokens):
        name = token.text.lower()
        refused = refused_function(name) if name in AGGREGATES | WINDOWS and following.text == "(" else None
        if refused is not None:
            return context.text.error(refused[0], token.start, refused[1])
    what, hint = "something is missing at the end", "write what belongs behind the last word or sign"
    if problem.found is not None:
        what = f"'{shorten(problem.found)}' stands where it doesn't belong"
        hint = "look for a missing comma, operator, AND or parenthesis before it"
    wanted = _WANTED.match(problem.message)
    if wanted:
        hint = f"write {wanted[1]} here"
    elif problem.found is not None and problem.found.upper() == "WITH":
        hint = "options stand before AS: CREATE ALERT name WITH (…) AS SELECT …"
    return context.text.error(what, problem.offset, hint)
