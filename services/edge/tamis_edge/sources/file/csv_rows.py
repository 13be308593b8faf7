"""Rows of a CSV file in blocks.

A line that isn't a row becomes a dead letter; the rows after it are still read.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from tamis.expressions.nodes import Type
from tamis_edge.decode import text
from tamis_edge.sources.base import Delivery, RawColumns, payloads


def csv_blocks(path: Path, types: Mapping[str, Type], size: int) -> Iterator[Delivery]:
    """Blocks of at most `size` rows, numbered from 0. Cells have the types that `types` gives for their
    columns.

    A line with another number of cells than the header, or with bytes that aren't UTF-8, is delivered
    unchanged and separately; no decoder accepts it. An empty line is not a row; an empty cell is NULL.
    """
    # Undecodable bytes survive as surrogates, so that the line can become a dead letter unchanged.
    with path.open(newline="", encoding="utf-8-sig", errors="surrogateescape") as file:
        taken: list[str] = []
        reader = csv.reader(_noted(file, taken))
        names = next(reader, [])
        taken.clear()
        rows: list[list[str]] = []
        first = length = 0
        for cells in _rows(reader):
            line = "".join(taken)
            taken.clear()
            if cells == []:
                continue
            if cells is None or len(cells) != len(names) or not _is_text(line):
                if rows:
                    yield _block(names, rows, types, first, length)
                first, rows, length = first + len(rows), [], 0
                yield payloads(first, 0, [line.rstrip("\r\n").encode("utf-8", "surrogateescape")])
                first += 1
                continue
            rows.append(cells)
            length += len(line)
            if len(rows) == size:
                yield _block(names, rows, types, first, length)
                first, rows, length = first + size, [], 0
        if rows:
            yield _block(names, rows, types, first, length)


def _noted(lines: Iterator[str], taken: list[str]) -> Iterator[str]:
    for line in lines:
        taken.append(line)
        yield line


def _rows(reader: Iterator[list[str]]) -> Iterator[list[str] | None]:
    """The reader's rows; None for one that it can't read, such as a quote that is never closed."""
    while True:
        try:
            yield next(reader)
        except csv.Error:
            yield None
        except StopIteration:
            return


def _is_text(line: str) -> bool:
    if line.isascii():
        return True
    try:
        line.encode()
    except UnicodeEncodeError:
        return False
    return True


def _block(
    names: Sequence[str], rows: Sequence[Sequence[str]], types: Mapping[str, Type], first: int, length: int
) -> RawColumns:
    columns = {}
    for name, cells in zip(names, zip(*rows, strict=True), strict=True):
        values: list[str | None] = [cell or None for cell in cells]
        type_ = types.get(name)
        columns[name] = values if type_ is None else text.values(values, type_)
    return RawColumns(np.arange(first, first + len(rows)), np.zeros(len(rows), np.int64), columns, length)
