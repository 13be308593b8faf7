"""Numbers of an example as values of SQL.

A VARCHAR has the number of a constant, or a number that no constant has. A DOUBLE that a query fixes has its
place in the order of all DOUBLEs. Of all other DOUBLEs an example only says the order, and a query says the
interval in which they lie.
"""

from __future__ import annotations

import itertools
import random
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tamis.bounded.timeless.witness import Tuple
from tamis.difference_bounds import Closure
from tamis.expressions.double_order import GREATEST, double_at, number_of
from tamis.expressions.nodes import Call, Expr, Literal, Type
from tamis.expressions.vectors import Value
from tamis.plan.conjunction import EXTREME_STREAM, NULL, Conjunction

Named = tuple[str, Tuple]
SqlTuple = tuple[str, Mapping[str, Value]]

# So many choices of values for all columns together are tried.
MOST = 4000
_YEAR_2020 = 1_577_836_800_000_000
_LARGEST_INT = 2**31 - 1


class SqlValues:
    """The values of one query's examples. `types`: of the columns, by stream and name. `codes`: the numbers
    of constant texts.
    """

    def __init__(
        self,
        query: Conjunction,
        closure: Closure,
        types: Mapping[tuple[str, str], Type],
        codes: Mapping[str, int],
    ) -> None:
        self._query, self._types = query, types
        self._texts = {number: text for text, number in codes.items()}
        self._intervals = {
            (query.streams[node.occurrence], node.column): _interval(query, at)
            for at, node in enumerate(query.nodes, 1)
            if node.kind == "dense" and closure.values(at) > 1
        }

    def tuples(self, found: Iterable[Named]) -> list[SqlTuple]:
        """The tuples of an example with values of SQL, without those of the artificial stream of extremes."""
        named = [one for one in found if one[0] != EXTREME_STREAM]
        places: dict[tuple[int, int], set[int]] = {}
        for stream, one in named:
            for column, number in one.items():
                interval = self._intervals.get((stream, column))
                if interval is not None:
                    places.setdefault(interval, set()).add(number)
        ordered = {interval: sorted(numbers) for interval, numbers in places.items()}
        return [
            (stream, {column: self._value(stream, column, n, ordered) for column, n in one.items()})
            for stream, one in named
        ]

    def _value(
        self, stream: str, column: str, number: int, ordered: Mapping[tuple[int, int], list[int]]
    ) -> Value:
        if number == NULL:
            return None
        match self._types[stream, column]:
            case Type.VARCHAR:
                return self._texts.get(number, f"text{number}")
            case Type.BOOLEAN:
                return bool(number)
            case Type.DOUBLE:
                interval = self._intervals.get((stream, column))
                if interval is None:
                    return double_at(number)
                own = ordered[interval]
                low, high = interval
                return double_at(low + (high - low) * (bisect_left(own, number) + 1) // (len(own) + 1))
            case _:
                return number


def number_of_value(value: Value, type_: Type, codes: dict[str, int]) -> int:
    """The number that stands for a value in a query; a new text gets a new number in `codes`."""
    if value is None:
        return NULL
    if isinstance(value, str):
        return codes.setdefault(value, max(codes.values(), default=-1) + 1)
    return number_of(float(value)) if type_ is Type.DOUBLE else int(value)


def _interval(query: Conjunction, node: int) -> tuple[int, int]:
    """The least and the greatest DOUBLE of a node, by their numbers."""
    limits = {one.left: one.bound for one in query.ranges if node in (one.left, one.right)}
    # Very large values would overflow in arithmetic.
    widest = number_of(1e9)
    low, high = -limits.get(0, GREATEST), limits.get(node, GREATEST)
    return (low if 0 in limits else min(-widest, high)), (high if node in limits else max(widest, low))


def candidates(type_: Type, exprs: Iterable[Expr]) -> list[Value]:
    """Values of a type that decide comparisons with the constants of `exprs`."""
    constants = dict.fromkeys(one for expr in exprs for one in _constants(expr))
    numbers = [float(one.value) for one in constants if _numeric(one) and one.type.numeric]  # type: ignore[arg-type]
    found: list[Value]
    match type_:
        case Type.BOOLEAN:
            return [True, False]
        case Type.VARCHAR:
            found = [one.value for one in constants if isinstance(one.value, str)]
            like = [re.sub("[%_]", "a", one) for one in found if isinstance(one, str)]
            return [*dict.fromkeys([*found, *like, *(f"{one}longer" for one in like), "other", ""])]
        case Type.TIMESTAMP:
            found = [
                int(one.value or 0) + more
                for one in constants
                if one.type is Type.TIMESTAMP
                for more in (0, 1, -1)
            ]
            return list(dict.fromkeys([*found, _YEAR_2020, 0]))
        case Type.DOUBLE:
            near = [value + more for value in numbers for more in (0.0, 0.5, -0.5)]
            return list(dict.fromkeys([*near, *(-value for value in numbers), 0.0, 1.0, -1.0]))
        case _:
            near = [value + more for value in numbers for more in (0, 1, -1)]
            wanted = [*near, *(-value for value in numbers), 0, 1, -1, 2]
            return list(dict.fromkeys(int(one) for one in wanted if abs(one) < _LARGEST_INT))


def choices(values: Mapping[tuple[str, str], Sequence[Value]]) -> Iterator[tuple[Value, ...]]:
    """Choices of a value for each column: all if they are few, otherwise the first and some random ones."""
    every = itertools.product(*values.values())
    yield from itertools.islice(every, MOST // 2)
    if next(every, None) is not None:
        r = random.Random(0)
        for _ in range(MOST // 2):
            yield tuple(r.choice(own) for own in values.values())


def _constants(expr: Expr) -> Iterator[Literal]:
    if isinstance(expr, Literal):
        if expr.value is not None:
            yield expr
    elif isinstance(expr, Call):
        for one in expr.args:
            yield from _constants(one)


def _numeric(one: Literal) -> bool:
    return isinstance(one.value, int | float) and not isinstance(one.value, bool)
