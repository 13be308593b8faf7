"""Witnesses: inputs that need unlimited memory in every evaluator (arasu-2004, appendix A).

A witness of size n has n *stored* tuples of one stream, and n *completions*. A completion is a list of tuples
of the other streams. The i-th stored tuple joins the i-th completion. It doesn't join the k-th completion for
other k (with DISTINCT), or at least for k > i (without DISTINCT).

Take any two subsets of the stored tuples as input. Some completion adds different rows for them, so an
evaluator needs a different state for each of the 2^n subsets. The values of different stored tuples are in
*blocks*, which are far apart from each other and from all constants. The closure determines all other values.

`states` runs a witness by brute force: the plain join over every subset, with every completion.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain, combinations, product

from tamis.difference_bounds import Closure
from tamis.operators.synopses.decide import Reference, Side, Violation
from tamis.plan.conjunction import Conjunction

Tuple = dict[str, int]  # by column; a column that the query doesn't read is not there
# So many solutions are tried for inequations: each excludes at most one distance of two values.
_STEPS = 8

Rows = Counter[tuple[int, ...]]


@dataclass(frozen=True)
class Witness:
    """`stored` tuples of `stream`, and `completions`: each is a list of tuples by stream that come later.
    `key` are the nodes whose values make the difference.
    """

    stream: str
    stored: tuple[Tuple, ...]
    completions: tuple[tuple[tuple[str, Tuple], ...], ...]
    key: tuple[int, ...]


def construct(query: Conjunction, closure: Closure, failing: Violation, count: int) -> Witness | None:
    """A witness of a violated condition with `count` stored tuples; None if the blocks contradict
    the query.
    """
    stored: list[Tuple] = []
    completions: list[tuple[tuple[str, Tuple], ...]] = []
    before: list[tuple[tuple[str, Tuple], ...]] = []
    named = nodes_of(failing)
    room = spacing(query, named)
    for number in range(count):
        whole = closure.copy()
        for node, block in blocks(query, closure, failing, number, count).items():
            center = block * 16 * room
            if not (whole.add(node, 0, center + 2 * room) and whole.add(0, node, 2 * room - center)):
                return None
        values = _solution(query, whole)
        parts = [
            {query.nodes[node - 1].column: values[node] for node in query.own(i)}
            for i in range(len(query.streams))
        ]
        stored.append(parts[failing.occurrence])
        others = [(query.streams[i], part) for i, part in enumerate(parts) if i != failing.occurrence]
        # A value that is only counted, or lies in the middle, must come again to show whether it was there.
        again = query.grouped and failing.node is not None
        same = [(query.streams[failing.occurrence], stored[-1])] if again or not others else []
        completions.append((*others, *same))
        if query.distinct and same and others:
            # The last tuple may add a row that is there before it.
            before.append(tuple(others))
    completions += before
    if query.self_joined:
        # The completions' tuples also join among themselves: equal tuples may show more.
        completions += [((query.streams[failing.occurrence], one),) for one in stored]
    own = set(query.own(failing.occurrence))
    key = tuple(dict.fromkeys(node for node in named if node in own))
    return Witness(query.streams[failing.occurrence], tuple(stored), tuple(completions), key)


def _solution(query: Conjunction, closure: Closure) -> Mapping[int, int]:
    """A solution of the bounds that also meets the inequations, if one of a few does."""
    for step in range(_STEPS):
        found = closure.solution(step=step)
        values = {0: 0, **found}
        if all(values[one.left] - values[one.right] != one.offset for one in query.unequal):
            return found
    return closure.solution()


def nodes_of(failing: Violation) -> list[int]:
    """The nodes in a failing condition."""
    if failing.node is not None:
        return [failing.node]
    return [node for one in failing.references for node in (one.tail, one.head)]


def spacing(query: Conjunction, nodes: Sequence[int], apart: Set[int] = frozenset()) -> int:
    """A distance greater than all offsets and constants with which the query compares nodes, directly or by
    way of others that aren't `apart`.

    Values stay as small as that allows.
    """
    near = set(nodes)
    used = [one for one in query.differences if not {one.left, one.right} & apart]
    grown = True
    while grown:
        more = {end for one in used for end in (one.left, one.right) if {one.left, one.right} & near}
        grown = not more - {0} <= near
        near |= more - {0}
    return 10 + query.size + sum(abs(one.bound) for one in used if {one.left, one.right} & near)


def states(query: Conjunction, witness: Witness) -> int:
    """The number of subsets of the stored tuples that some completion tells apart, at most 2^n, by a plain
    join for each subset.
    """
    seen: set[object] = set()
    subsets = chain.from_iterable(combinations(witness.stored, k) for k in range(len(witness.stored) + 1))
    for subset in subsets:
        base = [(witness.stream, one) for one in subset]
        before = plain_join(query, base)
        new = tuple(
            frozenset(new_rows(query, plain_join(query, [*base, *more]), before).items())
            for more in witness.completions
        )
        seen.add(new)
    return len(seen)


def tuples_of(witness: Witness) -> list[tuple[str, Tuple]]:
    """All tuples of a witness, each with its stream."""
    return [*((witness.stream, one) for one in witness.stored), *chain(*witness.completions)]


def within_key_limits(query: Conjunction, witness: Witness) -> bool:
    """True if the stored tuples together with any single completion have no more keys than their streams
    allow.
    """
    for group in query.key_limits:
        stream = query.streams[query.occurrence(group.nodes[0])]
        columns = [query.nodes[node - 1].column for node in group.nodes]
        for completion in witness.completions:
            tuples = [*((witness.stream, one) for one in witness.stored), *completion]
            own = {tuple(one.get(c, 0) for c in columns) for name, one in tuples if name == stream}
            if len(own) > group.keys:
                return False
    return True


def equal_in_expressions(query: Conjunction, tuples: Sequence[tuple[str, Tuple]]) -> bool:
    """True if every column that SELECT shows only within expressions has one value in all tuples. Rows then
    differ if and only if the other columns do.
    """
    for node in query.in_expressions:
        stream, column = query.streams[query.occurrence(node)], query.nodes[node - 1].column
        if len({one.get(column, 0) for name, one in tuples if name == stream}) > 1:
            return False
    return True


def plain_join(query: Conjunction, tuples: Sequence[tuple[str, Tuple]]) -> Rows:
    """The rows of a query by the plain join: every combination is tried."""
    found: Rows = Counter()
    by_occurrence = [[one for stream, one in tuples if stream == name] for name in query.streams]
    for combination in product(*by_occurrence):
        values = [0, *(combination[node.occurrence].get(node.column, 0) for node in query.nodes)]
        if all(values[one.left] - values[one.right] <= one.bound for one in query.differences) and all(
            values[one.left] - values[one.right] != one.offset for one in query.unequal
        ):
            found[tuple(values[node] for node in query.projected)] += 1
    return found


def new_rows(query: Conjunction, after: Rows, before: Rows) -> Rows:
    """The rows that are added, or the groups that changed, as they are now."""
    if query.distinct:
        return Counter({row: 1 for row in after if row not in before})
    if query.grouped:
        return Counter({row: count for row, count in after.items() if count != before[row]})
    return after - before


def blocks(
    query: Conjunction, closure: Closure, failing: Violation, number: int, count: int
) -> dict[int, int]:
    """The block of each node that matters, in the `number`-th tuple and its completion."""
    rising: dict[Side, int] = {"high": 1 + number, "low": number - count}
    if failing.node is not None:
        side: Side = "low" if closure.upper(failing.node) != float("inf") else "high"
        return {failing.node: rising[side]}
    if len(failing.references) == 1:
        (only,) = failing.references
        return _ends([only], rising[only.side])
    first, second = failing.references
    own = set(query.own(failing.occurrence))
    if (first.head in own) != (second.head in own):
        return {**_ends([first], rising[first.side]), **_ends([second], rising[second.side])}
    # The first one's blocks rise, and the second one's lie above them and fall.
    beyond = first.side == second.side
    below = rising[first.side] - (count + 1 if beyond and first.side == "low" else 0)
    falling: dict[Side, int] = {"high": count - number, "low": -1 - number}
    above = falling[second.side] + (count + 1 if beyond and second.side == "high" else 0)
    return {**_ends([first], below), **_ends([second], above)}


def _ends(found: Iterable[Reference], block: int) -> dict[int, int]:
    return {node: block for one in found for node in (one.tail, one.head)}
