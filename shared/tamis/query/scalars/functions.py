"""Typed calls of built-in functions: by their entries in the table, or rewritten as other operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tamis.expressions.functions.entry import FUNCTIONS, NUMBERS, TEXT, Function, Signature, Spelling
from tamis.expressions.functions.texts import lower
from tamis.expressions.functions.times import FIELDS, TRUNCATED_TO
from tamis.expressions.nodes import MOST_DIGITS, Call, Expr, Literal, Type
from tamis.expressions.signatures import refused_constant
from tamis.query.scalars.casts import cast
from tamis.query.scalars.operators import (
    NULL,
    TypeMismatch,
    arithmetic,
    case,
    compare,
    converted,
    extreme,
    integer,
    is_null,
    logic,
    typed,
    unified,
)
from tamis.wording.names import suggest

_WHOLE = ("floor", "ceil", "trunc", "round")  # their results are whole numbers
_DIGITS = f"write a whole number from -{MOST_DIGITS} to {MOST_DIGITS}, such as round(x, 2)"
_FIELD_NAMES = {
    "dayofweek": "dow",
    "weekday": "dow",
    "dayofyear": "doy",
    "weekofyear": "week",
    "milliseconds": "millisecond",
    "microseconds": "microsecond",
}


def built_in(spelling: Spelling, args: Sequence[Expr]) -> Expr:
    """A call of a built-in function. Raises `TypeMismatch` for arguments that it doesn't take."""
    rewrite = _REWRITTEN.get(spelling.names[0])
    return typed_call(FUNCTIONS[spelling.operator], args) if rewrite is None else rewrite(args)


def typed_call(function: Function, args: Sequence[Expr]) -> Expr:
    """A call whose arguments have the types that the entry of the function says."""
    values = list(args)
    if isinstance(function.types, Signature):
        values = [typed(arg, some[0]) for arg, some in zip(args, function.types.parameters, strict=False)]
    types = [value.type for value in values]
    result = function.types(types)
    if result is None:
        raise TypeMismatch(f"{function.name} can't be applied to {', '.join(types)}", hint=_hint(function))
    return Call(function.name, tuple(values), result)


def _hint(function: Function) -> str:
    parameters = function.types.parameters if isinstance(function.types, Signature) else ()
    if all(some == TEXT for some in parameters):
        return "CAST the value to VARCHAR"
    if all(set(NUMBERS) & set(some) for some in parameters):
        return f"{function.name} takes numbers"
    assert function.spelling is not None
    return "write " + function.spelling.usage.format(name=function.name)


def rounded(name: str, args: Sequence[Expr]) -> Expr:
    """floor, ceil, trunc, round and sign. As in DuckDB, round and trunc of an integer are the integer itself,
    and floor and ceil are DOUBLE.
    """
    number = typed(args[0], Type.DOUBLE)
    if not number.type.numeric:
        raise TypeMismatch(f"{name} can't be applied to {number.type}", hint=f"{name} takes numbers")
    digits = _digits(args[1]) if len(args) > 1 else 0
    kind = FUNCTIONS[name].types([number.type])
    if kind is None:
        if digits < 0:
            what = "round takes digits before the point only for a DOUBLE"
            raise TypeMismatch(what, hint="multiply the value by 1.0")
        return number
    if name in _WHOLE and digits >= 0 and isinstance(number, Call) and _is_whole(number):
        return number
    if digits:
        return Call("round", (number, Literal(digits, Type.INT)), Type.DOUBLE)
    return Call(name, (number,), kind)


def _digits(expr: Expr) -> int:
    if not isinstance(expr, Literal) or expr.type is not Type.INT or not isinstance(expr.value, int):
        raise TypeMismatch("the number of digits must be a constant", hint=_DIGITS)
    if abs(expr.value) > MOST_DIGITS:
        raise TypeMismatch(f"round takes at most {MOST_DIGITS} digits", hint=_DIGITS)
    return expr.value


def _is_whole(number: Call) -> bool:
    return number.op in _WHOLE and len(number.args) == 1


def coalesce(args: Sequence[Expr]) -> Expr:
    """The first argument that isn't NULL; a choice between conditions becomes AND and OR."""
    given = unified(args, "the arguments of coalesce")
    values = [arg for arg in given if not is_null(arg)]
    constant = next((i for i, value in enumerate(values) if isinstance(value, Literal)), len(values))
    values = values[: constant + 1]
    if not values:
        return given[0]
    if len(values) == 1:
        return values[0]
    kind = values[0].type
    if kind is not Type.BOOLEAN:
        doubles = Type.DOUBLE in {value.type for value in values}
        return Call("coalesce", tuple(values), Type.DOUBLE if doubles else kind)
    chosen = values[-1]
    for value in reversed(values[:-1]):
        absent = Call("is_null", (value,), Type.BOOLEAN)
        present = Call("not", (absent,), Type.BOOLEAN)
        chosen = logic("or", [logic("and", [value, present]), logic("and", [absent, chosen])])
    return chosen


def nullif(value: Expr, other: Expr) -> Expr:
    """NULL where the values are equal, else the first one."""
    return case([(compare("=", value, other), NULL)], value)


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
    return cast(expr, Type.VARCHAR)


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
        return compare("=", text, pattern)
    escapes = (Literal(escape, Type.VARCHAR),) if escape else ()
    found = Call("like", (text, pattern, *escapes), Type.BOOLEAN)
    if (mistake := refused_constant(found)) is not None:
        raise TypeMismatch(mistake, hint="write LIKE '50!%' ESCAPE '!' for the text 50%")
    return found


