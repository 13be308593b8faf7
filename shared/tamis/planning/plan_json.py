"""A plan as JSON bytes, as it travels over Kafka and lies on an edge's disk, and back, strictly checked.

What is read comes from the network: every field must be there with its type and no other, sizes are
limited, names and expressions are checked. Field names are those of `tamis.planning.plan`; expressions are
in `json_form`. Fields of `LATER` came after the first release: a plan that doesn't need them is written
without them, so that older services read it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import orjson

from tamis.errors import InputError
from tamis.expressions.json_form import from_json
from tamis.expressions.nodes import Column, Expr, Type
from tamis.planning.plan import (
    Definition,
    Entry,
    Input,
    Kept,
    Plan,
    Sides,
    StandingQuery,
    StreamColumn,
    StreamPlan,
    TimeBound,
    TopicPlan,
)
from tamis.planning.plan_text import FORMAT, LARGEST, LATER, MOST, Written
from tamis.query.model import Window

LONGEST = 1_000  # characters of a name
LONGEST_SQL = 1_000_000
MOST_REMEMBERED = 100_000  # entries and definitions as read

T = TypeVar("T")
Read = Callable[[object, str], T]


def encode_plan(plan: Plan) -> bytes:
    """The plan's value in `tamis.plans`. Raises InputError where `decode_plan` would refuse it."""
    return Written(plan).document


def decode_plan(data: bytes) -> Plan:
    """The plan that `encode_plan` wrote. Raises InputError with the place of what is wrong."""
    if len(data) > LARGEST:
        raise InputError(f"a plan of {len(data)} bytes; at most {LARGEST} are read", where="plan")
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise InputError(f"not JSON: {error}", where="plan") from None
    fields = dict(_object(document, "plan"))
    if _integer(fields.pop("format", 0), "plan.format") != FORMAT:
        raise InputError(f"a plan of another format than {FORMAT}", where="plan", hint="upgrade this service")
    return _record(Plan, _PLAN)(fields, "plan")


def _wrong(what: str, place: str) -> InputError:
    return InputError(what, where=place, hint="is every service of the same release?")


def _object(value: object, place: str) -> dict[str, object]:
    if not isinstance(value, dict) or len(value) > MOST:
        raise _wrong("expected an object", place)
    return cast("dict[str, object]", value)


def _text(value: object, place: str) -> str:
    if not isinstance(value, str) or len(value) > LONGEST:
        raise _wrong(f"expected a string of at most {LONGEST} characters", place)
    return value


def _sql(value: object, place: str) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_SQL:
        raise _wrong(f"expected a text of at most {LONGEST_SQL} characters", place)
    return value


def _boolean(value: object, place: str) -> bool:
    if not isinstance(value, bool):
        raise _wrong("expected true or false", place)
    return value


