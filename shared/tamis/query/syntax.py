"""SELECTs and expressions inside a statement: sqlglot's parsing, and what went wrong in it."""

from __future__ import annotations

import re
from itertools import pairwise

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from tamis.errors import SqlError
from tamis.expressions.nodes import Column, Expr, Type
from tamis.query import operators
from tamis.query.context import Context, Name, suggest
from tamis.query.cursor import Cursor, shorten
from tamis.query.dialect import SyntaxProblem, parse_expression, parse_select
from tamis.query.reading import Reader
from tamis.query.recovery import mend
from tamis.query.refusals import AGGREGATES, TABLES
from tamis.query.refusals import function as refused_function

# What sqlglot says that it expected.
_WANTED = re.compile(r"Expect(?:ing|ed) ([^<]{1,40}?)(?: but got .*)?$", re.DOTALL)

# Syntax errors of one SELECT that are told at once, and how many tokens are read again for them in all: each
# takes another run of the parser, which reads some 20,000 tokens a second.
MOST_MENDED = 20
MOST_REREAD = 40_000


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


def read_select(context: Context, cursor: Cursor) -> exp.Expr:
    """The SELECT that is left of a statement; where a syntax error is reported, what can be read of it.

    Raises `SqlError` where nothing can be.
    """
    tokens = cursor.rest()
    if not tokens or tokens[0].text.upper() not in ("SELECT", "WITH", "("):
        cursor.at -= len(tokens)
        raise cursor.unexpected("SELECT", "write SELECT column, … FROM stream WHERE condition")
    for left in reversed(range(min(MOST_MENDED, MOST_REREAD // len(tokens)) + 1)):
        try:
            node = parse_select(tokens)
            break
        except SyntaxProblem as problem:
            mended = mend(tokens, problem) if left else None
            if mended is None:
                raise _mistake(context, problem, tokens) from problem
            tokens, part = mended
            context.errors.append(_mistake(context, problem, part))
    return node


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
    node = parsed_expression(context, cursor)
    if node is None:
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


def parsed_expression(context: Context, cursor: Cursor) -> exp.Expr | None:
    """The syntax of the expression that is left; None where mistakes were reported."""
    tokens = cursor.rest()
    if not tokens:
        context.errors.append(cursor.unexpected("an expression", "write an expression such as t * 1.8 + 32"))
        return None
    try:
        return parse_expression(tokens)
    except SyntaxProblem as problem:
        context.errors.append(_mistake(context, problem, tokens))
        return None


def _mistake(context: Context, problem: SyntaxProblem, tokens: list[Token]) -> SqlError:
    """What a syntax problem is: a feature by its name, or what stands where it doesn't belong."""
    for token, following in pairwise(tokens):
        name = token.text.lower()
        refused = refused_function(name) if name in AGGREGATES | TABLES and following.text == "(" else None
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
