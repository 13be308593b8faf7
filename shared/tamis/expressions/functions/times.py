"""Functions of times: fields, starts of units, and times from seconds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from tamis.expressions.functions.entry import (
    NUMBERS,
    TEXT,
    Function,
    Kernel,
    Reference,
    Signature,
    Spelling,
    constant,
    once,
    written,
)
from tamis.expressions.functions.operands import Operand, any_null
from tamis.expressions.nodes import Call, Type

Instants = NDArray[np.int64]

FIRST, LAST = -62_135_596_800_000_000, 253_402_300_799_999_999  # of the years 1 and 9999
_DAY = 86_400_000_000
# Units of fixed length, in microseconds; a week starts on Monday.
UNITS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": _DAY,
    "week": 7 * _DAY,
}
TRUNCATED_TO = (*UNITS, "month", "quarter", "year")
FIELDS = (
    *("year", "quarter", "month", "week", "day", "doy", "dow", "isodow", "isoyear"),
    *("hour", "minute", "second", "millisecond", "microsecond"),
)
_MONDAY = 4 * _DAY  # 1970-01-05


def valid(instants: Instants) -> NDArray[np.bool_]:
    """Mask of the instants in the years 1 to 9999."""
    return (instants >= FIRST) & (instants <= LAST)


def field(name: str, instants: Instants) -> Instants:
    """A field of `FIELDS` of valid instants. As in DuckDB, milliseconds and microseconds include the seconds.

    >>> field("hour", np.array([-1])).tolist(), field("isodow", np.array([0])).tolist()
    ([23], [4])
    """
    days: Instants = instants // _DAY
    time: Instants = instants % _DAY
    if name in ("hour", "minute"):
        whole: Instants = time // UNITS[name] % (24 if name == "hour" else 60)
        return whole
    if name in ("second", "millisecond", "microsecond"):
        since_minute: Instants = time % UNITS["minute"] // UNITS[name]
        return since_minute
    since_monday: Instants = (days + 3) % 7
    if name in ("dow", "isodow"):
        return np.where((name == "dow") & (since_monday == 6), 0, since_monday + 1)
    if name in ("week", "isoyear"):
        # The year of a week is that of its Thursday.
        days = days - since_monday + 3
    dates = days.astype("datetime64[D]")
    months = dates.astype("datetime64[M]")
    number: Instants = months.astype(np.int64)
    year_start: Instants = dates.astype("datetime64[Y]").astype("datetime64[D]").astype(np.int64)
    found: Instants
    match name:
        case "year" | "isoyear":
            found = number // 12 + 1970
        case "quarter":
            found = number % 12 // 3 + 1
        case "month":
            found = number % 12 + 1
        case "day":
            found = (dates - months).astype(np.int64) + 1
        case "doy":
            found = days - year_start + 1
        case _:
            found = (days - year_start) // 7 + 1
    return found


def truncated(unit: str, instants: Instants) -> Instants:
    """The start of the unit of `TRUNCATED_TO` that contains each valid instant.

    >>> truncated("hour", np.array([3_600_000_001, -1])).tolist()
    [3600000000, -3600000000]
    """
    if unit == "week":
        return instants - (instants - _MONDAY) % UNITS["week"]
    if unit in UNITS:
        return instants - instants % UNITS[unit]
    months = np.floor_divide(instants, _DAY).astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    months -= months % {"month": 1, "quarter": 3, "year": 12}[unit]
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64) * _DAY


def text_of(instant: int) -> str | None:
    """An instant as CAST to VARCHAR writes it; None outside of the years 1 to 9999.

    >>> text_of(1_500_000)
    '1970-01-01 00:00:01.5'
    """
    if not FIRST <= instant <= LAST:
        return None
    seconds, rest = divmod(instant, 1_000_000)
    moment = str(np.datetime64(seconds, "s")).replace("T", " ")
    return f"{moment}.{rest:06}".rstrip("0") if rest else moment


def _of_valid(function: Callable[..., np.ndarray]) -> Kernel:
    """A function of a name and instants, NULL outside of the years 1 to 9999."""

    def run(args: Sequence[Operand], _: Type) -> Operand:
        name, instants = str(args[0].data[0]), args[1].data
        inside = valid(instants)
        null = args[1].null
        if not inside.all():
            instants, null = np.where(inside, instants, 0), any_null(~inside, null)
        return Operand(function(name, instants), null)

    return run


def _epoch(args: Sequence[Operand], _: Type) -> Operand:
    return Operand(args[0].data.astype(np.float64) / 1e6, args[0].null)


def _to_timestamp(args: Sequence[Operand], _: Type) -> Operand:
    seconds = args[0].doubles()
    inside = (seconds >= FIRST / 1e6) & (seconds < (LAST + 1) / 1e6)
    found = np.rint(np.where(inside, seconds, 0.0) * 1e6).astype(np.int64)
    return Operand(found, args[0].null if inside.all() else any_null(~inside, args[0].null))


def of_valid_in_duckdb(operand: str, result: str) -> str:
    """The text for DuckDB of a function of a time `t` in the years that it is defined for."""
    return once(operand, f"CASE WHEN t BETWEEN {FIRST} AND {LAST} THEN {result} END")


def _part_in_duckdb(_: Call, args: Sequence[str]) -> str:
    return of_valid_in_duckdb(args[1], f"date_part({args[0]}, make_timestamp(t))")


def _start_in_duckdb(_: Call, args: Sequence[str]) -> str:
    return of_valid_in_duckdb(args[1], f"epoch_us(date_trunc({args[0]}, make_timestamp(t))::TIMESTAMP)")


def _from_seconds_in_duckdb(_: Call, args: Sequence[str]) -> str:
    inside = f"t >= {FIRST // 1_000_000} AND t < {(LAST + 1) // 1_000_000}"
    return once(f"CAST({args[0]} AS DOUBLE)", f"CASE WHEN {inside} THEN epoch_us(to_timestamp(t)) END")


def _refused_field(node: Call) -> str | None:
    known = constant(node, 0) in FIELDS
    return None if known else "date_part needs a constant field: " + ", ".join(FIELDS)


def _refused_unit(node: Call) -> str | None:
    known = constant(node, 0) in TRUNCATED_TO
    return None if known else "date_trunc needs a constant unit: " + ", ".join(TRUNCATED_TO)


_FIELDS = (
    "BIGINT: `year`, `quarter`, `month`, `week`, `day`, `doy`, `dow` (0 is Sunday), `isodow`, `isoyear`,"
    " `hour`, `minute`, `second`, `millisecond`, `microsecond` (both with the seconds). `epoch` is DOUBLE:"
    " the seconds since 1970, or of a difference of times."
)
_UNITS = (
    "The start of the `year`, `quarter`, `month`, `week` (Monday), `day`, `hour`, `minute`, `second`,"
    " `millisecond`."
)

ENTRIES = (
    Function(
        name="date_part",
        types=Signature((TEXT, (Type.TIMESTAMP,)), Type.BIGINT),
        kernel=_of_valid(field),
        duckdb=_part_in_duckdb,
        spelling=Spelling(("date_part",), (2, 2), "{name}('hour', time)"),
        reference=Reference(
            "`extract(field FROM t)`, `date_part('field', t)`",
            _FIELDS,
            "in Flink SQL, `dow` is 1 for Sunday; RisingWave has fractions of seconds",
        ),
        refused=_refused_field,
        computed=True,
        between=(0.0, 60e6),
    ),
    Function(
        name="date_trunc",
        types=Signature((TEXT, (Type.TIMESTAMP,)), Type.TIMESTAMP),
        kernel=_of_valid(truncated),
        duckdb=_start_in_duckdb,
        spelling=Spelling(("date_trunc",), (2, 2), "{name}('hour', time)"),
        reference=Reference("`date_trunc('unit', t)`", _UNITS, "Flink SQL `FLOOR(t TO HOUR)`"),
        refused=_refused_unit,
        computed=True,
        between=(FIRST, LAST),
    ),
    Function(
        name="epoch",
        types=Signature(((Type.TIMESTAMP, Type.INTERVAL),), Type.DOUBLE),
        kernel=_epoch,
        duckdb=written("(CAST({} AS DOUBLE) / CAST(1000000 AS DOUBLE))"),
        computed=True,
    ),
    Function(
        name="to_timestamp",
        types=Signature((NUMBERS,), Type.TIMESTAMP),
        kernel=_to_timestamp,
        duckdb=_from_seconds_in_duckdb,
        spelling=Spelling(("to_timestamp",), (1, 1), "{name}(seconds)"),
        reference=Reference(
            "`to_timestamp(x)`",
            "The time x seconds after 1970.",
            "Flink SQL `TO_TIMESTAMP_LTZ(x, 0)`, ksqlDB has milliseconds",
        ),
        computed=True,
        between=(FIRST, LAST),
    ),
)
