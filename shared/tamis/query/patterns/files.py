"""Reader of patterns from CSV files: a column of values, at a fixed step or with times."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice, pairwise
from math import isfinite
from pathlib import Path

import numpy as np

from tamis.declarations.file_access import FileAccess
from tamis.declarations.units import parse_timestamp
from tamis.declarations.watches import NamedPattern
from tamis.durations import seconds
from tamis.errors import InputError
from tamis.query.patterns.watch_text import MOST_CHARACTERS
from tamis.wording.file_text import SAMPLE, encoding_problem, number_hint, separator_hint
from tamis.wording.names import counted, suggest


def median_step(times: Sequence[int]) -> int:
    """The median distance of increasing times, rounded down, at least 1.

    >>> median_step([0, 10, 20, 35])
    10
    """
    distances = sorted(later - earlier for earlier, later in pairwise(times))
    middle = len(distances) // 2
    return max(1, (distances[middle] + distances[~middle]) // 2)


def resampled(times: Sequence[int], values: Sequence[float], step: int) -> tuple[float, ...]:
    """The values at the first time and every `step` after it, up to the last time. Times increase; between
    two of them, values are interpolated linearly.

    >>> resampled([0, 10, 30], [1.0, 2.0, 4.0], 10)
    (1.0, 2.0, 3.0, 4.0)
    """
    # Counted from the first time: such differences are exact as doubles.
    offsets = np.array([time - times[0] for time in times], dtype=np.float64)
    wanted = np.arange(0, times[-1] - times[0] + 1, step, dtype=np.float64)
    return tuple(np.interp(wanted, offsets, np.array(values, dtype=np.float64)).tolist())


# Longer patterns take too much memory for each key; `docs/similarity.md` names this length.
MOST_VALUES = 100_000
MOST_FILES = 10_000
MOST_ROWS = 1_000_000
LONGEST_STEM = 100
# Seconds since 1970 that fit into 64 bits as microseconds.
_LATEST = 9e12


@dataclass(frozen=True)
class FileOptions:
    """Options of CREATE PATTERN … FROM: the columns of values and times, and durations in microseconds."""

    value: str | None = None
    time: str | None = None
    step: int | None = None
    max_gap: int = 0


def read_patterns(
    name: str, path: str, options: FileOptions, access: FileAccess
) -> tuple[tuple[NamedPattern, ...], tuple[str, ...]]:
    """The pattern of a file, or those of the CSV files of a folder; and notices on those that were resampled.

    Raises InputError with the file and row of a mistake, and RefusedError for a file that may not be read.
    """
    where = f"pattern {name}, path {path}"
    folder = access.folder(path, where)
    if folder is None:
        found, notice = _read(name, path, access.resolve(path, where), options)
        return (found,), (notice,) if notice else ()
    files = sorted(one for one in Path(folder).iterdir() if one.suffix.lower() == ".csv")
    if not files:
        raise InputError(
            "the folder has no CSV file", where=where, hint="name the files so that they end in .csv"
        )
    if len(files) > MOST_FILES:
        raise InputError(f"the folder has more than {MOST_FILES} CSV files", where=where, hint="split it")
    total = 0
    patterns, notices = [], []
    for file in files:
        shown = f"{path.rstrip('/')}/{file.name}"
        if len(file.stem) > LONGEST_STEM or not file.stem.isprintable():
            hint = f"use 1 to {LONGEST_STEM} printable characters before .csv"
            raise InputError("the name of the file can't be the name of a pattern", where=shown, hint=hint)
        found, notice = _read(f"{name}/{file.stem}", shown, access.resolve(str(file), where), options)
        patterns.append(found)
        notices += [notice] if notice else []
        total += len(found.values)
        if total > MOST_CHARACTERS // 3:  # a value takes at least a digit, a comma and a blank
            hint = "put some of the files into another folder"
            raise InputError("the files have too many values for one statement", where=where, hint=hint)
    return tuple(patterns), tuple(notices)


def _read(name: str, shown: str, path: str, options: FileOptions) -> tuple[NamedPattern, str | None]:
    """The pattern of one file, which messages call `shown`, and a notice if it was resampled."""
    header, rows = _table(shown, path)
    value, time = _chosen(shown, header, options)
    values = [_value(f"{shown}, row {row.number}", row.cells[value]) for row in rows]
    if time is None:
        _check_length(shown, len(values))
        return NamedPattern(name, tuple(values), options.max_gap), None
    times = _times(shown, rows, time, options.max_gap)
    step = options.step or (median_step(times) if len(times) > 1 else 1)
    _check_length(shown, (times[-1] - times[0]) // step + 1 if times else 0)
    found = resampled(times, values, step)
    what = f"{len(found)} values, one every {seconds(step)}, by linear interpolation between {len(rows)} rows"
    return NamedPattern(name, found, options.max_gap), f"{shown}: {what}"


@dataclass(frozen=True)
class _Row:
    """The cells of a row; `number` is its number among the lines of the file, from 1."""

    number: int
    cells: Sequence[str]


def _table(shown: str, path: str) -> tuple[Sequence[str] | None, list[_Row]]:
    """The header, None if the file has none, and the rows. All have the same number of cells."""
    try:
        with open(path, "rb") as beginning:
            problem = encoding_problem(beginning.read(SAMPLE), cut=True)
        if problem is not None:
            raise InputError(problem[0], where=shown, hint=problem[1])
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            # An empty line is a NULL of a file with one column, except after the last row.
            rows = [
                _Row(reader.line_num, [cell.strip() for cell in row] or [""])
                for row in islice(reader, MOST_ROWS + 1)
            ]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"the file can't be read: {error}", where=shown, hint="name a CSV file") from error
    if len(rows) > MOST_ROWS:
        hint = "write only the rows of the pattern into the file"
        raise InputError(f"the file has more than {MOST_ROWS} rows", where=shown, hint=hint)
    while rows and rows[-1].cells == [""]:
        rows.pop()
    if not rows:
        raise InputError("the file has no rows", where=shown, hint="write one value in each row")
    separated = separator_hint(rows[0].cells)
    if separated is not None:
        raise InputError(f"the file has the one column {rows[0].cells[0]:.80}", where=shown, hint=separated)
    width = len(rows[0].cells)
    other = next((row for row in rows if len(row.cells) != width), None)
    if other is not None:
        what = f"the row has {counted(len(other.cells), 'cell')}, and the first one {width}"
        raise InputError(
            what, where=f"{shown}, row {other.number}", hint="write the same columns in each row"
        )
    first = rows[0].cells
    if width == 1 and (first[0] == "" or _number(first[0]) is not None):
        return None, rows
    return first, rows[1:]


def _chosen(shown: str, header: Sequence[str] | None, options: FileOptions) -> tuple[int, int | None]:
    """The columns of the values and of the times."""
    if header is None:
        asked = options.time or options.value
        if asked is not None:
            hint = "write a header into the file, or leave the option out"
            raise InputError(f"the file has no header with the column '{asked}'", where=shown, hint=hint)
        return 0, None
    time = None if options.time is None else _column(shown, header, options.time, "time")
    if options.value is not None:
        value = _column(shown, header, options.value, "value")
        if value == time:
            what = f"the column '{options.value}' has the times"
            raise InputError(what, where=shown, hint="name another column as value")
        return value, time
    rest = [at for at in range(len(header)) if at != time]
    if len(rest) != 1:
        if all(_number(cell) is not None for cell in header):
            hint = "write a header with names; if the comma is a decimal comma, write a decimal point"
            what = f"the first row has {len(header)} numbers and no names of columns"
            raise InputError(what, where=shown, hint=hint)
        what = f"the file has the columns {', '.join(header)}"
        hint = f"say which one has the values: WITH (value = '{header[rest[0]] if rest else header[0]}')"
        raise InputError(what, where=shown, hint=hint)
    return rest[0], time


def _column(shown: str, header: Sequence[str], name: str, option: str) -> int:
    if header.count(name) != 1:
        what = "no column" if name not in header else "several columns"
        raise InputError(f"{option}: the file has {what} '{name}'", where=shown, hint=suggest(name, header))
    return header.index(name)


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _value(where: str, cell: str) -> float:
    found = _number(cell)
    if cell == "" or cell.upper() == "NULL":
        hint = "a pattern has no gaps: fill the value in, or leave out what lies before or behind the gap"
        raise InputError("the value is missing", where=where, hint=hint)
    if found is None:
        hint = number_hint(cell) or "write a number such as 0.5 or 1e3"
        raise InputError(f"'{cell[:40]}' isn't a number", where=where, hint=hint)
    if not isfinite(found):
        raise InputError(f"the value is {cell}", where=where, hint="a pattern has finite values")
    return found


def _times(shown: str, rows: Sequence[_Row], column: int, max_gap: int) -> list[int]:
    """The times of the rows in microseconds, which increase without gaps."""
    times: list[int] = []
    for row in rows:
        where = f"{shown}, row {row.number}"
        time = _time(where, row.cells[column])
        if times and time <= times[-1]:
            what = f"the time {row.cells[column]} isn't later than that of the row before"
            raise InputError(what, where=where, hint="sort the rows by time, with one row for each time")
        if times and time - times[-1] > max_gap:
            what = f"a gap of {seconds(time - times[-1])} lies before this row"
            hint = "leave out what lies before or behind the gap, or declare a longer max_gap"
            raise InputError(what, where=where, hint=hint)
        times.append(time)
    return times


def _time(where: str, cell: str) -> int:
    """A time of ISO 8601, or a number of seconds, in microseconds."""
    number = _number(cell)
    if number is not None and abs(number) < _LATEST:
        return round(Fraction(cell) * 1_000_000)
    try:
        return parse_timestamp(cell)
    except InputError as error:
        hint = "write a time of ISO 8601, or a number of seconds"
        raise InputError(f"'{cell[:40]}' isn't a time", where=where, hint=hint) from error


def _check_length(shown: str, count: int) -> None:
    if count > MOST_VALUES:
        hint = "take a longer step, or a shorter part of the recording"
        raise InputError(
            f"a pattern of {count} values; at most {MOST_VALUES} are allowed", where=shown, hint=hint
        )
