"""The join of one new tuple with the entries of the synopses, which stand for all earlier tuples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from tamis.difference_bounds import Closure
from tamis.operators.synopses.synopsis import Entry, Key, Synopsis
from tamis.plan.conjunction import Conjunction

Check = tuple[int, int, int, int, int]  # left - right <= bound, of the tuples at two occurrences


@dataclass(frozen=True)
class Equal:
    """Nodes of an occurrence whose values follow from the tuples chosen before: each is the value of another
    occurrence's node plus a distance.
    """

    nodes: tuple[int, ...]
    given: tuple[tuple[int, int, int], ...]  # occurrence, node, distance

    def values(self, chosen: Sequence[Entry]) -> Key:
        """The values that the nodes must have. A compared value is never NULL."""
        return tuple(chosen[i].values[node] + distance for i, node, distance in self.given)  # type: ignore[operator]


class Join:
    """The conditions between the streams of a query, for each order in which the occurrences are filled."""

    def __init__(self, query: Conjunction, closure: Closure) -> None:
        self.query, self._closure = query, closure
        count = len(query.streams)
        self.orders = [[i, *(j for j in range(count) if j != i)] for i in range(count)]
        self.checks = [[self._checks(order, at) for at in range(count)] for order in self.orders]
        self.equal = [[self._equal(order, at) for at in range(count)] for order in self.orders]

    def indexes(self, occurrence: int) -> set[tuple[int, ...]]:
        """The nodes by whose values entries of an occurrence are looked up."""
        found = {
            equal.nodes
            for order, own in zip(self.orders, self.equal, strict=True)
            for here, equal in zip(order, own, strict=True)
            if here == occurrence
        }
        return found - {()}

    def _checks(self, order: Sequence[int], at: int) -> list[Check]:
        """Conditions between the occurrence at one place of the order and those before it."""
        query, seen, here = self.query, set(order[:at]), order[at]
        checks = []
        for one in query.differences:
            if one.left == 0 or one.right == 0:
                continue
            left, right = query.occurrence(one.left), query.occurrence(one.right)
            if here in (left, right) and ({left, right} - {here}) <= seen and left != right:
                checks.append((left, one.left, right, one.right, one.bound))
        return checks

    def _equal(self, order: Sequence[int], at: int) -> Equal:
        query, closure = self.query, self._closure
        before = [(i, node) for i in order[:at] for node in query.own(i) if self._comparable(node)]
        found: dict[int, tuple[int, int, int]] = {}
        for node in filter(self._comparable, query.own(order[at])):
            if any(closure.fixed(node, other) for other in found):
                continue
            for i, other in before:
                if closure.fixed(node, other):
                    found[node] = (i, other, int(closure.between(node, other)))
                    break
        return Equal(tuple(found), tuple(found.values()))

    def _comparable(self, node: int) -> bool:
        """True if the node has several values and is never NULL."""
        return self._closure.values(node) > 1 and not self.query.nodes[node - 1].nullable

    def rows(self, occurrence: int, new: Entry, synopses: Sequence[Synopsis]) -> Iterator[list[Entry]]:
        """Every combination of the new tuple with entries of the others, by occurrence."""
        order, checks, equal = self.orders[occurrence], self.checks[occurrence], self.equal[occurrence]
        chosen: list[Entry] = [new] * len(order)

        def fill(at: int) -> Iterator[list[Entry]]:
            if at == len(order):
                yield chosen
                return
            here = order[at]
            for entry in self._entries(synopses[here], equal[at], chosen):
                chosen[here] = entry
                if _hold(checks[at], chosen):
                    yield from fill(at + 1)

        yield from fill(1)

    @staticmethod
    def _entries(synopsis: Synopsis, equal: Equal, chosen: Sequence[Entry]) -> Iterable[Entry]:
        if not equal.nodes:
            return synopsis.entries()
        return synopsis.with_values(equal.nodes, equal.values(chosen))


def _hold(checks: Sequence[Check], chosen: Sequence[Entry]) -> bool:
    for left, a, right, b, bound in checks:
        # Compared nodes are never NULL: tuples with NULL there were filtered out.
        if chosen[left].values[a] - chosen[right].values[b] > bound:  # type: ignore[operator]
            return False
    return True


Condition = Callable[[Sequence[Entry]], bool]
