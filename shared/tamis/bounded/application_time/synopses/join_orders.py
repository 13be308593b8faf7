"""Join orders: the parts and static relations with which a new tuple is joined, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tamis.bounded.application_time.arrivals import TimedQuery
from tamis.bounded.application_time.partial_combinations import Part, components

Check = tuple[int, int, int]  # left - right <= bound, of nodes


@dataclass(frozen=True)
class Stage:
    """One part, or static relation, that a tuple is joined with: by equality with nodes that are known
    already (each node in `mine` has the value of the node in `theirs` plus an offset), and by `checks`.
    """

    occurrences: tuple[int, ...]
    nodes: tuple[int, ...]
    mine: tuple[int, ...]
    theirs: tuple[tuple[int, int], ...]
    checks: tuple[Check, ...]


@dataclass(frozen=True)
class Plan:
    """The stages that a tuple is joined with. The result is the part `whole`, or rows of the result if
    `whole` is None.
    """

    whole: tuple[int, ...] | None
    stages: tuple[Stage, ...]


def plans(timed: TimedQuery, kept: Sequence[Part], occurrence: int) -> tuple[Plan, ...]:
    """All ways in which a tuple at an occurrence completes a part or a row, larger ones first."""
    stored = {part.members for part in kept}
    found = []
    for members in [timed.streams, *sorted(stored, key=len, reverse=True)]:
        if occurrence not in members:
            continue
        rest = components(timed, (x for x in members if x != occurrence))
        if not all(one in stored for one in rest):
            continue
        last = members == timed.streams
        groups = [*rest, *((x,) for x in timed.statics)] if last else list(rest)
        found.append(Plan(None if last else members, _stages(timed, occurrence, groups)))
    return tuple(found)


def _stages(timed: TimedQuery, occurrence: int, groups: Sequence[tuple[int, ...]]) -> tuple[Stage, ...]:
    query, closure = timed.query, timed.closure
    seen = list(query.own(occurrence))
    left, stages = list(groups), []
    while left:
        # Groups that an equality finds come first.
        best = max(left, key=lambda group: len(_equalities(timed, group, seen)))
        left.remove(best)
        nodes = tuple(node for x in best for node in query.own(x))
        equal = _equalities(timed, best, seen)
        checks = []
        for a in nodes:
            for b in seen:
                if a in timed.times and b in timed.times:
                    continue
                for one, other in ((a, b), (b, a)):
                    bound = closure.between(one, other)
                    if bound < closure.upper(one) - closure.lower(other):
                        checks.append((one, other, int(bound)))
        stages.append(Stage(best, nodes, tuple(equal), tuple(equal.values()), tuple(checks)))
        seen += nodes
    return tuple(stages)


def _equalities(timed: TimedQuery, group: tuple[int, ...], seen: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Nodes of a group at a fixed distance from a known node, neither of which may be NULL: the known node
    and the distance.
    """
    found = {}
    skipped = timed.times | {at for at, node in enumerate(timed.query.nodes, 1) if node.nullable}
    for x in group:
        for a in timed.query.own(x):
            for b in seen:
                if a in skipped or b in skipped or not timed.closure.fixed(a, b):
                    continue
                found[a] = (b, int(timed.closure.between(a, b)))
                break
    return found
