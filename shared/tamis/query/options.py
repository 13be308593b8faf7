"""WITH (name = value, …): what options there are, and their values with units."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sqlglot.tokenizer_core import TokenType

from tamis.errors import InputError, SqlError
from tamis.query.context import Context, suggest
from tamis.query.cursor import Cursor
from tamis.query.dialect import is_word
from tamis.query.units import parse_duration, parse_rate, parse_timestamp

Value = str | int | bool
Option = Callable[[Value], Any]

_EXAMPLE = "write WITH (name = value, …)"
_LONGEST_LABEL = 200
_FILES = (".csv", ".parquet")


def _duration(value: Value) -> int:
    if isinstance(value, bool) or (isinstance(value, int) and value != 0):
        raise InputError(
            "this must be a duration", hint="write a number and a unit in quotes, such as '5 seconds'"
        )
    length = parse_duration(str(value))
    if length < 0:
        raise InputError("a duration isn't negative here", hint="write one such as '5 seconds'")
    return length


def _span(value: Value) -> int:
    length = _duration(value)
    if length == 0:
        raise InputError("this duration must be longer than zero", hint="write one such as '5 minutes'")
    return length


def _count(value: Value) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(
            "this must be a positive whole number", hint="write one such as 1000, without quotes"
        )
    return value


def _flag(value: Value) -> bool:
    if not isinstance(value, bool):
        raise InputError("this must be true or false", hint="write true or false, without quotes")
    return value


def _text(value: Value) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST_LABEL:
        hint = f"write 1 to {_LONGEST_LABEL} characters in quotes, such as 'warning'"
        raise InputError("this must be a short text", hint=hint)
    return value


def _path(value: Value) -> str:
    if not isinstance(value, str) or Path(value).suffix.lower() not in _FILES or "\0" in value:
        hint = f"name a file that ends in {' or '.join(_FILES)}, such as 'sites.csv'"
        raise InputError("this must be the path of a file", hint=hint)
    return value


def _labels(value: Value) -> tuple[tuple[str, str], ...]:
    hint = "write names and values in one text, such as 'team=ops, site=north'"
    labels: dict[str, str] = {}
    for part in (value if isinstance(value, str) else "").split(","):
        name, equals, content = (piece.strip() for piece in part.partition("="))
        if not equals or not name.isidentifier() or not name.isascii() or len(part) > _LONGEST_LABEL:
            raise InputError(f"'{part.strip()[:40]}' isn't a label", hint=hint)
        if name in labels:
            raise InputError(f"the label '{name}' is given twice", hint="name each label once")
        labels[name] = content
    return tuple(labels.items())


def _certify(value: Value) -> str:
    if value not in ("sound", "heuristic"):
        hint = "write 'sound', which is what holds without it, or 'heuristic'"
        raise InputError(f"certify can't be '{value}'", hint=hint)
    return str(value)


def _until(value: Value) -> int:
    if not isinstance(value, str):
        raise InputError("this must be a time", hint="write one such as '2026-01-31T12:00:00Z'")
    return parse_timestamp(value)


def _rate(value: Value) -> Any:
    if not isinstance(value, str):
        raise InputError("this must be a rate", hint="write one such as '10/s' or '5/minute', in quotes")
    return parse_rate(value)


STREAM: Mapping[str, Option] = {
    "keys": _count,
    "rate": _rate,
    "max_stall": _span,
    "idle_timeout": _span,
    "max_ahead": _duration,
    "finite": _flag,
    "until": _until,
}
ALERT: Mapping[str, Option] = {
    "max_delay": _duration,
    "gap": _duration,
    "for": _duration,
    "severity": _text,
    "labels": _labels,
    "certify": _certify,
    "allow_unbounded": _flag,
}
TABLE: Mapping[str, Option] = {"path": _path}


def read_options(context: Context, group: Cursor, known: Mapping[str, Option]) -> dict[str, Any]:
    """The options of a WITH (…) by name, each with its value; all the mistakes in them are reported."""
    options: dict[str, Any] = {}
    for item in group.items():
        try:
            offset = item.offset
            token = item.take()
            if token is None or not (is_word(token) or token.token_type == TokenType.IDENTIFIER):
                item.at = 0
                raise item.unexpected("the name of an option", _EXAMPLE)
            name = token.text.lower()
            if not item.symbol("="):
                raise item.unexpected("=", _EXAMPLE)
            place = item.offset
            value = _value(item)
            item.finish("write a comma between two options")
            if name not in known:
                hint = f"{suggest(name, known, '')} known are: {', '.join(known)}".strip()
                raise context.text.error(f"there is no option '{name}' here", offset, hint)
            if name in options:
                raise context.text.error(
                    f"the option '{name}' is given twice", offset, "give each option once"
                )
            try:
                options[name] = known[name](value)
            except InputError as error:
                raise context.text.error(f"{name}: {error.what}", place, error.hint or _EXAMPLE) from error
        except SqlError as error:
            context.errors.append(error)
    return options


def _value(item: Cursor) -> Value:
    negative = item.symbol("-")
    token = item.current
    hint = "write a text in quotes, a whole number, true or false"
    if (
        token is not None
        and token.token_type == TokenType.NUMBER
        and token.text.isdigit()
        and len(token.text) < 19
    ):
        item.take()
        return -int(token.text) if negative else int(token.text)
    if token is not None and not negative:
        if token.token_type == TokenType.STRING:
            item.take()
            return token.text
        if item.peek() in ("TRUE", "FALSE"):
            return item.take() is not None and token.text.upper() == "TRUE"
    raise item.unexpected("a value", hint)
