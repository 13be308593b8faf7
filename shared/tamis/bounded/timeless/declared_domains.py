"""Declared domains: limits of columns from types and CHECKs, of keys from `keys`, and intervals of DOUBLEs.

The limits hold for all values except NULL.

There are so many DOUBLEs between two numbers that an interval such as `x BETWEEN 0 AND 1` doesn't limit
memory. So DOUBLE attributes are treated as follows:

1. The constants of the query divide all DOUBLEs into intervals and single numbers.
2. The query is split into parts, so that in each part every DOUBLE attribute has a fixed interval.
3. The interval becomes a filter on tuples. Comparisons between attributes of different intervals follow from
   the intervals and are dropped.
4. Within an interval only the order of values matters. So the remaining comparisons are decided as for whole
   numbers without limits.

An attribute that is fixed to a single number is limited.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from tamis.analysis.conjuncts import flatten_and
from tamis.bounded.timeless.alternatives import MOST, Alternative, alternatives
from tamis.bounded.timeless.differences import DifferenceBound, DifferenceForm, differences
from tamis.declarations.streams import StreamDef
from tamis.difference_bounds import Bound, Closure
from tamis.expressions.nodes import Call, Column, Expr, Literal, Type, columns, substitute
from tamis.expressions.sql_text import to_sql
from tamis.plan.conjunction import Conjunction, Difference, KeyLimit, close

Interval = tuple[Bound, Bound]


def domain(column: Column, stream: StreamDef, code: Callable[[str], int]) -> Iterator[DifferenceForm]:
    """The limits from a column's type and the CHECKs of its stream. A CHECK with OR gives the range around
    its ranges.
    """
    if column.type is Type.BOOLEAN:
        yield from _limits(column, 0, 1)
    for one in stream.columns:
        if one.check is not None:
            check = _under(column.alias, one.check)
            for part in dict.fromkeys((check, *flatten_and(check))):
                if column in columns(part):
                    yield from _range(column, part, code)


def _range(column: Column, check: Expr, code: Callable[[str], int]) -> Iterator[DifferenceForm]:
    forms = [[_limiting(part, code) for part in one] for one in alternatives(check) or ()]
    understood = [[r for r in one if r is not None] for one in forms]
    if not understood or not all(understood):
        return
    valued = [one for one in understood if not any(r.null and r.bounds[0].left == column for r in one)]
    found = [closure for one in valued if (closure := _closure(column, one)) is not None]
    if found:
        low, high = min(one.lower(1) for one in found), max(one.upper(1) for one in found)
        yield from _limits(column, low, high)


def caveats(
    alias: str, stream: StreamDef, nodes: Sequence[Column], code: Callable[[str], int]
) -> Iterator[str]:
    """The CHECKs that say more than limits of single columns: an example's tuples may violate them."""
    present = {one.name for one in nodes if one.alias == alias}
    absent = {one.name for one in stream.columns if not one.not_null} - present
    for check in (one.check for one in stream.columns if one.check is not None):
        for part in flatten_and(_under(alias, check)):
            if not _told(part, present, absent, code):
                yield f"it isn't known which tuples satisfy CHECK ({to_sql(part, qualify=False)})"


def _told(part: Expr, present: Set[str], absent: Set[str], code: Callable[[str], int]) -> bool:
    """True if the limits of columns say everything that matters in a CHECK. Columns in `absent` may be NULL
    because the query doesn't read them.
    """
    own = {one.name for one in columns(part)}
    if own and not own & present:
        return True
    split = alternatives(part) or ()
    if any(all(_unknown(atom, absent, code) for atom in one) for one in split):
        return True  # a CHECK that is NULL is satisfied
    atoms = [atom for one in split for atom in one if not _compares_null(atom)]
    if len(own) != 1 or not split or any(_limiting(atom, code) is None for atom in atoms):
        return False
    # Several ranges of whole numbers are limited just where the range around them is.
    return len(split) == 1 or all(one.type is not Type.DOUBLE for one in columns(part))


def _unknown(atom: Expr, absent: Set[str], code: Callable[[str], int]) -> bool:
    """True if a comparison is NULL when the columns in `absent` are NULL."""
    form = differences(atom, code)
    if form is None or form.null:
        return False
    # IS NOT NULL compares nothing.
    compares = bool(form.inequations) or any(one.left != one.right for one in form.bounds)
    return compares and any(one.name in absent for one in columns(atom))


def _limiting(part: Expr, code: Callable[[str], int]) -> DifferenceForm | None:
    """The limits from a part of a CHECK. A part that may be NULL limits nothing, since a CHECK that is NULL
    is satisfied.
    """
    found = None if _compares_null(part) else differences(part, code)
    overflows = found is not None and any(
        one.type is not Type.INT for g in found.guards for one in columns(g)
    )
    return None if overflows else found


def _compares_null(part: Expr) -> bool:
    inner = part.args[0] if isinstance(part, Call) and part.op == "not" else part
    return isinstance(inner, Call) and any(isinstance(a, Literal) and a.value is None for a in inner.args)


def _under(alias: str, check: Expr) -> Expr:
    return substitute(check, lambda own: Column(alias, own.name, own.type))


@dataclass(frozen=True)
class FurtherChecks:
    """CHECKs of a source that are more than limits of single columns: differences that hold in all tuples
    of a row, and alternatives of which each tuple fulfils one.
    """

    differences: tuple[DifferenceForm, ...]
    choices: tuple[tuple[Alternative, ...], ...]


