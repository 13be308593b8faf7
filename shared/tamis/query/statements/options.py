"""Options: WITH (name = value, …), with the parser of each option's value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sqlglot.tokenizer_core import TokenType

from tamis.declarations.backfill import From
from tamis.declarations.units import parse_duration, parse_rate, parse_timestamp
from tamis.errors import InputError, SqlError
from tamis.query.context import Context
from tamis.query.syntax.cursor import Cursor, shorten
from tamis.query.syntax.dialect import is_word
from tamis.wording.names import suggest

Value = str | int | bool
Option = Callable[[Value], Any]

_EXAMPLE = "write WITH (name = value, …)"
_LONGEST_LABEL = 200
_MOST_LABELS = 1_000  # plans, which every service reads, contain them
UNLIMITED = "unlimited"
_FILES = (".csv", ".parquet")


def _duration(value: Value) -> int:
    if isinstance(value, bool) or (isinstance(value, int) and value != 0):
        raise InputError(
            "the value must be a duration", hint="write a number and a unit in quotes, such as '5 seconds'"
        )
    length = parse_duration(str(value))
    if length < 0:
        raise InputError("the duration must not be negative", hint="write a duration such as '5 seconds'")
    return length


def _span(value: Value) -> int:
    length = _duration(value)
    if length == 0:
        raise InputError("the duration must be longer than zero", hint="write a duration such as '5 minutes'")
    return length


def _ahead(value: Value) -> int | None:
    if value == UNLIMITED:
        return None
    try:
        return _duration(value)
    except InputError as error:
        hint = f"{error.hint}; or '{UNLIMITED}' to accept readings however far ahead of the clock they are"
        raise InputError(error.what, hint=hint) from error


def _count(value: Value) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(
            "the value must be a positive whole number", hint="write a number such as 1000, without quotes"
        )
    return value


def _flag(value: Value) -> bool:
    if not isinstance(value, bool):
        raise InputError("the value must be true or false", hint="write true or false, without quotes")
    return value


def _text(value: Value) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST_LABEL:
        hint = f"write 1 to {_LONGEST_LABEL} characters in quotes, such as 'warning'"
        raise InputError("the value must be a short text", hint=hint)
    return value


def _path(value: Value) -> str:
    if not isinstance(value, str) or Path(value).suffix.lower() not in _FILES or "\0" in value:
        hint = f"name a file that ends in {' or '.join(_FILES)}, such as 'sites.csv'"
        raise InputError("the value must be the path of a CSV or Parquet file", hint=hint)
    return value


def _column_name(value: Value) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InputError("the value must be the name of a column", hint="write it in quotes, such as 'value'")
    return value.strip()


def _labels(value: Value) -> tuple[tuple[str, str], ...]:
    hint = "write names and values in one text, such as 'team=ops, site=north'"
    labels: dict[str, str] = {}
    for part in (value if isinstance(value, str) else "").split(","):
        name, equals, content = (piece.strip() for piece in part.partition("="))
        if not equals or not name.isidentifier() or not name.isascii() or len(part) > _LONGEST_LABEL:
            raise InputError(f"'{part.strip()[:40]}' isn't a label", hint=hint)
        if name in labels:
            raise InputError(f"the label '{name}' is given twice", hint="write each label once")
        labels[name] = content
    if len(labels) > _MOST_LABELS:
        raise InputError(f"the value has {len(labels)} labels", hint=f"write at most {_MOST_LABELS} labels")
    return tuple(labels.items())


def _certify(value: Value) -> str:
    if value not in ("sound", "heuristic"):
        hint = "write 'sound', which is the default, or 'heuristic'"
        raise InputError(f"'{value}' isn't a kind of certificate", hint=hint)
    return str(value)


def _value_format(value: Value) -> str:
    form = value.lower() if isinstance(value, str) else ""
    if form not in ("json", "avro", "protobuf"):
        raise InputError(
            f"'{value}' isn't a format of values",
            hint="write 'json', which is the default, 'avro' or 'protobuf'",
        )
    return form


def _time_unit(value: Value) -> str:
    unit = value.lower() if isinstance(value, str) else ""
    if unit not in ("s", "ms", "us", "ns"):
        hint = "write 's', 'ms', 'us' or 'ns': the unit of times that are numbers since 1970"
        raise InputError(f"'{value}' isn't a unit of times", hint=hint)
    return unit


def _until(value: Value) -> int:
    if not isinstance(value, str):
        raise InputError("the value must be a time", hint="write a time such as '2026-01-31T12:00:00Z'")
    return parse_timestamp(value)


def _from(value: Value) -> From:
    hint = "write 'earliest', or a time such as '2026-01-31T12:00:00Z'"
    if not isinstance(value, str):
        raise InputError("the value must be 'earliest' or a time", hint=hint)
    if value.strip().lower() == "earliest":
        return "earliest"
    try:
        return parse_timestamp(value)
    except InputError as error:
        raise InputError(f"'{value}' is neither 'earliest' nor a time of ISO 8601", hint=hint) from error


def _edge(value: Value) -> Any:
    if value not in ("auto", "raw"):
        raise InputError(
            "the value must be 'auto' or 'raw'", hint="write edge = 'raw' to publish every reading"
        )
    return value


def _rate(value: Value) -> Any:
    if not isinstance(value, str):
        raise InputError(
            "the value must be a rate", hint="write a rate such as '10/s' or '5/minute', in quotes"
        )
    return parse_rate(value)


STREAM: Mapping[str, Option] = {
    "keys": _count,
    "rate": _rate,
    "max_stall": _span,
    "idle_timeout": _span,
    "max_ahead": _ahead,
    "finite": _flag,
    "until": _until,
    "value_format": _value_format,
    "time_unit": _time_unit,
    "history": _span,
}
ALERT: Mapping[str, Option] = {
    "max_delay": _duration,
    "gap": _duration,
    "for": _duration,
    "severity": _text,
    "labels": _labels,
    "certify": _certify,
    "allow_unbounded": _flag,
    "read_derived": _flag,
    "within": _span,
    "from": _from,
    "edge": _edge,
}
TABLE: Mapping[str, Option] = {"path": _path}
PATTERN: Mapping[str, Option] = {"max_gap": _span}
PATTERN_FILE: Mapping[str, Option] = {
    "value": _column_name,
    "time": _column_name,
    "step": _span,
    **PATTERN,
}


def parse_options(context: Context, group: Cursor, known: Mapping[str, Option]) -> dict[str, Any]:
    """The values of the options in WITH (…) by name; all mistakes in them are reported."""
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
            item.finish("write a comma between two options, and values such as '10/s' in quotes")
            if name not in known:
                hint = f"{suggest(name, known, '')} the options are: {', '.join(known)}".strip()
                raise context.text.error(f"there is no option '{name}' here", offset, hint)
            if name in options:
                raise context.text.error(
                    f"the option '{name}' is given twice", offset, "write each option once"
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
    hint = "write a text in single quotes, a whole number, true or false"
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
    if token is not None and token.token_type == TokenType.IDENTIFIER:
        hint = f"write a text in single quotes: '{shorten(token.text)}'"
    raise item.unexpected("a value", hint)
