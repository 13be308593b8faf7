"""Joins of conjunctions as SQL for people: comparisons of columns of two occurrences by their difference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tamis.expressions.sql_text import identifier
from tamis.plan.conjunction import Conjunction, Node
from tamis.planning.plan_trees.words import distance

_NUMBER = 0  # the node that stands for the number 0


def named(query: Conjunction) -> Conjunction:
    """The conjunction with the names of its nodes, which plans leave out: they are for people."""
    own = tuple(replace(one, name=_name(query, one)) for one in query.nodes)
    return replace(query, nodes=own)


def _name(query: Conjunction, node: Node) -> str:
    return f"{identifier(query.aliases[node.occurrence])}.{identifier(node.column)}"


def joined(query: Conjunction) -> str:
    """The comparisons between columns of a conjunction whose nodes have names. Limits of single columns are
    among the conditions of their source.
    """
    most: dict[tuple[int, int], int] = {}
    for one in query.differences:
        pair = (one.left, one.right)
        if _NUMBER not in pair:
            most[pair] = min(one.bound, most.get(pair, one.bound))
    return " AND ".join(dict.fromkeys(_comparisons(query, most)))


def _comparisons(query: Conjunction, most: dict[tuple[int, int], int]) -> Iterator[str]:
    done = set[tuple[int, int]]()
    for (left, right), upper in most.items():
        if (left, right) not in done:
            done.add((right, left))
            lower = most.get((right, left))
            yield _apart(
                query.nodes[left - 1], query.nodes[right - 1], None if lower is None else -lower, upper
            )


def _apart(left: Node, right: Node, least: int | None, most: int) -> str:
    """`least <= left - right <= most`."""
    if left.kind == right.kind == "time":
        return distance(left.name, right.name, least, most)
    if least == most:
        return f"{left.name} = {right.name}{_plus(most)}"
    if left.kind == "dense":
        # Neighbouring DOUBLEs have neighbouring numbers, and only `<` has another bound than 0.
        upper = f"{left.name} {'<' if most < 0 else '<='} {right.name}"
        lower = None if least is None else f"{left.name} {'>' if least > 0 else '>='} {right.name}"
    else:
        upper = _compared(left.name, right.name, most)
        lower = None if least is None else _compared(right.name, left.name, -least)
    return upper if lower is None else f"{lower} AND {upper}"


def _compared(left: str, right: str, most: int) -> str:
    """`left - right <= most` of whole numbers.

    >>> _compared("a.x", "b.y", -1), _compared("a.x", "b.y", 3)
    ('a.x < b.y', 'a.x <= b.y + 3')
    """
    return f"{left} < {right}" if most == -1 else f"{left} <= {right}{_plus(most)}"


def _plus(offset: int) -> str:
    return "" if not offset else f" {'+' if offset > 0 else '-'} {abs(offset)}"


def needed_values(query: Conjunction) -> str:
    """The columns whose values are kept as they are."""
    return ", ".join(query.name(node) for node in query.needed)
