"""Joins of tuples with rows of other sources, in columns: by equal values where the query has an equality.

An equality only finds candidates. All conditions are then evaluated as they are written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import orjson

from tamis.expressions.evaluate import evaluate, holds
from tamis.expressions.vectors import Columns, Mask, Vector
from tamis.operators.windows.table import Places
from tamis.plan import nodes
from tamis.plan.nodes import JoinStep, Scan
from tamis.recordings.typed import Recording

# The most combinations that are evaluated at a time, unless a single tuple has more.
_COMBINATIONS = 500_000


class RowIndex:
    """The rows of one source by the values of a key. Equal numbers are equal by value; NULL equals nothing.
    With an empty key, every row fits.
    """

    def __init__(self, key: Sequence[Vector], rows: int) -> None:
        values, present = _keys(key, rows)
        self._known: dict[Any, int] = {}
        codes = [self._known.setdefault(value, len(self._known)) for value in values]
        of = np.array(codes, np.int64)[present]
        self._rows = np.flatnonzero(present)[np.argsort(of, kind="stable")]
        self._counts = np.bincount(of, minlength=len(self._known))
        self._starts = np.cumsum(self._counts) - self._counts

    def matches(self, key: Sequence[Vector], size: int) -> Iterator[tuple[Places, Places]]:
        """The pairs of a tuple and a row with equal keys, some tuples at a time; `size` is the number of
        tuples.
        """
        values, present = _keys(key, size)
        codes = np.fromiter((self._known.get(value, -1) for value in values), np.int64, size)
        found = np.flatnonzero(present & (codes >= 0))
        starts, counts = self._starts[codes[found]], self._counts[codes[found]]
        passed = np.cumsum(counts)
        first = 0
        while first < len(found):
            before = int(passed[first - 1]) if first else 0
            last = max(first + 1, int(np.searchsorted(passed, before + _COMBINATIONS, side="right")))
            own = counts[first:last]
            place = np.arange(int(own.sum())) - np.repeat(np.cumsum(own) - own, own)
            yield np.repeat(found[first:last], own), self._rows[np.repeat(starts[first:last], own) + place]
            first = last


def _keys(key: Sequence[Vector], size: int) -> tuple[Sequence[Any], Mask]:
    """The values of a key, and the mask of those without NULL."""
    present = np.ones(size, np.bool_)
    for vector in key:
        if vector.null is not None:
            present &= ~vector.null
    lists = [vector.to_list() for vector in key]
    if not lists:
        return [()] * size, present
    return lists[0] if len(lists) == 1 else list(zip(*lists, strict=True)), present


def joined(
    step: JoinStep, index: RowIndex, tuples: Columns, size: int, rows: Columns
) -> Iterator[tuple[Places, Columns]]:
    """The combinations of tuples and rows of a step: for each of them the tuple, and all columns. `rows` are
    the columns of the rows in `index`.
    """
    key = [evaluate(expr, tuples, size) for expr in step.before]
    for at, row in index.matches(key, size):
        found = {name: vector.take(at) for name, vector in tuples.items()}
        found |= {name: vector.take(row) for name, vector in rows.items()}
        keep = np.ones(len(at), np.bool_)
        for condition in step.conditions:
            keep &= holds(condition, found, len(at))
        yield at[keep], chosen(found, keep)


class TableJoin:
    """Joins the tuples of a scan with tables. `relations` has the rows of these, in their order."""

    def __init__(self, scan: Scan, tables: Sequence[nodes.TableJoin], relations: Sequence[Recording]) -> None:
        self._filters = scan.filter
        self._steps = []
        self._digests = []
        for table, relation in zip(tables, relations, strict=True):
            step = table.step
            rows = {name: v for name, v in relation.under(step.alias).items() if name[1] in table.read}
            key = [evaluate(expr, rows, len(relation)) for expr in step.own]
            self._steps.append((step, RowIndex(key, len(relation)), rows))
            values = [[name[1], vector.to_list()] for name, vector in sorted(rows.items())]
            self._digests.append([step.alias, hashlib.sha256(orjson.dumps(values)).hexdigest()])

    def rows(self, tuples: Columns, size: int) -> Iterator[tuple[Places, Columns]]:
        """The combinations of tuples and rows that meet all conditions, some at a time: for each of them the
        place of its tuple, and all columns.
        """
        keep = np.ones(size, np.bool_)
        for part in self._filters:
            keep &= holds(part, tuples, size)
        yield from self._joined(0, np.flatnonzero(keep), chosen(tuples, keep))

    def _joined(self, done: int, at: Places, found: Columns) -> Iterator[tuple[Places, Columns]]:
        if not len(at):
            return
        if done == len(self._steps):
            yield at, found
            return
        step, index, rows = self._steps[done]
        for place, more in joined(step, index, found, len(at), rows):
            yield from self._joined(done + 1, at[place], more)

    def form(self) -> list[object]:
        """The tables as a part of the form of a state: their rows must be the same. Empty without tables."""
        return [self._digests] if self._digests else []


def chosen(columns_: Columns, keep: Mask) -> Columns:
    """The rows of a mask."""
    if keep.all():
        return columns_
    return {name: vector.take(keep) for name, vector in columns_.items()}
