"""The number of tuples that must be kept of each of two streams, by search over small domains.

The answer of a tuple of a stream is the set of pairs of a tuple of the other stream and the row that both
give. Tuples are *irredundant* if the answer of none of them lies in the union of the answers of the others.
With n such tuples any subset of them may have come, and later tuples distinguish all subsets: each tuple must
be kept.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence

from tests.oracle.bounded.representatives.random_queries import Declared, Query, Tuple

from tamis.expressions.nodes import Type

_MOST_STEPS = 3000  # of the search in one group of answers; it may then find fewer tuples than there are


def sizes(query: Query) -> tuple[int, ...]:
    """Numbers of values for columns without limits, in ascending order, so that there are few tuples."""
    wide = max(sum(not one.limited for one in query.reads(alias)) for alias, _ in query.sources)
    return ((2, 4, 8), (2, 4, 8), (2, 3, 4))[wide] if wide < 3 else (2,)


def necessary(query: Query, size: int) -> int:
    """The entries of a query over two different streams, with `size` values in each column without limits:
    the sizes of the greatest irredundant sets of both streams, and the number of rows.
    """
    (one, _), (other, _) = query.sources
    pairs = _pairs(query, domain(query, one, size), domain(query, other, size))
    rows = {row for _, _, row in pairs}
    return (
        greatest_irredundant(answers((i, (j, row)) for i, j, row in pairs))
        + greatest_irredundant(answers((j, (i, row)) for i, j, row in pairs))
        + len(rows)
    )


def domain(query: Query, alias: str, size: int) -> list[Tuple]:
    """All tuples of a source, with `size` values in each column without limits."""
    read = query.reads(alias)
    return [
        dict(zip((one.name for one in read), values, strict=True))
        for values in itertools.product(*(_values(one, size) for one in read))
    ]


def _values(one: Declared, size: int) -> Sequence[object]:
    if one.limited:
        return one.values
    if one.type is Type.VARCHAR:
        return "abcdefgh"[:size]
    return range(1, size + 1) if ">= 1" in one.declared else range(-(size // 2), size - size // 2)


def _pairs(query: Query, ones: list[Tuple], others: list[Tuple]) -> list[tuple[int, int, Hashable]]:
    """Numbers of the tuples that join, with their row."""
    aliases = [alias for alias, _ in query.sources]
    conditions = [one.meaning() for one in query.conditions]
    shown = [one.meaning() for one in query.shown]
    found: list[tuple[int, int, Hashable]] = []
    for (i, one), (j, other) in itertools.product(enumerate(ones), enumerate(others)):
        values = dict(zip(aliases, (one, other), strict=True))
        if all(is_true(values) is True for is_true in conditions):
            found.append((i, j, tuple(value(values) for value in shown)))
    return found


def answers(given: Iterable[tuple[int, Hashable]]) -> list[int]:
    """The answers of the tuples as sets of bits, each once."""
    numbers: dict[Hashable, int] = {}
    found: defaultdict[int, int] = defaultdict(int)
    for place, one in given:
        found[place] |= 1 << numbers.setdefault(one, len(numbers))
    return sorted(set(found.values()), key=int.bit_count)


def greatest_irredundant(answers: Sequence[int]) -> int:
    """The size of the greatest irredundant set of answers; at most less, if the search takes too long."""
    return sum(_Search(group).greatest() for group in _groups(answers))


def _groups(answers: Iterable[int]) -> list[list[int]]:
    """Answers that have no element in common with those of other groups."""
    groups: list[tuple[int, list[int]]] = []
    for one in answers:
        touched = [group for group in groups if group[0] & one]
        groups = [group for group in groups if not group[0] & one]
        united = one
        for union, _ in touched:
            united |= union
        groups.append((united, [*(some for _, group in touched for some in group), one]))
    return [group for _, group in groups]


class _Search:
    """Search for the greatest irredundant set by adding one answer after the other."""

    def __init__(self, answers: list[int]) -> None:
        self.answers = answers
        self.steps = self.best = 0

    def greatest(self) -> int:
        self._extend([], 0, 0, 0)
        return self.best

    def _extend(self, chosen: list[int], start: int, once: int, several: int) -> None:
        """`once`, `several`: the elements that one, and that several of the chosen answers have."""
        self.best = max(self.best, len(chosen))
        for at in range(start, len(self.answers)):
            self.steps += 1
            if len(chosen) + len(self.answers) - at <= self.best or self.steps > _MOST_STEPS:
                return
            one = self.answers[at]
            more = several | (once & one)
            private = (once | one) & ~more
            if all(answer & private for answer in (*chosen, one)):
                self._extend([*chosen, one], at + 1, private, more)
