"""CREATE FUNCTION: an expression over parameters, or the declaration of a Python function."""

from __future__ import annotations

from tamis.errors import SqlError, SqlErrors
from tamis.expressions.nodes import Expr, Type
from tamis.query.functions import APPROXIMATE_PERCENTILES, SCALAR_FUNCTIONS, VALUES_AT_EXTREMES
from tamis.query.model import FunctionDef, Redefine
from tamis.query.redefinition import meaning, readers
from tamis.query.scalars.unqualified import UnqualifiedNames, resolve_expression
from tamis.query.statements.columns import parse_type
from tamis.query.statements.python_functions import parse_python_body
from tamis.query.statements.statement_input import StatementInput
from tamis.query.unsupported import unsupported_function

_EXAMPLE = "write CREATE FUNCTION name(parameter TYPE, …) RETURNS TYPE AS expression"


def parse_function(given: StatementInput) -> FunctionDef | None:
    """CREATE FUNCTION from its name to the end; None if a mistake was reported."""
    context, cursor = given.context, given.cursor
    before = len(context.errors)
    name = cursor.name("the name of a function", _EXAMPLE)
    known = unsupported_function(name.text) is not None and name.text not in (
        *VALUES_AT_EXTREMES,
        *APPROXIMATE_PERCENTILES,
    )
    if name.text in (*SCALAR_FUNCTIONS, "similar") or known:
        context.incomplete.add("function")  # other statements may use the right name, which isn't known
        context.error(f"'{name.text}' is already a function of SQL", name.offset, "choose another name")
    parameters, complete = _parameters(given)
    cursor.expect_word("RETURNS", _EXAMPLE)
    returns_offset = cursor.offset
    returns = parse_type(cursor)
    body: Expr | None
    if cursor.word("LANGUAGE"):
        body = parse_python_body(context, cursor, parameters)
        if returns is not Type.DOUBLE:
            context.error("a Python function must return DOUBLE", returns_offset, "write RETURNS DOUBLE")
    else:
        cursor.expect_word("AS", _EXAMPLE)
        scope = UnqualifiedNames("parameter", parameters, complete)
        body = resolve_expression(context, cursor, scope, returns=returns)
    if body is None or len(context.errors) > before:
        return None
    return FunctionDef(
        name.text,
        tuple(parameters.items()),
        returns,
        body,
        given.functions,
        given.sql,
        given.position(name),
    )


def replaced_function(given: StatementInput, made: FunctionDef) -> FunctionDef | Redefine | None:
    """CREATE OR REPLACE FUNCTION: a change of the function if it exists; None if a mistake was reported."""
    context = given.context
    known = context.catalog.functions.get(made.name)
    if known is None:
        return made
    if meaning(made) == meaning(known):
        return Redefine("replace", known, (), made.position)
    called, more = set[str](), set(made.functions)
    while more:
        called |= more
        more = {name for one in more for name in context.catalog.functions[one].functions} - called
    if made.name in called:
        hint = "write the expression without the call"
        context.errors.append(SqlError(f"function '{made.name}' would call itself", made.position, hint))
        return None
    try:
        found = readers(context.catalog, made, made.position, context.parse)
    except SqlErrors as error:
        context.errors.extend(error.errors)
        return None
    return Redefine("replace", made, found, made.position)


def _parameters(given: StatementInput) -> tuple[dict[str, Type], bool]:
    """The parameters with their types, and False if some are missing because of a reported mistake."""
    context = given.context
    parameters: dict[str, Type] = {}
    complete = True
    group = given.cursor.group("parameter TYPE, …", _EXAMPLE)
    for item in group.items() if group.tokens else []:
        try:
            parameter = item.name("the name of a parameter", _EXAMPLE)
            type_ = parse_type(item)
            item.finish("write a comma between two parameters")
        except SqlError as error:
            context.errors.append(error)
            complete = False
            continue
        if parameter.text in parameters:
            hint = "give each parameter a name of its own"
            context.error(f"the parameter '{parameter.text}' is given twice", parameter.offset, hint)
            complete = False  # the expression may use the right name of one of the two
        parameters[parameter.text] = type_
    return parameters, complete
