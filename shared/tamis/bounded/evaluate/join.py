"""Joining one new tuple with what stands for the tuples before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tamis.bounded.evaluate.synopsis import Entry, Synopsis
from tamis.bounded.normal_form import Conjunction

Check = tuple[int, int, int, int, int]  # left - right <= bound, of the tuples at two occurrences


class Join:
    """The conditions between streams of a query, by the order in which its other occurrences are filled."""

    def __init__(self, query: Conjunction) -> None:
        self.query = query
        count = len(query.streams)
        self.orders = [[i, *(j for j in range(count) if j != i)] for i in range(count)]
        self.checks = [[self._checks(order, at) for at in range(count)] for order in self.orders]

    def _checks(self, order: Sequence[int], at: int) -> list[Check]:
        """Conditions between the occurrence at one place of the order and those before it."""
        query, seen, here = self.query, set(order[:at]), order[at]
        found = []
        for one in query.differences:
            if one.left == 0 or one.right == 0:
                continue
            left, right = query.occurrence(one.left), query.occurrence(one.right)
            if here in (left, right) and ({left, right} - {here}) <= seen and left != right:
                found.append((left, one.left, right, one.right, one.bound))
        return found

    def rows(self, occurrence: int, new: Entry, synopses: Sequence[Synopsis]) -> Iterator[list[Entry]]:
        """Every combination of the new tuple with entries of the others, by occurrence."""
        order, checks = self.orders[occurrence], self.checks[occurrence]
        chosen: list[Entry] = [new] * len(order)

        def fill(at: int) -> Iterator[list[Entry]]:
            if at == len(order):
                yield chosen
                return
            here = order[at]
            for entry in synopses[here].entries():
                chosen[here] = entry
                if _hold(checks[at], chosen):
                    yield from fill(at + 1)

        yield from fill(1)


def _hold(checks: Sequence[Check], chosen: Sequence[Entry]) -> bool:
    for left, a, right, b, bound in checks:
        # Nodes that are compared are never NULL: such tuples are left out before.
        if chosen[left].values[a] - chosen[right].values[b] > bound:  # type: ignore[operator]
            return False
    return True


Condition = Callable[[Sequence[Entry]], bool]
