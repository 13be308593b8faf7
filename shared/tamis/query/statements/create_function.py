"""CREATE FUNCTION: an expression over parameters, or the declaration of a Python function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot.tokenizer_core import TokenType

from tamis.declarations.definitions import FunctionDef
from tamis.errors import SqlError, SqlErrors
from tamis.expressions import python_functions
from tamis.expressions.nodes import Call, Column, Expr, Type
from tamis.query.context import Context
from tamis.query.functions import APPROXIMATE_PERCENTILES, SCALAR_FUNCTIONS, VALUES_AT_EXTREMES
from tamis.query.model import Redefine
from tamis.query.redefinition import meaning, readers
from tamis.query.scalars.unqualified import UnqualifiedNames, resolve_expression
from tamis.query.statements.columns import parse_type
from tamis.query.statements.statement_input import StatementInput
from tamis.query.syntax.cursor import Cursor
from tamis.query.unsupported import unsupported_function
from tamis.wording.names import suggest

EXAMPLE = (
    "write LANGUAGE PYTHON AS 'name' MONOTONE [INCREASING | DECREASING] or QUASICONVEX [IN (parameter, …)]"
)
_LONGEST = 100


def parse_python_body(context: Context, cursor: Cursor, parameters: Mapping[str, Type]) -> Call | None:
    """The body of a Python function, from after LANGUAGE to the end: a call with the parameters as
    arguments.

    None if a mistake was reported. Raises `SqlError` for a mistake after which nothing can be parsed.
    """
    before = len(context.errors)
    cursor.expect_word("PYTHON", EXAMPLE)
    cursor.expect_word("AS", EXAMPLE)
    place = cursor.offset
    token = cursor.take()
    if token is None or token.token_type != TokenType.STRING:
        cursor.at -= token is not None
        raise cursor.unexpected("the name of the function in single quotes", EXAMPLE)
    name = token.text
    if not name.isidentifier() or name.startswith("_") or len(name) > _LONGEST:
        hint = (
            "write the name of a public function in one of the modules of TAMIS_FUNCTIONS, without the module"
        )
        context.error(f"'{name[:40]}' isn't a valid name of a Python function", place, hint)
    if not parameters:
        context.error("a Python function needs at least one parameter", place, "declare a parameter")
    for parameter, type_ in parameters.items():
        if not type_.numeric:
            hint = "declare it as INT, BIGINT or DOUBLE"
            context.error(
                f"Python functions take only numbers, and the parameter '{parameter}' is {type_}", place, hint
            )
    shapes: dict[str, str] = {}
    while cursor.current is not None:
        _shape(context, cursor, parameters, shapes)
    if len(context.errors) > before:
        return None
    letters = "".join(shapes.get(parameter, python_functions.UNKNOWN) for parameter in parameters)
    return python_functions.opaque(name, letters, tuple(Column("", p, t) for p, t in parameters.items()))


def _shape(context: Context, cursor: Cursor, parameters: Mapping[str, Type], shapes: dict[str, str]) -> None:
    """One declared shape, for all parameters or for those after IN."""
    place = cursor.offset
    if cursor.word("MONOTONE", "INCREASING"):
        shape = python_functions.INCREASING
    elif cursor.word("MONOTONE", "DECREASING"):
        shape = python_functions.DECREASING
    elif cursor.word("MONOTONE"):
        shape = python_functions.MONOTONE
    elif cursor.word("QUASICONVEX"):
        shape = python_functions.QUASICONVEX
    else:
        raise cursor.unexpected("MONOTONE or QUASICONVEX", EXAMPLE)
    names = list(parameters)
    if cursor.word("IN"):
        items = cursor.group("parameter, …", EXAMPLE).items()
        found = [item.name("the name of a parameter", EXAMPLE) for item in items]
        for name in found:
            if name.text not in parameters:
                context.error(
                    f"there is no parameter '{name.text}'", name.offset, suggest(name.text, parameters)
                )
        names = [name.text for name in found]
    for parameter in names:
        if parameter in shapes:
            context.error(
                f"two shapes are declared for '{parameter}'", place, "declare one for each parameter"
            )
        shapes[parameter] = shape


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


def cycles(calls: Mapping[str, set[str]]) -> Iterator[tuple[list[str], set[str]]]:
    """For each set of functions that all call one another, directly or not: the shortest cycle through its
    first function by name, and the whole set.

    >>> found = cycles({"f": {"g"}, "g": {"f", "h"}, "h": set(), "k": {"k"}})
    >>> [(cycle, sorted(component)) for cycle, component in found]
    [(['f', 'g'], ['f', 'g']), (['k'], ['k'])]
    """
    for component in _components(calls):
        first = min(component)
        if len(component) > 1 or first in calls[first]:
            yield _shortest(calls, first, component), component


def _components(calls: Mapping[str, set[str]]) -> list[set[str]]:
    """The strongly connected components (Tarjan 1972), without recursion, since a chain may have thousands of
    functions.
    """
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    found: list[set[str]] = []
    for root in calls:
        if root in numbers:
            continue
        path = [(root, iter(sorted(calls[root])))]
        while path:
            name, following = path[-1]
            if name not in numbers:
                numbers[name] = lowest[name] = len(numbers)
                stack.append(name)
                on_stack.add(name)
            called = next((one for one in following if one in calls), None)
            if called is None:
                path.pop()
                if path:
                    above = path[-1][0]
                    lowest[above] = min(lowest[above], lowest[name])
                if lowest[name] == numbers[name]:
                    component = {stack.pop()}
                    while name not in component:
                        component.add(stack.pop())
                    on_stack -= component
                    found.append(component)
            elif called not in numbers:
                path.append((called, iter(sorted(calls[called]))))
            elif called in on_stack:
                lowest[name] = min(lowest[name], numbers[called])
    return found


def _shortest(calls: Mapping[str, set[str]], start: str, within: set[str]) -> list[str]:
    """The shortest chain of calls from `start` back to itself; its component has one."""
    caller: dict[str, str] = {}
    queue = [start]
    for name in queue:
        if start in calls[name]:
            chain = [name]
            while chain[-1] != start:
                chain.append(caller[chain[-1]])
            return chain[::-1]
        for called in sorted(calls[name] & within):
            if called not in caller and called != start:
                caller[called] = name
                queue.append(called)
    raise AssertionError("no cycle")
