"""What a column's type and CHECK say of all its values but NULL, and `keys` of a stream's key."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence, Set

from tamis.bounded.closure import Closure
from tamis.bounded.normal_form import Difference, Keyed, close
from tamis.expressions.nodes import Call, Column, Expr, Literal, Type, columns, substitute
from tamis.expressions.sql_text import to_sql
from tamis.planning.analysis import flatten_and
from tamis.planning.timeless.alternatives import alternatives
from tamis.planning.timeless.differences import Bounded, Reading, differences
from tamis.query.model import StreamDef


def domain(column: Column, stream: StreamDef, code: Callable[[str], int]) -> Iterator[Reading]:
    """The limits that a column's type and the CHECKs of its stream give; of a CHECK with OR, the range around
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


def _range(column: Column, check: Expr, code: Callable[[str], int]) -> Iterator[Reading]:
    readings = [[_limiting(part, code) for part in one] for one in alternatives(check) or ()]
    understood = [[r for r in one if r is not None] for one in readings]
    if not understood or not all(understood):
        return
    valued = [one for one in understood if not any(r.null and r.bounds[0].left == column for r in one)]
    found = [closure for one in valued if (closure := _closure(column, one)) is not None]
    if found:
        low, high = min(one.lower(1) for one in found), max(one.upper(1) for one in found)
        yield from _limits(column, low, high)


def doubts(
    alias: str, stream: StreamDef, nodes: Sequence[Column], code: Callable[[str], int]
) -> Iterator[str]:
    """What CHECKs say that limits of single columns don't: an example of tuples may break it."""
    present = {one.name for one in nodes if one.alias == alias}
    absent = {one.name for one in stream.columns if not one.not_null} - present
    for check in (one.check for one in stream.columns if one.check is not None):
        for part in flatten_and(_under(alias, check)):
            if not _told(part, present, absent, code):
                yield f"it isn't known what CHECK ({to_sql(part, qualify=False)}) leaves of the tuples"


def _told(part: Expr, present: Set[str], absent: Set[str], code: Callable[[str], int]) -> bool:
    """Do the limits of columns say all that matters of a CHECK? `absent` may be NULL, as nobody asks."""
    own = {one.name for one in columns(part)}
    if own and not own & present:
        return True
    split = alternatives(part) or ()
    if any(all(_unknown(atom, absent, code) for atom in one) for one in split):
        return True  # NULL, which a CHECK admits
    atoms = [atom for one in split for atom in one if not _compares_null(atom)]
    if len(own) != 1 or not split or any(_limiting(atom, code) is None for atom in atoms):
        return False
    # Ranges of whole numbers have as many values as what lies around them, or endlessly many as well.
    return len(split) == 1 or all(one.type is not Type.DOUBLE for one in columns(part))


def _unknown(atom: Expr, absent: Set[str], code: Callable[[str], int]) -> bool:
    """Is a comparison NULL where `absent` columns are?"""
    reading = differences(atom, code)
    if reading is None or reading.null:
        return False
    # IS NOT NULL compares nothing.
    compares = bool(reading.apart) or any(one.left != one.right for one in reading.bounds)
    return compares and any(one.name in absent for one in columns(atom))


def _limiting(part: Expr, code: Callable[[str], int]) -> Reading | None:
    """What a part of a CHECK says of values: what may be NULL of values, too, says nothing, since a CHECK
    admits it.
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


def keyed(streams: Mapping[str, StreamDef], nodes: Sequence[Column]) -> Iterator[Keyed]:
    """The keys, by alias, that are declared to have a limited number of values; nodes are counted from 1."""
    for alias, stream in streams.items():
        own = [at for at, one in enumerate(nodes, 1) if one.alias == alias and one.name in stream.key]
        if stream.keys is not None and own:
            yield Keyed(tuple(own), stream.keys)


def _closure(column: Column, readings: Sequence[Reading]) -> Closure | None:
    """What readings imply of one column by itself."""
    number = {None: 0, column: 1}
    bounds = [
        Difference(number[b.left], number[b.right], b.bound)
        for reading in readings
        for b in reading.bounds
        if b.left in number and b.right in number
    ]
    return close(2, tuple(bounds))


def _limits(column: Column, low: float, high: float) -> Iterator[Reading]:
    if math.isfinite(high):
        yield Reading((Bounded(column, None, int(high)),), compares=False)
    if math.isfinite(low):
        yield Reading((Bounded(None, column, -int(low)),), compares=False)
