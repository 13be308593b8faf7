"""Watches: the columns that depend on earlier readings of the same key.

A query that calls `similar` or a window function such as `lag` reads a *watched stream*. That is its stream
(the *base*) with further columns, which edges compute from the readings of each key in the order of their
event times. A watch is a call of `similar`, with the patterns that it compares with the readings, or a call
of a window function: `lag(x) OVER (PARTITION BY key ORDER BY ts)` is a value over the readings of the same
key before a reading.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated
from typing import Literal as OneOf

from msgspec import Meta

from tamis.expressions.nodes import Call, Column, Expr, Literal, Type, columns, substitute
from tamis.expressions.sql_text import to_sql

# Microseconds by which the readings of a frame of ROWS are older than its own reading, at most; a stream may
# declare another limit.
HISTORY = 3_600_000_000
# The most rows before a reading that a frame may begin with: an edge keeps so many readings of each key.
MOST_ROWS = 10_000

Function = OneOf[
    "lag",
    "first_value",
    "last_value",
    "count",
    "sum",
    "avg",
    "min",
    "max",
    "var_pop",
    "var_samp",
    "stddev_pop",
    "stddev_samp",
]
# The functions that give the value of one reading in the frame; the others are aggregates.
VALUES = ("lag", "first_value", "last_value")


@dataclass(frozen=True)
class Frame:
    """The readings of a key that a window function sees: those up to `first` rows before the reading, or any
    number for None, and at least `last` rows before it (0 is the reading itself). They are at most `span`
    microseconds older than the reading.
    """

    first: int | None
    last: int
    span: int

    @property
    def most(self) -> int | None:
        """The most readings in the frame; None if only time limits it."""
        return None if self.first is None else self.first - self.last + 1


@dataclass(frozen=True)
class WindowFunction:
    """One call `function(value) OVER (…)` of the type `type`.

    `value` is over Column("", name) of the base stream, and so is `default`: the value of `lag` where the
    frame has no reading; without it, this is NULL. `count(*)` has TRUE as its value.
    """

    function: Function
    value: Expr
    frame: Frame
    type: Type
    default: Expr | None = None

    def __hash__(self) -> int:
        return hash(self.digest)

    @cached_property
    def digest(self) -> str:
        """Six hexadecimal digits that tell window functions of one stream apart."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:6]

    @property
    def column(self) -> Column:
        """The column with the values. It is NULL for late readings."""
        plain = re.sub(r"[^A-Za-z0-9_]+", "_", to_sql(self.value, qualify=False))[:100]
        return Column("", f"{self.function}_{plain}_{self.digest}", self.type)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The column."""
        return (self.column,)

    def domain(self, checks: dict[str, Expr]) -> Expr | None:
        """A condition that holds for the column where it isn't NULL, as a check of a column; None if none is
        known. `checks` has the checks of the base stream's columns by name.
        """
        check = checks.get(self.value.name) if isinstance(self.value, Column) else None
        if self.function == "count":
            return _within(self.column, 0, self.frame.most)
        if self.function in ("var_pop", "var_samp", "stddev_pop", "stddev_samp"):
            return _within(self.column, 0.0, None)
        if check is None or any(column != self.value for column in columns(check)):
            return None
        if self.function in (*VALUES, "min", "max"):
            return self._same_values(check)
        if self.function == "avg":
            # The exact mean lies between the least and the greatest value, and rounding is monotone.
            return _within(self.column, *(None if end is None else float(end) for end in _ends(check)))
        return None

    def _same_values(self, check: Expr) -> Expr | None:
        """The condition for a column whose values are those of `value`, or the default."""
        found = substitute(check, lambda _: self.column)
        if self.default is None:
            return found
        if not isinstance(self.default, Literal):
            return None
        if self.default.value is None:
            return found
        return Call("or", (found, Call("=", (self.column, self.default), Type.BOOLEAN)), Type.BOOLEAN)


def _within(column: Column, low: float | None, high: float | None) -> Expr | None:
    type_ = Type.BIGINT if column.type is Type.BIGINT else Type.DOUBLE
    tests: list[Expr] = [
        Call(op, (column, Literal(end, type_)), Type.BOOLEAN)
        for op, end in ((">=", low), ("<=", high))
        if end is not None
    ]
    if len(tests) < 2:
        return tests[0] if tests else None
    return Call("and", tuple(tests), Type.BOOLEAN)


def _ends(check: Expr) -> tuple[float | None, float | None]:
    """The least and the greatest value that pass a check of one column; None for no limit that is found."""
    low: float | None = None
    high: float | None = None
    for op, end in _limits(check):
        if op in (">", ">=", "="):
            low = end if low is None else max(low, end)
        if op in ("<", "<=", "="):
            high = end if high is None else min(high, end)
    return low, high


def _limits(check: Expr) -> Iterator[tuple[str, float]]:
    match check:
        case Call("and", parts):
            for part in parts:
                yield from _limits(part)
        case Call(op, (Column(), Literal(int() | float() as end))) if not isinstance(end, bool):
            yield op, end


# Microseconds between two consecutive readings of a window that may still match; patterns may declare
# another limit.
MAX_GAP = 3_600_000_000

# Names in the domain of `Watch.pattern_column`. By such a domain DISTINCT and GROUP BY need bounded memory; a
# longer one would only make proofs slow.
MOST_LISTED = 100

Finite = Annotated[float, Meta(ge=-1.7976931348623157e308, le=1.7976931348623157e308)]
Range = tuple[Finite | None, Finite | None]


@dataclass(frozen=True)
class NamedPattern:
    """The values of a pattern. A window with two consecutive readings that are further apart than `max_gap`,
    in microseconds, doesn't match.
    """

    name: str
    values: tuple[Finite, ...]
    max_gap: int = MAX_GAP


@dataclass(frozen=True)
class Watch:
    """One `similar(value, 'asked', epsilon, scale => …, shift => …)`.

    `value` is over Column("", name) of the base stream. `asked` is the name in the call, or ANY, and
    `patterns` are those that it stands for. `scale` and `shift` are closed ranges; None, also as an end, is
    no limit.
    """

    value: Expr
    asked: str
    patterns: tuple[NamedPattern, ...]
    epsilon: float
    scale: Range | None = None
    shift: Range | None = None

    def __hash__(self) -> int:
        # Streams and columns are keys of dictionaries, and patterns may have thousands of values.
        return hash(self.digest)

    @cached_property
    def digest(self) -> str:
        """Six hexadecimal digits that tell watches of one stream apart."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:6]

    def _column(self, what: str, type_: Type) -> Column:
        plain = re.sub(r"[^A-Za-z0-9_]", "_", self.asked)[:100]
        return Column("", f"{what}_{plain}_{self.digest}", type_)

    @property
    def distance(self) -> Column:
        """The least distance of the window that the reading ends, over all patterns; NULL if none matches."""
        return self._column("similarity", Type.DOUBLE)

    @property
    def scale_column(self) -> Column:
        """The scale that maps the window onto the nearest pattern; NULL if none matches."""
        return self._column("scale", Type.DOUBLE)

    @property
    def shift_column(self) -> Column:
        """The shift that maps the window onto the nearest pattern; NULL if none matches."""
        return self._column("shift", Type.DOUBLE)

    @property
    def pattern_column(self) -> Column:
        """The name of the nearest pattern; NULL if none matches."""
        return self._column("pattern", Type.VARCHAR)

    @property
    def columns(self) -> tuple[Column, ...]:
        """Distance, scale, shift and name, in this order."""
        return self.distance, self.scale_column, self.shift_column, self.pattern_column

    @property
    def domains(self) -> dict[Column, Expr]:
        """The conditions that hold for the distance, and for the name if there are few, where they aren't
        NULL.
        """
        found = {self.distance: self._distances}
        if len(self.patterns) <= MOST_LISTED:
            found[self.pattern_column] = self._names
        return found

    @property
    def _names(self) -> Expr:
        column = self.pattern_column
        tests = tuple(
            Call("=", (column, Literal(one.name, Type.VARCHAR)), Type.BOOLEAN) for one in self.patterns
        )
        return tests[0] if len(tests) == 1 else Call("or", tests, Type.BOOLEAN)

    @property
    def _distances(self) -> Expr:
        least, most = Literal(0.0, Type.DOUBLE), Literal(self.epsilon, Type.DOUBLE)
        parts = (
            Call(">=", (self.distance, least), Type.BOOLEAN),
            Call("<=", (self.distance, most), Type.BOOLEAN),
        )
        return Call("and", parts, Type.BOOLEAN)


AnyWatch = Watch | WindowFunction


def pattern_watches(watches: Iterable[AnyWatch]) -> tuple[Watch, ...]:
    """The watches that compare readings with patterns."""
    return tuple(one for one in watches if isinstance(one, Watch))


def window_functions(watches: Iterable[AnyWatch]) -> tuple[WindowFunction, ...]:
    """The watches that are window functions."""
    return tuple(one for one in watches if isinstance(one, WindowFunction))


def watched_name(base: str, watches: tuple[AnyWatch, ...]) -> str:
    """The name of the watched stream. It is the same for all queries with the same watches.

    >>> watched_name("vibration", ())
    'vibration_similar_e3b0c442'
    """
    digests = "".join(watch.digest for watch in watches)
    kind = "over" if window_functions(watches) else "similar"
    return f"{base[:180]}_{kind}_{hashlib.sha256(digests.encode()).hexdigest()[:8]}"
