"""Values to try for the columns of a condition: those that it names, their neighbours, and a few more."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tamis.expressions.nodes import Call, Expr, Literal, Type
from tamis.expressions.vectors import Value

# So many choices of values for all columns together are tried.
MOST = 4000
_YEAR_2020 = 1_577_836_800_000_000
_LARGEST_INT = 2**31 - 1


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
