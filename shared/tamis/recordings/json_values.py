"""Convert one column of JSON values to a vector of its declared type, and report values that don't fit.

Edges and recordings of JSON use the same code, so both accept the same values. A value that doesn't fit
becomes NULL. Each value is judged alone, not by its neighbours.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.messaging.dead_letters import Reason
from tamis.messaging.records import END_OF_TIME
from tamis.recordings.times import PER_SECOND, TimeUnit, plausible_unit
from tamis.wording.file_text import number_hint

_NONE = type(None)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Offence:
    """The reason why the reading at position `row` of its batch can't be used."""

    row: int
    reason: Reason
    error: str


class _Misfit(Exception):
    def __init__(self, reason: Reason, what: str) -> None:
        super().__init__(what)
        self.reason = reason


def convert(name: str, values: Sequence[Any], type_: Type, unit: TimeUnit) -> tuple[Vector, list[Offence]]:
    """The vector of `values`; `unit` is that of TIMESTAMPs that come as numbers."""
    fast = _fast(values, type_, unit)
    if fast is not None:
        return fast, []
    offences = []
    clean: list[Any] = []
    for i, value in enumerate(values):
        try:
            clean.append(None if value is None else _one(value, type_, unit))
        except _Misfit as misfit:
            offences.append(Offence(i, misfit.reason, f"{name}: {misfit}"))
            clean.append(None)
    return Vector.from_list(clean, type_), offences


def _fast(values: Sequence[Any], type_: Type, unit: TimeUnit) -> Vector | None:
    """The vector where every value has the usual form, else None."""
    kinds = set(map(type, values)) - {_NONE}
    if type_ is Type.DOUBLE:
        if kinds <= {float, int}:
            try:
                data = np.array(values, np.float64)  # None becomes NaN
            except OverflowError:  # an integer beyond every DOUBLE
                return None
            finite = np.isfinite(data)
            if finite.all():
                return Vector(data)
            if np.count_nonzero(~finite) == sum(value is None for value in values):
                return Vector(np.where(finite, data, 0.0), ~finite)
        return None
    if type_ is Type.TIMESTAMP:
        if kinds == {str} and None not in values:
            return _iso(values)
        if kinds == {int} and None not in values:
            return _ticks(values, unit)
        return None
    allowed = {Type.VARCHAR: str, Type.BOOLEAN: bool, Type.INT: int, Type.BIGINT: int}[type_]
    if kinds <= {allowed}:
        if allowed is int and any(not -(2**63) <= v < 2**63 for v in values if v is not None):
            return None
        return Vector.from_list(values, type_)
    return None


def _iso(values: Sequence[str]) -> Vector | None:
    # Arrow takes 30 MB, which an edge without such times can do without.
    from tamis.recordings.times import column_ticks

    data = column_ticks(values)
    return Vector(data) if data is not None and _within(data, END_OF_TIME) else None


def _ticks(values: Sequence[int], unit: TimeUnit) -> Vector | None:
    if max(values) >= 2**63 or min(values) < -(2**63):
        return None
    data = np.array(values, np.int64)
    per_second = PER_SECOND[unit]
    if per_second > 1_000_000:
        data = data // (per_second // 1_000_000)
    else:
        factor = 1_000_000 // per_second
        if not _within(data, END_OF_TIME // factor):
            return None
        data = data * factor
    return Vector(data) if _within(data, END_OF_TIME) else None


def _within(data: npt.NDArray[np.int64], limit: int) -> bool:
    # Not by `abs`: that of the least integer is negative.
    return bool(((data > -limit) & (data < limit)).all())


def _one(value: Any, type_: Type, unit: TimeUnit) -> Any:
    kind = type(value)
    # No column can have such a number, whatever its type is.
    if kind is float or (kind is int and type_ is Type.DOUBLE):
        _check_finite(value)
    if type_ is Type.TIMESTAMP:
        return _time(value, unit)
    if type_ is Type.DOUBLE and kind in (float, int):
        return value
    if type_ in (Type.INT, Type.BIGINT) and kind in (int, float):
        # JSON has one kind of number: 5.0 is a whole one.
        if value == int(value) and -(2**63) <= int(value) < 2**63:
            return int(value)
    elif (type_ is Type.VARCHAR and kind is str) or (type_ is Type.BOOLEAN and kind is bool):
        return value
    raise _Misfit(Reason.WRONG_TYPE, f"{excerpt(value)} is not of type {type_}{_number_hint(value, type_)}")


def _number_hint(value: Any, type_: Type) -> str:
    """A hint for a number that is written as text; empty for anything else."""
    if type(value) is not str or not type_.numeric:
        return ""
    hint = number_hint(value)
    if hint is None and value.strip() and _NUMBER.fullmatch(value.strip()):
        hint = "send the number without quotes"
    return "" if hint is None else f"; {hint}"


def _time(value: Any, unit: TimeUnit) -> int:
    if type(value) is str:
        from tamis.recordings.times import iso_time

        try:
            time = iso_time(value)
        except ValueError:
            raise _Misfit(Reason.WRONG_TYPE, f"{excerpt(value)} is not an ISO 8601 time") from None
        if abs(time) >= END_OF_TIME:
            raise _Misfit(Reason.OUT_OF_DOMAIN, f"{value} is outside of the range of event times")
        return time
    if type(value) not in (int, float):
        raise _Misfit(
            Reason.WRONG_TYPE, f"{excerpt(value)} is not a TIMESTAMP: ISO 8601 or a number of {unit}"
        )
    per_second = PER_SECOND[unit]
    exact = type(value) is int
    scaled: float = value * 1_000_000 // per_second if exact else value * 1_000_000 / per_second
    # A finite DOUBLE may be infinite in microseconds, and then no int is near.
    if abs(scaled) >= END_OF_TIME:
        infinite = type(scaled) is float and math.isinf(scaled)
        fits = None if infinite else plausible_unit(round(scaled), unit)
        asked = f"is it in {unit}?" if fits is None else f"it would fit in {fits}: set the time unit"
        raise _Misfit(
            Reason.OUT_OF_DOMAIN,
            f"{excerpt(value)} {unit} since 1970 is outside of the range of event times; {asked}",
        )
    return round(scaled)


def _check_finite(value: float) -> None:
    try:
        finite = math.isfinite(value)
    except OverflowError:  # an integer beyond every DOUBLE
        finite = False
    if not finite:
        raise _Misfit(
            Reason.NOT_A_NUMBER,
            f"{excerpt(value)} is not a finite number; leave the field out or send null where there is none",
        )


def not_finite(value: float) -> str:
    """A number that isn't finite, as senders of JSON write it.

    >>> not_finite(float("-inf"))
    '-Infinity'
    """
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def excerpt(value: Any) -> str:
    """The beginning of a value as in JSON. Avro, Protobuf and Python also have values that JSON doesn't
    have.
    """
    if type(value) is float and not math.isfinite(value):
        return not_finite(value)
    try:
        passed = orjson.OPT_PASSTHROUGH_DATACLASS
        text = repr(value) if type(value) is float else orjson.dumps(value, option=passed).decode()
    except TypeError:  # bytes, for example, or an integer of more than 64 bits
        text = repr(value)
    return text[:80]
