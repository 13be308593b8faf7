"""The verdict on a UNION with a SELECT that isn't bounded.

An unbounded SELECT does not always make the UNION unbounded, because the other SELECTs give rows, too. The
UNION is proved unbounded if all other SELECTs have no rows for the inputs of the example, because each of
them reads a stream that is empty in the example. Then the UNION has exactly the rows of the unbounded SELECT.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tamis.bounded.memory import Memory
from tamis.query.model import Catalog, Query

UsedStreams = Callable[[int], frozenset[str] | None]


def union(query: Query, catalog: Catalog, found: Sequence[Memory], used: UsedStreams) -> Memory | None:
    """The verdict if one of the SELECTs, each with its own verdict in `found`, isn't bounded; None if all
    are.

    `used` gives the streams of the example by which a SELECT is unbounded.
    """
    failing = [place for place, one in enumerate(found) if one.verdict != "bounded"]
    if not failing:
        return None
    place = proving_member(query, catalog, used)
    if place is not None:
        return unbounded_member(found[place], place, alone=len(failing) == 1)
    (first, *_) = failing
    one = found[first]
    reason = (
        f"not proven: SELECT number {first + 1} of the UNION is {one.verdict} on its own, since {one.reason}"
    )
    return Memory("unknown", None, "", one.theorem, reason)


def proving_member(query: Query, catalog: Catalog, used: UsedStreams) -> int | None:
    """The SELECT whose example proves the UNION unbounded; None if there is none."""
    for place in range(len(query.members)):
        streams = used(place)
        if streams is not None and _alone(query, catalog, place, streams):
            return place
    return None


def _alone(query: Query, catalog: Catalog, place: int, streams: frozenset[str]) -> bool:
    others = [one for at, one in enumerate(query.members) if at != place]
    # A watched stream has a tuple for each tuple of its base.
    used = {stream.shown_name for name, stream in catalog.streams.items() if name in streams}
    left = {name for name, stream in catalog.streams.items() if stream.shown_name not in used}
    return all(any(source.stream in left for source in one.sources) for one in others)


def unbounded_member(one: Memory, place: int, *, alone: bool) -> Memory:
    """The verdict on a UNION that one of its SELECTs makes unbounded, from the SELECT's own. `alone`: all
    others are bounded.
    """
    where = f"SELECT {place + 1}"
    fixes = tuple(f"{fix} in {where}" for fix in one.repairs) if alone else ()
    return replace(one, reason=f"{where} of the UNION: {one.reason}", repairs=fixes)
