"""Closure: all bounds on differences of whole numbers that follow from conditions (arasu-2004, section 4).

For each pair of nodes i and j, the matrix has the least c for which `i - j <= c` follows from the conditions,
or infinity. The matrix is exact: for each of its numbers there is a solution of the conditions in which `i -
j` is equal to this number.

The memory of queries (`tamis.bounded`), the event times of a join (`tamis.analysis.topology`) and the
constraints of order (`tamis.constraints.theories.difference_bounds`) are decided by it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

Bound = int | float  # a whole number, or infinity for no bound


class Closure:
    """A closed matrix of bounds. `add` keeps it closed, in time square in the number of nodes; `close` closes
    any matrix, in cubic time. Numbers may have any size.
    """

    __slots__ = ("rows",)

    def __init__(self, rows: list[list[Bound]]) -> None:
        self.rows = rows

    @classmethod
    def free(cls, size: int) -> Closure:
        """A matrix without conditions."""
        return cls([[0 if i == j else math.inf for j in range(size)] for i in range(size)])

    def copy(self) -> Closure:
        """An independent copy."""
        return Closure([row[:] for row in self.rows])

    def between(self, left: int, right: int) -> Bound:
        """The least c with `left - right <= c`."""
        return self.rows[left][right]

    def upper(self, node: int) -> Bound:
        """The largest value that a node can have."""
        return self.rows[node][0]

    def lower(self, node: int) -> Bound:
        """The least value that a node can have."""
        return -self.rows[0][node]

    def values(self, node: int) -> Bound:
        """The number of values that a node can have."""
        return self.upper(node) - self.lower(node) + 1

    def bounded(self, node: int) -> bool:
        """True if the node has a limited number of values (arasu-2004, definition 4.5)."""
        return math.isfinite(self.values(node))

    def finite(self, left: int, right: int) -> bool:
        """True if `left - right` is bounded from above."""
        return self.rows[left][right] != math.inf

    def fixed(self, left: int, right: int) -> bool:
        """True if the nodes always differ by the same number, and so are in one class."""
        return self.rows[left][right] == -self.rows[right][left]

    def add(self, left: int, right: int, bound: Bound) -> bool:
        """Add `left - right <= bound`. Returns False for a contradiction; the matrix must then not be used
        any more.
        """
        rows = self.rows
        if bound >= rows[left][right]:
            return True
        if rows[right][left] < -bound:
            return False
        # No infinity is added: a float that is added to a number of hundreds of digits overflows.
        steps = [(j, bound + rest) for j, rest in enumerate(rows[right]) if rest != math.inf]
        for row in rows:
            head = row[left]
            if head == math.inf:
                continue
            for j, step in steps:
                row[j] = min(row[j], head + step)
        return True

    def close(self) -> bool:
        """Tighten all bounds by the shortest paths between all pairs of nodes (Floyd and Warshall). Returns
        False for a contradiction; then there is a number for the pairs that paths connect, and it says
        nothing.
        """
        for k, through in enumerate(self.rows):
            steps = [(j, rest) for j, rest in enumerate(through) if rest != math.inf]
            for row in self.rows:
                head = row[k]
                if head == math.inf:
                    continue
                for j, rest in steps:
                    row[j] = min(row[j], head + rest)
        return all(row[i] >= 0 for i, row in enumerate(self.rows))

    def fix(self, node: int, value: int) -> bool:
        """Add `node = value`."""
        return self.add(node, 0, value) and self.add(0, node, -value)

    def solution(self, near: int = 0, step: int = 0) -> Mapping[int, int]:
        """A value for every node such that all conditions hold. The value of a node is as near to
        `near + step * node` as the values before it allow.
        """
        work = self.copy()
        found: dict[int, int] = {}
        for node in range(1, len(self.rows)):
            value = int(max(work.lower(node), min(near + step * node, work.upper(node))))
            work.fix(node, value)
            found[node] = value
        return found
