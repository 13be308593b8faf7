"""CREATE FUNCTION … LANGUAGE PYTHON AS 'name' MONOTONE INCREASING: a name and declared shapes, no code."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot.tokenizer_core import TokenType

from tamis.expressions import python_functions
from tamis.expressions.nodes import Call, Column, Type
from tamis.query.context import Context
from tamis.query.names import suggest
from tamis.query.syntax.cursor import Cursor

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