def _integer(value: object, place: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not -(2**63) <= value < 2**63:
        raise _wrong("expected a whole number", place)
    return value


def _natural(value: object, place: str) -> int:
    number = _integer(value, place)
    if number < 0:
        raise _wrong("expected a number from 0", place)
    return number


def _positive(value: object, place: str) -> int:
    number = _integer(value, place)
    if number < 1:
        raise _wrong("expected a number from 1", place)
    return number


def _expression(value: object, place: str) -> Expr:
    try:
        return from_json(value)
    except InputError as error:
        raise _wrong(str(error), place) from None


def _column(value: object, place: str) -> Column:
    expr = _expression(value, place)
    if not isinstance(expr, Column):
        raise _wrong("expected a column", place)
    return expr


def _type(value: object, place: str) -> Type:
    name = _text(value, place)
    if name not in Type.__members__:
        raise _wrong(f"unknown type {name!r}", place)
    return Type(name)


def _sides(value: object, place: str) -> Sides:
    if value not in ("both", "above", "below"):
        raise _wrong("expected both, above or below", place)
    return value


def _or_none(read: Read[T]) -> Read[T | None]:
    return lambda value, place: None if value is None else read(value, place)


def _tuple(read: Read[T]) -> Read[tuple[T, ...]]:
    def read_all(value: object, place: str) -> tuple[T, ...]:
        if not isinstance(value, list) or len(value) > MOST:
            raise _wrong(f"expected a list of at most {MOST}", place)
        return tuple(read(item, f"{place}[{i}]") for i, item in enumerate(value))

    return read_all


def _pair(first: Read[T], second: Read[Any]) -> Read[tuple[T, Any]]:
    def read_pair(value: object, place: str) -> tuple[T, Any]:
        if not isinstance(value, list) or len(value) != 2:
            raise _wrong("expected a list of two", place)
        return first(value[0], f"{place}[0]"), second(value[1], f"{place}[1]")

    return read_pair


def _map(read: Read[T]) -> Read[dict[str, T]]:
    def read_all(value: object, place: str) -> dict[str, T]:
        return {_text(k, place): read(v, f"{place}.{k[:40]}") for k, v in _object(value, place).items()}

    return read_all


def _record(kind: type[T], fields: dict[str, Read[Any]]) -> Read[T]:
    """Reads an object with exactly these fields."""

    def read_record(value: object, place: str) -> T:
        given = _object(value, place)
        for name in fields.keys() - given.keys() - LATER.keys():
            raise _wrong(f"{name} is missing", place)
        for name in given.keys() - fields.keys():
            raise _wrong(f"unknown field {name[:40]!r}", place)
        read = {name: fields[name](given[name], f"{place}.{name}") for name in fields if name in given}
        return kind(**read)

    return read_record


def _remembered(read: Read[T]) -> Read[T]:
    """What was read of the same text before is found again: checking it takes longer by far."""
    known: dict[bytes, T] = {}

    def read_again(value: object, place: str) -> T:
        text = orjson.dumps(value)
        found = known.get(text)
        if found is None:
            found = read(value, place)
            if len(known) >= MOST_REMEMBERED:
                known.clear()
            known[text] = found
        return found

    return read_again


def _window(value: object, place: str) -> Window:
    window = _record(Window, {"slide": _positive, "size": _positive})(value, place)
    if window.size % window.slide:
        raise _wrong("expected a slide that divides the size", place)
    return window


_names = _tuple(_text)
_ENTRY: dict[str, Read[Any]] = {
    "filter": _or_none(_expression),
    "omission_key": _names,
    "value": _or_none(_expression),
    "interval": _natural,
    "sides": _sides,
    "max_delay": _or_none(_natural),
    "serves": _natural,
    "window": _window,
}
_TOPIC: dict[str, Read[Any]] = {
    "name": _text,
    "partition_key": _names,
    "columns": _names,
    "entries": _tuple(_remembered(_record(Entry, _ENTRY))),
    "select": _tuple(_pair(_text, _expression)),
    "counted": _boolean,
}
_COLUMN: dict[str, Read[Any]] = {
    "name": _text,
    "type": _type,
    "not_null": _boolean,
    "check": _or_none(_expression),
}
_STREAM: dict[str, Read[Any]] = {
    "name": _text,
    "columns": _tuple(_remembered(_record(StreamColumn, _COLUMN))),
    "time": _or_none(_text),
    "delay": _natural,
    "idle_timeout": _or_none(_natural),
    "max_ahead": _or_none(_natural),
    "max_stall": _natural,
    "topics": _tuple(_record(TopicPlan, _TOPIC)),
}
_INPUT: dict[str, Read[Any]] = {
    "alias": _text,
    "stream": _text,
    "topic": _text,
    "time": _text,
    "partition_key": _names,
    "filter": _or_none(_expression),
    "interval": _natural,
    "columns": _names,
    "certificate": _text,
    "kept": _record(Kept, {"span": _natural, "tuples": _natural, "per": _positive}),
}
_BOUND: dict[str, Read[Any]] = {
    "left": _text,
    "right": _text,
    "lo": _or_none(_integer),
    "hi": _or_none(_integer),
}
_DEFINITION: dict[str, Read[Any]] = {
    "alert": _text,
    "version": _positive,
    "inputs": _tuple(_record(Input, _INPUT)),
    "equalities": _tuple(_pair(_column, _column)),
    "bounds": _tuple(_record(TimeBound, _BOUND)),
    "condition": _or_none(_expression),
    "select": _tuple(_pair(_text, _expression)),
    "severity": _or_none(_text),
    "labels": _tuple(_pair(_text, _text)),
    "gap": _or_none(_natural),
    "for_": _or_none(_natural),
    "bound": _or_none(_natural),
    "window": _window,
}
_STANDING: dict[str, Read[Any]] = {
    "alert": _text,
    "version": _positive,
    "sql": _sql,
    "inputs": _tuple(_record(Input, _INPUT)),
    "key": _names,
    "bound": _or_none(_natural),
    "severity": _or_none(_text),
    "labels": _tuple(_pair(_text, _text)),
    "gap": _or_none(_natural),
    "for_": _or_none(_natural),
    "proven": _boolean,
}
_PLAN: dict[str, Read[Any]] = {
    "version": _positive,
    "partitions": _positive,
    "streams": _tuple(_record(StreamPlan, _STREAM)),
    "definitions": _tuple(_remembered(_record(Definition, _DEFINITION))),
    "since": _map(_positive),
    "shard_streams": _map(_text),
    "retiring": _map(_positive),
    "standing": _tuple(_record(StandingQuery, _STANDING)),
}
