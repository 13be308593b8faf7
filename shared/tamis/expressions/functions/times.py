"""Functions of times: fields, starts of units, and times from seconds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

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
from tamis.expressions.instants import FIELDS, FIRST, LAST, TRUNCATED_TO, field, truncated, valid
from tamis.expressions.nodes import Call, Type


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
