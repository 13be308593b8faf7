"""CREATE FUNCTION … LANGUAGE PYTHON AS 'name' MONOTONE INCREASING: a name and what is declared, no code."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot.tokenizer_core import TokenType

from tamis.expressions import opaque
from tamis.expressions.nodes import Call, Column, Type
from tamis.query.context import Context, suggest
from tamis.query.cursor import Cursor

EXAMPLE = (
    "write LANGUAGE PYTHON AS 'name' MONOTONE [INCREASING | DECREASING] or QUASICONVEX [IN (parameter, …)]"
)
_LONGEST = 100


def read_python(context: Context, cursor: Cursor, parameters: Mapping[str, Type]) -> Call | None:
    """What stands behind LANGUAGE, to the end: the body, a call with the parameters as arguments.

    None where mistakes were reported. Raises `SqlError` behind which nothing more can be read.
    """
    before = len(context.errors)
    cursor.expect_word("PYTHON", EXAMPLE)
    cursor.expect_word("AS", EXAMPLE)
    place = cursor.offset
    token = cursor.take()
    if token is None or token.token_type != TokenType.STRING:
        cursor.at -= token is not None
        raise cursor.unexpected("the name of the function in quotes", EXAMPLE)
    name = token.text
    if not name.isidentifier() or name.startswith("_") or len(name) > _LONGEST:
        hint = "name a public function of a module that TAMIS_FUNCTIONS lists, without the module"
        context.error(f"'{name[:40]}' can't be the name of a function of Python", place, hint)
    if not parameters:
        context.error("a function of Python takes one number at least", place, "give it a parameter")
    for parameter, type_ in parameters.items():
        if not type_.numeric:
            hint = "give it INT, BIGINT or DOUBLE"
            context.error(f"the parameter '{parameter}' is a {type_}, and Python takes numbers", place, hint)
    shapes: dict[str, str] = {}
    while cursor.current is not None:
        _shape(context, cursor, parameters, shapes)
    if len(context.errors) > before:
        return None
    letters = "".join(shapes.get(parameter, opaque.UNKNOWN) for parameter in parameters)
    return opaque.opaque(name, letters, tuple(Column("", p, t) for p, t in parameters.items()))


def _shape(context: Context, cursor: Cursor, parameters: Mapping[str, Type], shapes: dict[str, str]) -> None:
    """One shape and the parameters that it is declared of: all, unless IN names some."""
    place = cursor.offset
    if cursor.word("MONOTONE", "INCREASING"):
        shape = opaque.RISING
    elif cursor.word("MONOTONE", "DECREASING"):
        shape = opaque.FALLING
    elif cursor.word("MONOTONE"):
        shape = opaque.MONOTONE
    elif cursor.word("QUASICONVEX"):
        shape = opaque.QUASICONVEX
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
            context.error(f"two shapes are declared of '{parameter}'", place, "declare one of each parameter")
        shapes[parameter] = shape
