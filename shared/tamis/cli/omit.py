"""`tamis omit`: bracket omission of a recording."""

from __future__ import annotations

import re
from fractions import Fraction
from math import floor
from typing import Literal

import click
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tamis.errors import InputError
from tamis.expressions.nodes import Type
from tamis.omission.batch import retained_by_key
from tamis.query.units import parse_duration
from tamis.recordings.files import Format, format_of, read_rows, write_rows
from tamis.recordings.implausible_times import implausibility
from tamis.recordings.rows import Rows
from tamis.recordings.values import values_of

_NUMBER = re.compile(r"^-?\d{1,30}(\.\d{1,30})?$", re.ASCII)

# Fractional times become whole numbers by a power of ten. No clock is finer than nanoseconds.
_FINEST = 9


@click.command(
    epilog="""\b
Examples:
  tamis omit --interval 30s --sides above --value temp --key station demo/first/air.csv -o kept.csv
  tamis omit --interval 12 --time reading --value temperature --key mote_id --stats \\
    demo/data/suthaharan-single-hop.csv -o kept.parquet
  cat demo/first/surface.csv | tamis omit --interval 1m --value temp --key station --format csv - > kept.csv
"""
)
@click.argument("source", metavar="INPUT")
@click.option("-o", "--output", default="-", show_default=True, help="The file for the retained rows.")
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
    help="above keeps maxima, for alarms on high values; below keeps minima.",
)
@click.option(
    "--time",
    "time_column",
    default="ts",
    show_default=True,
    help="Column of the event time, in ISO 8601 or as numbers.",
)
@click.option("--value", "value_column", default="v", show_default=True, help="Column of the value.")
@click.option("--key", "key_columns", multiple=True, help="Column of the key; several columns form one key.")
@click.option("--max-delay", metavar="D", help="Maximum delay of a decision, in the form of --interval.")
@click.option("--strict", is_flag=True, help="Ties as in cai-2021: equal values don't bracket each other.")
@click.option("--stats", is_flag=True, help="Print the number of retained rows to standard error.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "ndjson", "parquet"]),
    help="Format of standard input and output, and of files without a known extension.",
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
    """Keep only the rows of a recording that a threshold alert over windows up to the interval can need.

    The rows are written unchanged, in the order of time. Standard output has the format of the input, unless
    --format is given.
    """
    output_form = format_of(output, form or format_of(source) if output == "-" else form)
    rows = read_rows(source, form)
    times, unit = _times(rows, time_column)
    if not len(rows):  # no time shows the unit
        unit = 1 if _NUMBER.match(interval) else None
    if unit is None and (said := implausibility(times, None)):
        click.echo(f"warning: {rows.where}: {said}", err=True)
    span = _span(interval, unit, "--interval")
    delay = None if max_delay is None else _span(max_delay, unit, "--max-delay")
    values = _numbers(rows, value_column, "value")
    keep = retained_by_key(
        _key_codes(rows, key_columns),
        times,
        values,
        span,
        sides=sides,
        ties="strict" if strict else "fewest",
        max_delay=delay,
    )
    order = np.argsort(times, kind="stable")
    kept = order[keep[order]]
    write_rows(rows.take(kept), output, output_form)
    if stats:
        share = 100 * len(kept) / max(1, len(rows))
        click.echo(f"{len(rows)} rows, {len(kept)} retained ({share:.2f} %)", err=True)


def _times(rows: Rows, name: str) -> tuple[NDArray[np.int64], int | None]:
    """The times as whole numbers, and the number of these units in one unit of the column. The second is None
    if the times are dates; they are then in microseconds.
    """
    cells = rows.column(name)
    if cells.null_count:
        raise InputError(
            "a time is missing",
            where=rows.place(name, _first(cells.is_null().to_numpy())),
            hint="leave the row out",
        )
    kind = cells.type
    if pa.types.is_integer(kind) or (rows.textual and _converts(cells, pa.int64())):
        return np.asarray(cells.cast(pa.int64()).to_numpy(), np.int64), 1
    if not pa.types.is_timestamp(kind) and _converts(cells, pa.float64(), rows.textual):
        return _scaled(_numbers(rows, name, "time"), f"{rows.where}, column {name}")
    found = values_of(rows, name, Type.TIMESTAMP)
    if found.unusable.any():
        raise InputError(
            "outside of the range of event times",
            where=rows.place(name, _first(found.unusable)),
            hint="correct it or leave the row out",
        )
    return np.asarray(found.vector.data, np.int64), None


def _scaled(times: NDArray[np.float64], where: str) -> tuple[NDArray[np.int64], int]:
    for power in range(_FINEST + 1):
        scale = 10**power
        ticks = np.rint(times * scale)
        if np.abs(ticks).max(initial=0) < 2**53 and (ticks / scale == times).all():
            return ticks.astype(np.int64), scale
    raise InputError("times are too fine or too large", where=where, hint="write ISO 8601 or whole numbers")


def _numbers(rows: Rows, name: str, what: str) -> NDArray[np.float64]:
    found = values_of(rows, name, Type.DOUBLE)
    missing = found.unusable if found.vector.null is None else found.unusable | found.vector.null
    if missing.any():
        row = _first(missing)
        given = rows.column(name)[row].as_py()
        raise InputError(
            f"a {what} is missing" if given is None else f"{given!r} can't be compared",
            where=rows.place(name, row),
            hint="leave the row out",
        )
    return np.asarray(found.vector.data, np.float64)


def _converts(cells: pa.ChunkedArray, target: pa.DataType, from_text: bool = True) -> bool:
    if pa.types.is_string(cells.type) and not from_text:
        return False
    try:
        cells.cast(target)
    except pa.ArrowException:
        return False
    return True


def _first(mask: NDArray[np.bool_]) -> int:
    return int(np.flatnonzero(mask)[0])


def _span(text: str, unit: int | None, option: str) -> int:
    if unit is None:
        if _NUMBER.match(text):
            raise InputError(
                f"{text} has no unit, but the times are dates",
                where=option,
                hint=f"write {text}s or {text}ms",
            )
        ticks = parse_duration(text)
    elif _NUMBER.match(text):
        ticks = floor(Fraction(text) * unit)  # differences of whole numbers are whole
    else:
        raise InputError(
            f"{text!r} is no number, but the times are numbers",
            where=option,
            hint="write a number in the unit of the times",
        )
    if ticks < 0:
        raise InputError(f"{text} is negative", where=option, hint="write 0 or more")
    return ticks


def _key_codes(rows: Rows, names: tuple[str, ...]) -> NDArray[np.int64]:
    """Codes of the keys: equal keys have equal codes. If all keys are numbers, they are compared by value."""
    if not names:
        return np.zeros(len(rows), np.int64)
    columns = []
    for name in names:
        cells = rows.column(name)
        number = rows.textual and _converts(cells, pa.float64())
        columns.append((cells.cast(pa.float64()) if number else cells).to_pylist())
    codes: dict[tuple[object, ...], int] = {}
    keys = zip(*columns, strict=True)
    return np.array([codes.setdefault(key, len(codes)) for key in keys], np.int64)
