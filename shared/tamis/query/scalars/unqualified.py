"""Expressions over unqualified names: a CHECK, a WATERMARK or the body of a function."""

from __future__ import annotations

from sqlglot import exp

from tamis.errors import SqlError
from tamis.expressions.nodes import Column, Expr, Type
from tamis.query.context import Context
from tamis.query.scalars import operators
from tamis.query.scalars.resolution import ExpressionResolver
from tamis.query.syntax.cursor import Cursor, Name
from tamis.query.syntax.parser import expression_tree
from tamis.wording.names import suggest


class UnqualifiedNames:
    """The scope of a CHECK, a WATERMARK or the body of a function: names without an alias."""

    def __init__(self, kind: str, columns: dict[str, Type], complete: bool = True) -> None:
        """`kind` describes the names in messages. If not `complete`, some of the definitions have mistakes,
        and an unknown name may be one of them.
        """
        self.kind = kind
        self.columns = columns
        self.complete = complete

    def column(self, context: Context, node: exp.Expr, table: Name | None, name: Name) -> Expr | None:
        """The column with this name. None for a qualified or unknown name, which is reported; an unknown name
        only if the definitions are complete.
        """
        if table is None and name.text in self.columns:
            return Column("", name.text, self.columns[name.text])
        if table is not None:
            what = f"'{table.text}.{name.text}' is a qualified name, which is not allowed here"
            context.error(what, node, f"write only the name of the {self.kind}")
        elif self.complete:
            what = f"there is no {self.kind} '{name.text}'"
            context.error_once(what, node, suggest(name.text, self.columns))
        return None


def resolve_expression(
    context: Context,
    cursor: Cursor,
    scope: UnqualifiedNames,
    *,
    condition: str | None = None,
    returns: Type | None = None,
) -> Expr | None:
    """The expression at the cursor, to the end; None if a mistake was reported.

    With `condition` it must be a condition, which messages call by that text; with `returns` it is the
    result of a function that is declared with this type.
    """
    try:
        node = expression_tree(cursor)
    except SqlError as error:
        context.errors.append(error)
        return None
    resolver = ExpressionResolver(context, scope)
    if condition:
        return resolver.condition(node, condition)
    expr = resolver.resolve(node)
    if expr is None or returns is None:
        return expr
    try:
        return operators.assigned(expr, returns, "the result")
    except operators.TypeMismatch as mismatch:
        context.error(mismatch.what, node, f"declare RETURNS {expr.type}")
        return None