def time_part(field: str, value: Expr) -> Expr:
    """EXTRACT(field FROM value) and date_part(field, value): a field of a time, or `epoch`, the seconds of a
    time or an interval.
    """
    name = _singular(field)
    value = _time(value)
    if name == "epoch" and value.type in (Type.TIMESTAMP, Type.INTERVAL):
        return Call("epoch", (value,), Type.DOUBLE)
    if name not in FIELDS and name != "epoch":
        raise TypeMismatch(f"a time has no field '{name}'", hint=suggest(name, (*FIELDS, "epoch")))
    if value.type is Type.INTERVAL:
        hint = "write EXTRACT(EPOCH FROM …), the length in seconds"
        raise TypeMismatch(f"an INTERVAL has no field '{name}'", hint=hint)
    _check_time("EXTRACT", value)
    return Call("date_part", (Literal(name, Type.VARCHAR), value), Type.BIGINT)


def time_start(unit: Expr, value: Expr) -> Expr:
    """date_trunc(unit, value): the start of the unit in which a time lies."""
    name, value = constant_name(unit, "the unit of date_trunc"), _time(value)
    if _singular(name) not in TRUNCATED_TO:
        raise TypeMismatch(f"date_trunc has no unit '{name}'", hint=suggest(name, TRUNCATED_TO))
    _check_time("date_trunc", value)
    return Call("date_trunc", (Literal(_singular(name), Type.VARCHAR), value), Type.TIMESTAMP)


def from_seconds(value: Expr) -> Expr:
    """to_timestamp(seconds since 1970)."""
    value = typed(value, Type.DOUBLE)
    if not value.type.numeric:
        hint = "write to_timestamp(seconds), or TIMESTAMP '…' for a constant"
        raise TypeMismatch(f"to_timestamp can't be applied to {value.type}", hint=hint)
    return Call("to_timestamp", (value,), Type.TIMESTAMP)


def constant_name(expr: Expr, what: str) -> str:
    """The text of a constant. Raises `TypeMismatch` for anything else."""
    if not isinstance(expr, Literal) or not isinstance(expr.value, str):
        raise TypeMismatch(f"{what} must be a constant text", hint="write a text such as 'hour'")
    return expr.value


def _singular(name: str) -> str:
    name = name.lower()
    name = _FIELD_NAMES.get(name, name)
    return name[:-1] if name.endswith("s") and name[:-1] in FIELDS else name


def _time(value: Expr) -> Expr:
    text = value is NULL or (isinstance(value, Literal) and isinstance(value.value, str))
    return converted(value, Type.TIMESTAMP) if text else value


def _check_time(name: str, value: Expr) -> None:
    if value.type is not Type.TIMESTAMP:
        hint = (
            "for a number of seconds, write to_timestamp(x) first"
            if value.type.numeric
            else "give a TIMESTAMP"
        )
        raise TypeMismatch(f"{name} can't be applied to {value.type}", hint=hint)


def of_bits(op: str, args: Sequence[Expr]) -> Expr:
    """An operator of bits. Raises `TypeMismatch` for anything but integers."""
    values = [converted(arg, Type.BIGINT) if is_null(arg) else arg for arg in args]
    types = [value.type for value in values]
    kind = FUNCTIONS[op].types(types)
    if kind is None:
        raise TypeMismatch(f"{op} can't be applied to {' and '.join(types)}", hint=_bits_hint(types))
    if op == "~" and isinstance(values[0], Literal) and isinstance(values[0].value, int):
        return integer(~values[0].value)
    return Call(op, tuple(values), kind)


def _bits_hint(types: Sequence[Type]) -> str:
    if Type.BOOLEAN in types:
        return "join conditions by AND, OR or NOT"
    if Type.VARCHAR in types:
        return "join texts by ||; bits are those of INT and BIGINT"
    if Type.DOUBLE in types:
        return "bits are those of INT and BIGINT: declare the column so, or write CAST(x AS BIGINT) & 4"
    return "bits are those of INT and BIGINT"


_REWRITTEN: Mapping[str, Callable[[Sequence[Expr]], Expr]] = {
    "power": lambda args: arithmetic("power", *args),
    "mod": lambda args: arithmetic("mod", *args),
    "floor": lambda args: rounded("floor", args),
    "ceil": lambda args: rounded("ceil", args),
    "trunc": lambda args: rounded("trunc", args),
    "round": lambda args: rounded("round", args),
    "sign": lambda args: rounded("sign", args),
    "least": lambda args: extreme("least", args),
    "greatest": lambda args: extreme("greatest", args),
    "coalesce": coalesce,
    "ifnull": coalesce,
    "nullif": lambda args: nullif(*args),
    "concat": concat,
    "date_part": lambda args: time_part(constant_name(args[0], "the field of date_part"), args[1]),
    "date_trunc": lambda args: time_start(*args),
    "to_timestamp": lambda args: from_seconds(*args),
    "bit_and": lambda args: of_bits("&", args),
    "bit_or": lambda args: of_bits("|", args),
    "xor": lambda args: of_bits("xor", args),
}
