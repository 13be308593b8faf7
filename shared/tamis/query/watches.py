"""Watches: the columns that depend on earlier readings of the same key.

A query that calls `similar` or a window function such as `lag` reads a *watched stream*. That is its stream
(the *base*) with further columns, which edges compute from the readings of each key in the order of their
event times. A watch is a call of `similar`, with the patterns that it compares with the readings, or a call
of a window function (`tamis.query.window_functions`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

from msgspec import Meta

from tamis.expressions.nodes import Call, Column, Expr, Literal, Type
from tamis.query.window_functions import WindowFunction

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
