"""Joins that mean EXISTS or NOT EXISTS: the IS NULL of a LEFT JOIN, and columns that can't be NULL."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from sqlglot import exp

from tamis.expressions.nodes import COMPARISONS, Call, Column, Expr, columns
from tamis.query.context import Context
from tamis.query.model import Conjunct
from tamis.query.scalars.resolution import operands
from tamis.query.selects.scope import FromItem
from tamis.query.syntax.identifiers import name_of

_STRICT = ("+", "-", "*", "/", "neg", "abs")  # NULL if an argument is NULL


def unwrapped(node: exp.Expr) -> exp.Expr:
    """A syntax tree without the parentheses around it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def null_test(part: exp.Expr, names: Collection[str]) -> tuple[str, str] | None:
    """The name and the column of `c.x IS NULL` where c is one of `names`; None for anything else."""
    node = unwrapped(part)
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null) and not node.args.get("negate"):
        column = unwrapped(node.this)
        if isinstance(column, exp.Column) and column.args.get("table") is not None:
            table = name_of(column.args["table"]).text
            if table in names:
                return table, name_of(column.this).text
    return None


def item_name(table: exp.Expr) -> str:
    """The name of an item of FROM; empty if it has none."""
    alias = table.args.get("alias")
    identifier = table.this if alias is None else alias.this
    return name_of(identifier).text if isinstance(identifier, exp.Identifier) else ""


def is_anti_join(join: exp.Expr, select: exp.Select) -> bool:
    """Tell if a LEFT JOIN is meant as NOT EXISTS: WHERE tests a column of it by IS NULL."""
    if join.args.get("side") != "LEFT" or join.args.get("kind") not in (None, "", "OUTER"):
        return False
    where = select.args.get("where")
    parts = [] if where is None else operands(where.this, exp.And)
    return any(null_test(part, {item_name(join.this)}) is not None for part in parts)


def not_null_columns(context: Context, item: FromItem, conjuncts: Sequence[Conjunct]) -> set[str]:
    """The columns of a joined item that can't be NULL in a tuple that joins: its event time, those that are
    declared NOT NULL, and those that a comparison of ON compares.
    """
    compared = {column for conjunct in conjuncts for column in _compared(conjunct.expr)}
    found = set()
    for name, expr in (item.columns or {}).items():
        if isinstance(expr, Column):
            source = next(one for one in item.sources if one.alias == expr.alias)
            stream = context.stream(source)
            column = None if stream is None else stream.column(expr.name)
            if expr in compared or (
                stream is not None and (expr.name == stream.time or (column is not None and column.not_null))
            ):
                found.add(name)
    return found


def _compared(condition: Expr) -> Iterator[Column]:
    """The columns of which none is NULL where a condition is true."""
    if isinstance(condition, Call) and condition.op == "and":
        for part in condition.args:
            yield from _compared(part)
    elif isinstance(condition, Call) and condition.op in COMPARISONS and all(map(_strict, condition.args)):
        yield from columns(condition)


def _strict(expr: Expr) -> bool:
    """Tell if an expression is NULL whenever one of its columns is."""
    return not isinstance(expr, Call) or (expr.op in _STRICT and all(map(_strict, expr.args)))
