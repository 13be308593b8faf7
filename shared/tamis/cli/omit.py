"""`tamis omit`: bracket omission on a recording."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Literal, cast

import click
import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from tamis.errors import InputError
from tamis.omission.kernel import retained_by_key
from tamis.query.units import parse_duration
from tamis.recordings import Format, read_table, write_table

_NUMBER = re.compile(r"^\d+(\.\d+)?$")

# Fractional times are counted in units of a power of ten; nanoseconds of seconds are the finest that are met.
_FINEST = 9


@click.command(
    epilog="""\b
Examples:
  tamis omit --interval 30s --sides above --value temp --key station readings.csv -o kept.csv
  tamis omit --interval 120 --time t --value power --stats power.parquet -o kept.parquet
  cat readings.ndjson | tamis omit --interval 1m --value temp --format ndjson - > kept.ndjson
"""
)
@click.argument("source", metavar="INPUT")
@click.option("-o", "--output", default="-", show_default=True, help="Where the retained rows go.")
@click.option(
    "--interval",
    required=True,
    metavar="L",
    help="The omission interval: 30s, 5m, or a number in the unit of the times.",
)
@click.option(
    "--sides",
    type=click.Choice(["both", "above", "below"]),
    default="both",
    show_default=True,
    help="above keeps maxima (for alarms on high values), below keeps minima.",
)
@click.option(
    "--time",
    "time_column",
    default="ts",
    show_default=True,
    help="Column of the event time: ISO 8601 or numbers.",
)
@click.option("--value", "value_column", default="v", show_default=True, help="Column of the value.")
@click.option("--key", "key_columns", multiple=True, help="Column of the key; several make one key together.")
@click.option("--max-delay", metavar="D", help="Longest time that a decision may wait, like --interval.")
@click.option(
    "--strict", is_flag=True, help="The rule of cai-2021 for ties: equal values don't bracket each other."
)
@click.option("--stats", is_flag=True, help="Say on standard error how many rows were retained.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "ndjson", "parquet"]),
    help="Format of standard input and output.",
)
def command(
    source: str,
    output: str,
    interval: str,
    sides: Literal["both", "above", "below"],
    time_column: str,
    value_column: str,
    key_columns: tuple[str, ...],
    max_delay: str | None,
    strict: bool,
    stats: bool,
    form: Format | None,
) -> None:
    """Retain of a recording only the rows that a threshold alert over windows up to the interval can need."""
    table = read_table(source, form)
    for name in (time_column, value_column, *key_columns):
        if name not in table.column_names:
            raise InputError(
                f"no column {name}", where=source, hint=f"it has {', '.join(table.column_names)}"
            )
    times, unit = _times(table[time_column], f"{source}, column {time_column}")
    values = _values(table[value_column], f"{source}, column {value_column}")
    span = _span(interval, unit, "--interval")
    keep = retained_by_key(
        _key_codes(table, key_columns),
        times,
        values,
        span,
        sides=sides,
        ties="strict" if strict else "fewest",
        max_delay=None if max_delay is None else _span(max_delay, unit, "--max-delay"),
    )
    order = np.argsort(times, kind="stable")
    kept = table.take(pa.array(order[keep[order]]))
    write_table(kept, output, form if output == "-" else None)
    if stats:
        share = 100 * kept.num_rows / max(1, table.num_rows)
        click.echo(f"{table.num_rows} rows, {kept.num_rows} retained ({share:.2f} %)", err=True)


def _times(column: pa.ChunkedArray, where: str) -> tuple[NDArray[np.int64], int | None]:
    """Whole ticks, and how many of them are one of the column's own units (None: ticks are microseconds)."""
    if column.null_count:
        raise InputError(
            "a time is missing", where=f"{where}, row {_first(column.is_null())}", hint="leave the row out"
        )
    if pa.types.is_integer(column.type):
        return np.asarray(column.cast(pa.int64()).to_numpy(), np.int64), 1
    if pa.types.is_floating(column.type):
        return _scaled(np.asarray(column.to_numpy(), np.float64), where)
    parsed = pd.to_datetime(column.to_pandas(), format="ISO8601", utc=True, errors="coerce")
    if parsed.isna().any():
        row = int(np.flatnonzero(parsed.isna().to_numpy())[0])
        raise InputError(
            f"{column[row].as_py()!r} is not a time",
            where=f"{where}, row {row + 1}",
            hint="write ISO 8601 or a number",
        )
    return parsed.dt.as_unit("us").astype("int64").to_numpy(), None


def _scaled(times: NDArray[np.float64], where: str) -> tuple[NDArray[np.int64], int]:
    for power in range(_FINEST + 1):
        scale = 10**power
        ticks = np.rint(times * scale)
        if np.abs(ticks).max(initial=0) < 2**53 and (ticks / scale == times).all():
            return ticks.astype(np.int64), scale
    raise InputError("times are too fine or too large", where=where, hint="write ISO 8601 or whole numbers")


def _values(column: pa.ChunkedArray, where: str) -> NDArray[np.float64]:
    if not (
        pa.types.is_integer(column.type)
        or pa.types.is_floating(column.type)
        or pa.types.is_boolean(column.type)
    ):
        raise InputError(
            f"holds {column.type}, not numbers", where=where, hint="name the column with --value"
        )
    values = column.cast(pa.float64())
    if values.null_count:
        raise InputError(
            "a value is missing", where=f"{where}, row {_first(values.is_null())}", hint="leave the row out"
        )
    return np.asarray(values.to_numpy(), np.float64)


def _first(mask: pa.ChunkedArray) -> int:
    return int(np.flatnonzero(mask.to_numpy())[0]) + 1


def _span(text: str, unit: int | None, option: str) -> int:
    if _NUMBER.match(text):
        if unit is None:
            raise InputError(
                f"{text} has no unit, but the times are dates",
                where=option,
                hint=f"write {text}s or {text}ms",
            )
        ticks = Fraction(text) * unit
        return int(ticks)  # ticks are whole: a span between two of them is the same as its whole part
    if unit is not None:
        raise InputError(
            f"{text} has a unit, but the times are numbers",
            where=option,
            hint="write a number in the unit of the times",
        )
    return parse_duration(text)


def _key_codes(table: pa.Table, names: tuple[str, ...]) -> NDArray[np.int64]:
    if not names:
        return np.zeros(table.num_rows, np.int64)
    grouped = table.select(list(names)).to_pandas().groupby(list(names), dropna=False, sort=False)
    return cast(NDArray[np.int64], grouped.ngroup().to_numpy().astype(np.int64))
