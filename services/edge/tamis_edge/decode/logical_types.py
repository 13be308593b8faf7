"""Conversion of values by their logical type: times to microseconds, decimals to exact numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

from tamis.expressions.nodes import Type
from tamis.recordings.times import PER_SECOND, TimeUnit


class SchemaError(Exception):
    """The reason why a schema can't be used."""


Convert = Callable[[Any], Any]

MICROSECONDS_A_DAY = 86_400_000_000
# Enough for every decimal that fits into a reading's 900 kB would be slow to compute with. A DOUBLE has 17
# significant digits and a BIGINT 19, so a number with more than these is refused before it is computed.
MOST_DIGITS = 40

_WHOLE = frozenset((Type.INT, Type.BIGINT))


@dataclass(frozen=True)
class Unfit:
    """A value that no column can have. It looks like its description, which is what the dead letter says."""

    what: str

    def __repr__(self) -> str:
        return self.what


@dataclass(frozen=True)
class WantedColumn:
    """A column of a stream: its path in a reading, and the unit of its times that are plain numbers."""

    name: str
    type: Type
    path: tuple[str, ...]
    unit: TimeUnit


def refused(what: str) -> Convert:
    """Converts every value to one that fits no column."""
    unfit = Unfit(what)
    return lambda _: unfit


def from_ticks(column: WantedColumn, per_second: int, name: str) -> Convert:
    """Converts whole numbers of a time type to microseconds; `name` is that of the type."""
    if column.type is not Type.TIMESTAMP:
        return refused(f"a {name}")
    if per_second > 1_000_000:
        divisor = per_second // 1_000_000
        return lambda ticks: ticks // divisor
    factor = 1_000_000 // per_second
    return lambda ticks: ticks * factor


def from_days(column: WantedColumn) -> Convert:
    """Converts days since 1970 to the microseconds of their midnight in UTC."""
    if column.type is not Type.TIMESTAMP:
        return refused("a date")
    return lambda days: days * MICROSECONDS_A_DAY


def from_decimal(column: WantedColumn, scale: int) -> Convert:
    """Converts the bytes of an unscaled decimal to a number that has exactly its value or, for a DOUBLE,
    exactly its digits: the shortest text of the DOUBLE is the decimal again.
    """
    exact = Context(prec=MOST_DIGITS)

    def convert(data: bytes) -> Any:
        if len(data) > MOST_DIGITS // 2:
            return Unfit(f"a decimal of {len(data)} bytes")
        value = exact.scaleb(Decimal(int.from_bytes(data, "big", signed=True)), -scale)
        if column.type in _WHOLE:
            return int(value) if value == value.to_integral_value() else Unfit(f"the decimal {value}")
        if column.type is not Type.DOUBLE:
            return Unfit(f"the decimal {value}")
        number = float(value)
        return number if Decimal(repr(number)) == value else Unfit(f"the decimal {value}, which isn't exact")

    return convert


def from_number(column: WantedColumn) -> Convert | None:
    """Converts plain numbers: for a TIMESTAMP from the unit of the source, otherwise not at all."""
    if column.type is not Type.TIMESTAMP or column.unit == "us":
        return None
    per_second = PER_SECOND[column.unit]

    def convert(value: Any) -> Any:
        if type(value) is float:
            scaled = value * 1_000_000 / per_second
            return round(scaled) if abs(scaled) < 2.0**63 else value
        return value * 1_000_000 // per_second

    return convert


def converted(values: Sequence[Any], by_type: dict[type, Convert]) -> Sequence[Any]:
    """The values, each converted by its Python type. None stays None."""
    if not by_type:
        return values
    if len(by_type) == 1:
        ((kind, convert),) = by_type.items()
        return [convert(value) if type(value) is kind else value for value in values]
    return [by_type[type(value)](value) if type(value) in by_type else value for value in values]
