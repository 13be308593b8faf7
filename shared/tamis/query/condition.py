"""Parser of a condition outside of a query, such as the predicate of a lease or of `tamis match`."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp
from sqlglot.errors import SqlglotError

from tamis.errors import Position, SqlError, SqlErrors
from tamis.expressions.functions.entry import FUNCTIONS, SPELLINGS, TEXT, Signature
from tamis.expressions.nodes import Expr, Type
from tamis.query.context import Context
from tamis.query.model import Catalog
from tamis.query.scalars.calls import called_name
from tamis.query.scalars.literals import time_text
from tamis.query.scalars.resolution import ExpressionResolver
from tamis.query.scalars.unqualified import UnqualifiedNames
from tamis.query.syntax.cursor import Cursor, name_of
from tamis.query.syntax.dialect import tokenize
from tamis.query.syntax.limits import LARGEST_PREDICATE, check_limits
from tamis.query.syntax.parser import expression_tree
from tamis.query.syntax.text import LARGEST_TEXT, Text


def read_condition(text: str, types: Mapping[str, Type] | None = None, file: str | None = None) -> Expr:
    """The condition of `text` over unqualified column names. `types` has the columns that exist. Without it
    any name is a column: VARCHAR, BOOLEAN or TIMESTAMP if it is compared with such a constant, else DOUBLE.

    Raises `SqlErrors` with all mistakes of the text.

    >>> read_condition("a > 5").args[0].type, read_condition("a = 'x'").args[0].type
    (<Type.DOUBLE: 'DOUBLE'>, <Type.VARCHAR: 'VARCHAR'>)
    """
    if len(text) > LARGEST_TEXT:
        what = f"the text is longer than {LARGEST_TEXT} characters"
        raise SqlErrors([SqlError(what, Position(1, 1, file), "split the predicate")])
    context = Context(Text(text, file), Catalog())
    try:
        tokens = tokenize(text)
    except SqlglotError:
        context.error("this predicate can't be read as SQL", 0, "look for characters that SQL doesn't allow")
        raise SqlErrors(context.errors) from None
    cursor = Cursor(context.text, tokens, tokens[-1].end + 1 if tokens else 0)
    try:
        check_limits(cursor, LARGEST_PREDICATE)
        tree = expression_tree(cursor)
    except SqlError as error:
        raise SqlErrors([error]) from None
    scope = UnqualifiedNames("column", dict(types) if types is not None else _inferred_types(tree))
    resolver = ExpressionResolver(context, scope, largest=LARGEST_PREDICATE)
    expr = resolver.condition(tree, "the predicate")
    if context.errors or expr is None:
        raise SqlErrors(context.errors)
    return expr


def _inferred_types(tree: exp.Expr) -> dict[str, Type]:
    """The types of all names, from the constants that they are compared with, directly or through other
    names.
    """
    found: dict[str, Type] = {}
    names = {name_of(column.this).text for column in tree.find_all(exp.Column)}
    sets = [_compared(node) for node in tree.walk() if isinstance(node, exp.Predicate | exp.In | exp.Between)]
    sets += [_argument(node) for node in tree.find_all(exp.Anonymous, exp.DPipe, exp.Extract)]
    before = -1
    while before != len(found):  # a type travels from name to name
        before = len(found)
        for members, constant in sets:
            kind = next((found[name] for name in members if name in found), constant)
            if kind is not None:
                found |= dict.fromkeys(members, kind)
    for column in tree.find_all(exp.Column):
        parent = column.parent
        while isinstance(parent, exp.Paren):
            parent = parent.parent
        if parent is None or isinstance(parent, exp.And | exp.Or | exp.Not):
            found.setdefault(name_of(column.this).text, Type.BOOLEAN)
    return {name: found.get(name, Type.DOUBLE) for name in names}


def _argument(node: exp.Expr) -> tuple[list[str], Type | None]:
    """The names among the operands of a function of text or time, and the type that it needs."""
    if isinstance(node, exp.Anonymous):
        place, kind = _place_and_type(called_name(node))
        operands = list(node.expressions)[place : place + 1]
    else:
        kind = Type.VARCHAR if isinstance(node, exp.DPipe) else Type.TIMESTAMP
        operands = list(node.iter_expressions())
    if kind is None:
        return [], None
    return [name_of(one.this).text for one in operands if isinstance(one, exp.Column)], kind


def _place_and_type(name: str) -> tuple[int, Type | None]:
    """The position of the argument of a function that is a text or a time, and its type."""
    spelling = SPELLINGS.get(name)
    function = FUNCTIONS.get(spelling.operator) if spelling is not None else None
    if function is None or not isinstance(function.types, Signature):
        return 0, None
    for place, some in enumerate(function.types.parameters):
        if some == (Type.TIMESTAMP,):
            return place, Type.TIMESTAMP
    return 0, Type.VARCHAR if function.types.parameters[0] == TEXT else None


def _compared(node: exp.Expr) -> tuple[list[str], Type | None]:
    """The names among the operands of a comparison, and the type of its constants."""
    operands = [bare for child in node.iter_expressions() for bare in (child.unnest(),)]
    names = [name_of(operand.this).text for operand in operands if isinstance(operand, exp.Column)]
    for operand in operands:
        if isinstance(operand, exp.Boolean):
            return names, Type.BOOLEAN
        if isinstance(operand, exp.Cast) and time_text(operand) is not None:
            return names, Type.TIMESTAMP
        if isinstance(operand, exp.Literal) and operand.args.get("is_string"):
            return names, Type.VARCHAR
    return names, None
