"""Types and constant arguments of the functions of text and time, and of the operators of bits."""

from __future__ import annotations

from collections.abc import Sequence

from tamis.expressions.instants import FIELDS, TRUNCATED_TO
from tamis.expressions.nodes import MOST_DIGITS, Call, Literal, Type

_TEXT = (Type.VARCHAR,)
_WHOLE = (Type.INT, Type.BIGINT)
_NUMBERS = (*_WHOLE, Type.DOUBLE)
_NAMED_TIME = (_TEXT, (Type.TIMESTAMP,))

# The types that each argument may have, how many arguments may be left out, and the type of the result.
_SIGNATURES: dict[str, tuple[tuple[tuple[Type, ...], ...], int, Type]] = {
    **dict.fromkeys(("lower", "upper"), ((_TEXT,), 0, Type.VARCHAR)),
    **dict.fromkeys(("trim", "ltrim", "rtrim"), ((_TEXT, _TEXT), 1, Type.VARCHAR)),
    "length": ((_TEXT,), 0, Type.BIGINT),
    "substring": ((_TEXT, _WHOLE, _WHOLE), 1, Type.VARCHAR),
    "||": ((_TEXT, _TEXT), 0, Type.VARCHAR),
    "like": ((_TEXT, _TEXT, _TEXT), 1, Type.BOOLEAN),
    "to_varchar": (((Type.BOOLEAN, *_NUMBERS),), 0, Type.VARCHAR),
    "time_to_varchar": (((Type.TIMESTAMP,),), 0, Type.VARCHAR),
    "to_double": ((_TEXT,), 0, Type.DOUBLE),
    "to_whole": ((_TEXT,), 0, Type.BIGINT),
    "date_part": (_NAMED_TIME, 0, Type.BIGINT),
    "date_trunc": (_NAMED_TIME, 0, Type.TIMESTAMP),
    "epoch": (((Type.TIMESTAMP, Type.INTERVAL),), 0, Type.DOUBLE),
    "to_timestamp": ((_NUMBERS,), 0, Type.TIMESTAMP),
    **dict.fromkeys(("&", "|", "xor", "<<", ">>"), ((_WHOLE, _WHOLE), 0, Type.BIGINT)),
    "~": ((_WHOLE,), 0, Type.BIGINT),
}


def function_type(op: str, types: Sequence[Type]) -> Type | None:
    """The type of a function of text or time, or of an operator of bits; None if there is none of these
    types.
    """
    if op not in _SIGNATURES:
        return None
    wanted, optional, result = _SIGNATURES[op]
    count = len(wanted) - optional <= len(types) <= len(wanted)
    return result if count and all(t in some for t, some in zip(types, wanted, strict=False)) else None


def refused_constant(node: Call) -> str | None:
    """The mistake in the arguments of a call that must be constants; None if there is none."""
    if node.op == "round" and len(node.args) > 1:
        digits = _constant(node, 1)
        if not isinstance(digits, int) or abs(digits) > MOST_DIGITS:
            return f"round needs a constant number of digits, from -{MOST_DIGITS} to {MOST_DIGITS}"
    if node.op == "date_part" and _constant(node, 0) not in FIELDS:
        return "date_part needs a constant field: " + ", ".join(FIELDS)
    if node.op == "date_trunc" and _constant(node, 0) not in TRUNCATED_TO:
        return "date_trunc needs a constant unit: " + ", ".join(TRUNCATED_TO)
    if node.op == "like":
        return _refused_pattern(*(_constant(node, i) for i in range(1, len(node.args))))
    return None


def _refused_pattern(pattern: object, escape: object = "") -> str | None:
    if not isinstance(pattern, str) or not isinstance(escape, str) or len(escape.encode()) > 1:
        return "LIKE needs a constant pattern, and at most one character of ASCII after ESCAPE"
    rest = pattern.replace(escape * 2, "") if escape else ""
    if escape and rest.endswith(escape):
        return "the pattern of LIKE can't end with the character after ESCAPE"
    return None


def _constant(node: Call, index: int) -> object:
    arg = node.args[index]
    return arg.value if isinstance(arg, Literal) else None
