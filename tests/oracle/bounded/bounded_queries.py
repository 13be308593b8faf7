"""Random queries over streams without time, as conjunctions of difference bounds."""

from __future__ import annotations

import random

from tamis.plan.conjunction import Conjunction, Difference, Node, Unequal


def query(
    r: random.Random,
    *,
    most_streams: int = 4,
    most_attributes: int = 6,
    largest_offset: int = 0,
    largest_constant: int = 3,
    self_joins: bool = False,
    unequal: float = 0,
) -> Conjunction:
    """A random query: comparisons between any attributes, and with constants, often ranges. `unequal`: how
    likely each attribute differs from a constant, or from another one of its stream.
    """
    count = r.randint(1, most_streams)
    nodes = [Node(i, f"{'stuv'[i]}.a", "a") for i in range(count)]
    while len(nodes) < most_attributes and r.random() < 0.8:
        i = r.randrange(count)
        column = "abcdefghij"[sum(n.occurrence == i for n in nodes)]
        nodes.append(Node(i, f"{'stuv'[i]}.{column}", column))
    size = len(nodes) + 1
    differences: list[Difference] = []

    def compare(left: int, right: int, offset: int) -> None:
        kind = r.randrange(8)
        if kind < 5:
            differences.append(Difference(left, right, offset - 1))
        elif kind < 7:
            differences.append(Difference(left, right, offset))
        else:
            differences.extend((Difference(left, right, offset), Difference(right, left, -offset)))

    for _ in range(r.randint(0, len(nodes) + 1)):
        left, right = r.randrange(1, size), r.randrange(1, size)
        if left != right:
            compare(left, right, r.randint(-largest_offset, largest_offset))
    for node in range(1, size):
        if r.random() < 0.3:
            differences.append(Difference(node, 0, r.randint(0, largest_constant)))
        if r.random() < 0.3:
            differences.append(Difference(0, node, r.randint(-largest_constant, 0)))
    apart = []
    for node in range(1, size):
        if r.random() < unequal:
            own = [
                k for k, n in enumerate(nodes, 1) if n.occurrence == nodes[node - 1].occurrence and k != node
            ]
            other = r.choice([0, *own])
            most = largest_offset if other else largest_constant
            apart.append(Unequal(node, other, r.randint(-most, most)))
    streams = tuple(r.choice("ST") if self_joins else "STUV"[i] for i in range(count))
    projected = tuple(k for k in range(1, size) if r.random() < 0.15)
    return Conjunction(
        streams,
        tuple("stuv"[:count]),
        tuple(nodes),
        tuple(differences),
        projected,
        r.random() < 0.6,
        tuple(apart),
    )