def further_checks(
    alias: str,
    stream: StreamDef,
    read: Sequence[Column],
    never_null: Set[str],
    code: Callable[[str], int],
) -> FurtherChecks:
    """The CHECKs of a source over several columns, and those with OR, as far as they are differences.

    `read` are the columns of all sources that the query reads, `never_null` those of this source that are
    NULL in no tuple of a row. A CHECK that is NULL is satisfied: so a difference counts only if none of its
    columns may be NULL, and that a column is NULL is one more alternative.
    """
    present = {one.name for one in read if one.alias == alias}
    forms: list[DifferenceForm] = []
    choices: list[tuple[Alternative, ...]] = []
    for check in (one.check for one in stream.columns if one.check is not None):
        for part in flatten_and(_under(alias, check)):
            own = dict.fromkeys(columns(part))
            if not {one.name for one in own} & present:
                continue
            split = alternatives(part) or ()
            if len(own) == 1 and (len(split) == 1 or all(one.type is not Type.DOUBLE for one in own)):
                continue  # the limits of the column say it
            atoms = [_limiting(atom, code) for one in split for atom in one]
            if not atoms or any(form is None or form.null for form in atoms):
                continue
            absent = [one for one in own if one.name not in never_null]
            if len(split) > 1 or absent:
                choices.append((*split, *((Call("is_null", (one,), Type.BOOLEAN),) for one in absent)))
            else:
                forms += [replace(form, compares=False) for form in atoms if form is not None]
    return FurtherChecks(tuple(forms), tuple(choices))


def key_limits(streams: Mapping[str, StreamDef], nodes: Sequence[Column]) -> Iterator[KeyLimit]:
    """The declared limits of keys, by alias. Nodes are numbered from 1."""
    for alias, stream in streams.items():
        own = [at for at, one in enumerate(nodes, 1) if one.alias == alias and one.name in stream.key]
        if stream.keys is not None and own:
            yield KeyLimit(tuple(own), stream.keys)


def _closure(column: Column, forms: Sequence[DifferenceForm]) -> Closure | None:
    """Everything that forms imply about one column alone."""
    number = {None: 0, column: 1}
    bounds = [
        Difference(number[b.left], number[b.right], b.bound)
        for form in forms
        for b in form.bounds
        if b.left in number and b.right in number
    ]
    return close(2, tuple(bounds))


def _limits(column: Column, low: float, high: float) -> Iterator[DifferenceForm]:
    if math.isfinite(high):
        yield DifferenceForm((DifferenceBound(column, None, int(high)),), compares=False)
    if math.isfinite(low):
        yield DifferenceForm((DifferenceBound(None, column, -int(low)),), compares=False)


def split_by_intervals(
    query: Conjunction, closure: Closure, dense: Sequence[int]
) -> Iterator[tuple[Conjunction, Closure]]:
    """The parts of a query by the intervals of its DOUBLE nodes, without parts that contradict themselves."""
    edges: set[Bound] = {closure.lower(node) for node in dense}
    edges |= {closure.upper(node) + 1 for node in dense}
    cuts = sorted(edge for edge in edges if math.isfinite(edge))
    intervals = [_intervals(query, closure, node, cuts) for node in dense]
    if math.prod(map(len, intervals)) > MOST:
        doubt = "its DOUBLE columns may lie in too many intervals between constants"
        query = replace(query, caveats=(*query.caveats, doubt))
        intervals = [[(closure.lower(node), closure.upper(node))] for node in dense]
    for chosen in itertools.product(*intervals):
        part = closure.copy()
        if all(_within(part, node, one) for node, one in zip(dense, chosen, strict=True)):
            found = _without(query, part, dense)
            own = found.closure()
            if own is not None:
                yield found, own


def _intervals(query: Conjunction, closure: Closure, node: int, cuts: Sequence[Bound]) -> list[Interval]:
    """The intervals between cuts in which a node can lie. A node that may be NULL is not compared, and has
    one interval.
    """
    low, high = closure.lower(node), closure.upper(node)
    if query.nodes[node - 1].nullable:
        return [(low, high)]
    starts = [low, *(cut for cut in cuts if low < cut <= high)]
    return list(zip(starts, [*(cut - 1 for cut in starts[1:]), high], strict=True))


def _within(part: Closure, node: int, one: Interval) -> bool:
    return part.add(node, 0, one[1]) and part.add(0, node, -one[0])


def _without(query: Conjunction, part: Closure, dense: Sequence[int]) -> Conjunction:
    """The query in one choice of intervals, with the limits of each node as a filter."""
    loose = {node for node in dense if part.values(node) > 1}
    left = [
        one
        for one in query.differences
        if not {one.left, one.right} & loose
        or ({one.left, one.right} <= loose and part.upper(one.left) - part.lower(one.right) > one.bound)
    ]
    limits = {
        node: [
            Difference(*ends, int(bound))
            for ends, bound in (((node, 0), part.upper(node)), ((0, node), -part.lower(node)))
            if math.isfinite(bound)
        ]
        for node in dense
    }
    points = [one for node in dense if node not in loose for one in limits[node]]
    ranges = [one for node in dense if node in loose for one in limits[node]]
    return replace(query, differences=(*left, *points), ranges=tuple(ranges))
