"""Typed calls of the functions of text: LIKE, ||, SUBSTRING and their kin."""

from __future__ import annotations

from collections.abc import Sequence

from tamis.expressions.function_types import function_type, refused_constant
from tamis.expressions.nodes import Call, Expr, Literal, Type
from tamis.expressions.vectorized.texts import lower
from tamis.query.scalars import casts, operators
from tamis.query.scalars.operators import TypeMismatch, is_null, typed

_NAMES = {"char_length": "length", "character_length": "length", "substr": "substring"}
TEXT_FUNCTIONS = ("lower", "upper", "length", "trim", "ltrim", "rtrim", "substring", *_NAMES)


def function(name: str, args: Sequence[Expr]) -> Expr:
    """A call of one of `TEXT_FUNCTIONS`."""
    name = _NAMES.get(name, name)
    second = Type.VARCHAR if name in ("trim", "ltrim", "rtrim") else Type.BIGINT
    wanted = (Type.VARCHAR, second, Type.BIGINT)
    values = [typed(arg, kind) for arg, kind in zip(args, wanted, strict=False)]
    types = [value.type for value in values]
    result = function_type(name, types)
    if result is None:
        hint = "write substring(text, start, length)" if name == "substring" else "CAST the value to VARCHAR"
        raise TypeMismatch(f"{name} can't be applied to {', '.join(types)}", hint=hint)
    return Call(name, tuple(values), result)


def joined(left: Expr, right: Expr) -> Expr:
    """`left || right`; NULL if one of the two is."""
    if Type.VARCHAR not in (left.type, right.type):
        what = f"|| can't be applied to {left.type} and {right.type}"
        raise TypeMismatch(what, hint="one of the two values must be a text")
    return Call("||", (_text(left), _text(right)), Type.VARCHAR)


def concat(args: Sequence[Expr]) -> Expr:
    """concat(…), where NULL is the empty text."""
    found: Expr | None = None
    for arg in args:
        text = _text(arg)
        if is_null(text):
            continue
        if not isinstance(text, Literal):
            text = Call("coalesce", (text, Literal("", Type.VARCHAR)), Type.VARCHAR)
        found = text if found is None else Call("||", (found, text), Type.VARCHAR)
    return Literal("", Type.VARCHAR) if found is None else found


def _text(expr: Expr) -> Expr:
    return casts.cast(expr, Type.VARCHAR)


def like(text: Expr, pattern: Expr, escape: str, *, fold: bool) -> Expr:
    """`text LIKE pattern ESCAPE escape`; with `fold` ILIKE, which compares both in lower case."""
    text, pattern = (typed(side, Type.VARCHAR) for side in (text, pattern))
    word = "ILIKE" if fold else "LIKE"
    if text.type is not Type.VARCHAR or pattern.type is not Type.VARCHAR:
        what = f"{word} can't be applied to {text.type} and {pattern.type}"
        raise TypeMismatch(what, hint="LIKE compares text")
    if not isinstance(pattern, Literal):
        hint = "write a text such as 'pump%'"
        raise TypeMismatch(f"the pattern of {word} must be a constant", hint=hint)
    if pattern.value is None:
        return Literal(None, Type.BOOLEAN)
    if fold:
        if lower(escape) != escape.upper():
            raise TypeMismatch("ILIKE can't have a letter after ESCAPE", hint="write ESCAPE '!'")
        text, pattern = Call("lower", (text,), Type.VARCHAR), Literal(lower(str(pattern.value)), Type.VARCHAR)
    if not escape and not {"%", "_"} & set(str(pattern.value)):
        return operators.compare("=", text, pattern)
    escapes = (Literal(escape, Type.VARCHAR),) if escape else ()
    found = Call("like", (text, pattern, *escapes), Type.BOOLEAN)
    if (mistake := refused_constant(found)) is not None:
        raise TypeMismatch(mistake, hint="write LIKE '50!%' ESCAPE '!' for the text 50%")
    return found
