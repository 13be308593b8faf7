"""Counts, sums and extremes of one column: of a bucket of tuples, and of a group of rows.

Sums are exact, of DOUBLE too: as fractions, rounded once at the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tamis.evaluation.standing.timeless.state import number_of, number_text
from tamis.query.model import Aggregate

_BIGGEST = 1 << 63
Number = int | Fraction


@dataclass
class Tally:
    """Of the values of a column that aren't NULL: how many, the sum of numbers, the least, the greatest."""

    count: int = 0
    total: Number = 0
    least: Any = None
    greatest: Any = None

    @classmethod
    def of(cls, value: Any) -> Tally:
        """Of one value."""
        if value is None:
            return cls()
        number = Fraction(value) if isinstance(value, float) else value if isinstance(value, int) else 0
        return cls(1, number, value, value)

    def add(self, other: Tally, times: int = 1) -> None:
        """Take in the values of another, each as often as said."""
        if not other.count:
            return
        if not self.count or other.least < self.least:
            self.least = other.least
        if not self.count or other.greatest > self.greatest:
            self.greatest = other.greatest
        self.count += other.count * times
        self.total += other.total * times

    def dumped(self) -> list[Any]:
        """As JSON."""
        return [number_text(self.count), number_text(self.total), self.least, self.greatest]

    @classmethod
    def restored(cls, dumped: list[Any]) -> Tally:
        """From JSON."""
        count, total, least, greatest = dumped
        return cls(int(count, 16), number_of(total), least, greatest)


@dataclass
class Group:
    """What is kept of one group: the rows, a tally for each aggregated column, the values where all are
    needed, and the row that it has in the result.
    """

    rows: int = 0
    tallies: dict[tuple[str, str], Tally] = field(default_factory=dict)
    values: dict[tuple[str, str], Counter[Any]] = field(default_factory=dict)
    shown: tuple[object, ...] | None = None

    def dumped(self, columns: Sequence[tuple[str, str]]) -> list[Any]:
        """As JSON, its tallies and values by the columns' places."""
        tallies = [[columns.index(one), tally.dumped()] for one, tally in self.tallies.items()]
        values = [
            [columns.index(one), [[value, number_text(count)] for value, count in found.items()]]
            for one, found in self.values.items()
        ]
        return [number_text(self.rows), tallies, values, self.shown]

    @classmethod
    def restored(cls, dumped: list[Any], columns: Sequence[tuple[str, str]]) -> Group:
        """From JSON."""
        rows, tallies, values, shown = dumped
        return cls(
            int(rows, 16),
            {columns[place]: Tally.restored(one) for place, one in tallies},
            {
                columns[place]: Counter({value: int(count, 16) for value, count in found})
                for place, found in values
            },
            None if shown is None else tuple(shown),
        )

    def value(self, aggregate: Aggregate) -> Any:
        """An aggregate's value now; None is NULL."""
        if aggregate.column is None:
            return _whole(self.rows)
        column = (aggregate.column.alias, aggregate.column.name)
        if aggregate.distinct:
            return len(self.values.get(column, ()))
        if aggregate.function == "median":
            return _median(self.values.get(column, Counter()))
        tally = self.tallies.get(column, Tally())
        if aggregate.function == "count":
            return _whole(tally.count)
        if not tally.count:
            return None
        match aggregate.function:
            case "sum":
                total = tally.total
                return _rounded(total) if isinstance(total, Fraction) else _whole(total)
            case "avg":
                return _rounded(Fraction(tally.total) / tally.count)
            case "min":
                return tally.least
            case _:
                return tally.greatest


def _whole(value: int) -> int | None:
    return value if -_BIGGEST <= value < _BIGGEST else None


def _rounded(value: Fraction) -> float | None:
    try:
        return float(value)
    except OverflowError:
        return None


def _median(values: Counter[Any]) -> float | None:
    count = sum(values.values())
    if not count:
        return None
    places = ((count - 1) // 2, count // 2)
    middle: list[Fraction] = []
    passed = 0
    for value in sorted(values):
        passed += values[value]
        while len(middle) < 2 and passed > places[len(middle)]:
            middle.append(Fraction(value))
    return _rounded(sum(middle, Fraction(0)) / 2)
