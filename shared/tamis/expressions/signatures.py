"""Signatures of the operators: the types of their arguments and of their results."""

from __future__ import annotations

from collections.abc import Sequence

from tamis.errors import InputError
from tamis.expressions.function_types import function_type, refused_constant
from tamis.expressions.nodes import (
    COMPARISONS,
    COMPUTED,
    LOGIC,
    OPAQUE,
    OPERATORS,
    Call,
    Expr,
    Literal,
    Type,
)

# Functions of one number, with the types of their results.
_OF_ONE = {
    **dict.fromkeys(("sqrt", "exp", "ln", "log10", "floor", "ceil", "trunc", "round"), Type.DOUBLE),
    **dict.fromkeys(("sign", "to_int"), Type.INT),
    "to_bigint": Type.BIGINT,
}
_OF_DOUBLE = ("round", "trunc", "to_bigint")  # an integer is the result itself
_WITH_TIME = {
    ("+", Type.TIMESTAMP, Type.INTERVAL): Type.TIMESTAMP,
    ("+", Type.INTERVAL, Type.TIMESTAMP): Type.TIMESTAMP,
    ("-", Type.TIMESTAMP, Type.INTERVAL): Type.TIMESTAMP,
    ("-", Type.TIMESTAMP, Type.TIMESTAMP): Type.INTERVAL,
    ("+", Type.INTERVAL, Type.INTERVAL): Type.INTERVAL,
    ("-", Type.INTERVAL, Type.INTERVAL): Type.INTERVAL,
    **{("*", Type.INTERVAL, kind): Type.INTERVAL for kind in (Type.INT, Type.BIGINT)},
    **{("*", kind, Type.INTERVAL): Type.INTERVAL for kind in (Type.INT, Type.BIGINT)},
}


def common_type(types: Sequence[Type]) -> Type | None:
    """The type to which values of these types are converted; None if there is none.

    >>> common_type([Type.INT, Type.DOUBLE])
    <Type.DOUBLE: 'DOUBLE'>
    """
    if not types:
        return None
    if all(t is types[0] for t in types):
        return types[0]
    if all(t.numeric for t in types):
        return Type.DOUBLE if Type.DOUBLE in types else Type.BIGINT
    return None


def result_type(op: str, types: Sequence[Type]) -> Type | None:
    """The type of `op` applied to arguments of `types`; None if it does not take them."""
    if op in LOGIC or op in COMPARISONS:
        return Type.BOOLEAN if _compares(op, types) else None
    if op in ("least", "greatest") or (op == "coalesce" and len(types) > 1):
        return common_type(types)
    if op == "case":
        paired = len(types) >= 3 and len(types) % 2 == 1
        conditions = all(t is Type.BOOLEAN for t in types[:-1:2])
        return common_type([*types[1::2], types[-1]]) if paired and conditions else None
    if op == OPAQUE:
        named = len(types) > 2 and all(t is Type.VARCHAR for t in types[:2])
        return Type.DOUBLE if named and all(t.numeric for t in types[2:]) else None
    if op in ("neg", "abs"):
        numeric = len(types) == 1 and (types[0].numeric or types[0] is Type.INTERVAL)
        return types[0] if numeric else None
    if op in _OF_ONE:
        digits = op == "round" and list(types[1:]) == [Type.INT]
        number = bool(types) and (types[0] is Type.DOUBLE if op in _OF_DOUBLE else types[0].numeric)
        return _OF_ONE[op] if number and (len(types) == 1 or digits) else None
    if op in COMPUTED:
        return function_type(op, types)
    if len(types) != 2 or op not in OPERATORS:
        return None
    if types[0].numeric and types[1].numeric:
        return Type.DOUBLE if op in ("/", "power") else common_type(types)
    return _WITH_TIME.get((op, types[0], types[1]))


def _compares(op: str, types: Sequence[Type]) -> bool:
    if op == "is_null":
        return len(types) == 1
    if op in COMPARISONS:
        return len(types) == 2 and common_type(types) is not None
    count = len(types) == 1 if op == "not" else len(types) >= 1
    return count and all(t is Type.BOOLEAN for t in types)


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
