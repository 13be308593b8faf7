"""Types of operators: calls that get the type of their result, and the check of calls from outside."""

from __future__ import annotations

from collections.abc import Sequence

import tamis.expressions.functions  # noqa: F401 - fills the table
from tamis.errors import InputError
from tamis.expressions.functions.entry import FUNCTIONS
from tamis.expressions.nodes import OPAQUE, Call, Expr, Literal, Type


def result_type(op: str, types: Sequence[Type]) -> Type | None:
    """The type of `op` applied to arguments of `types`; None if it does not take them."""
    function = FUNCTIONS.get(op)
    return None if function is None else function.types(types)


def refused_constant(node: Call) -> str | None:
    """The mistake in the arguments of a call that must be constants; None if there is none."""
    refused = FUNCTIONS[node.op].refused
    return None if refused is None else refused(node)


def call(op: str, *args: Expr) -> Call:
    """`op` applied to `args`, with its result type.

    Raises InputError if the operator does not take arguments of these types.
    """
    type_ = result_type(op, [arg.type for arg in args])
    if type_ is None:
        raise _refusal(op, args)
    return Call(op, args, type_)


def check(node: Call) -> None:
    """Raises InputError if the type of `node` doesn't follow from its arguments; INT and BIGINT count as
    one.
    """
    type_ = result_type(node.op, [arg.type for arg in node.args])
    if type_ is None:
        raise _refusal(node.op, node.args)
    if node.op == OPAQUE and not _declared(node):
        raise InputError("a Python function needs a name, and a letter of +-mq? for each argument")
    if (mistake := refused_constant(node)) is not None:
        raise InputError(mistake)
    integers = (Type.INT, Type.BIGINT)
    if type_ is not node.type and not (type_ in integers and node.type in integers):
        raise InputError(f"the result of {node.op} is {type_} for these arguments, not {node.type}")


def _declared(node: Call) -> bool:
    name, shapes = node.args[:2]
    if not isinstance(name, Literal) or not isinstance(shapes, Literal):
        return False
    letters = str(shapes.value)
    return (
        str(name.value).isidentifier() and len(letters) == len(node.args) - 2 and set(letters) <= set("+-mq?")
    )


def _refusal(op: str, args: Sequence[Expr]) -> InputError:
    types = ", ".join(arg.type for arg in args)
    return InputError(f"{op} does not take ({types})", hint="see `tamis.expressions.nodes` for what it takes")
