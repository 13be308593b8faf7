"""A UNION of which a SELECT isn't bounded.

By itself that proves nothing of the UNION, since others give rows too. It does where none of the others has a
row of the example's inputs, because each reads a stream that the example leaves empty: what the UNION gives
is then what that SELECT gives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tamis.planning.bounds import Memory
from tamis.query.model import Catalog, Query

Used = Callable[[int], frozenset[str] | None]


def union(query: Query, catalog: Catalog, found: Sequence[Memory], used: Used) -> Memory | None:
    """The verdict where one of the SELECTs, each with its own in `found`, isn't bounded; None where all are.
    `used` names the streams of the example by which a SELECT is unbounded.
    """
    failing = [place for place, one in enumerate(found) if one.verdict != "bounded"]
    if not failing:
        return None
    place = proving(query, catalog, used)
    if place is not None:
        return _unbounded(found[place], place, alone=len(failing) == 1)
    (first, *_) = failing
    one = found[first]
    reason = f"not proven: SELECT {first + 1} of the UNION by itself is {one.verdict}: {one.reason}"
    return Memory("unknown", None, "", one.theorem, reason)


def proving(query: Query, catalog: Catalog, used: Used) -> int | None:
    """The SELECT whose example proves the UNION unbounded."""
    for place in range(len(query.members)):
        streams = used(place)
        if streams is not None and _alone(query, catalog, place, streams):
            return place
    return None


def _alone(query: Query, catalog: Catalog, place: int, streams: frozenset[str]) -> bool:
    others = [one for at, one in enumerate(query.members) if at != place]
    left = set(catalog.streams) - streams
    return all(any(source.stream in left for source in one.sources) for one in others)


def _unbounded(one: Memory, place: int, *, alone: bool) -> Memory:
    where = f"SELECT {place + 1}"
    fixes = tuple(f"{fix} in {where}" for fix in one.repairs) if alone else ()
    return replace(one, reason=f"{where} of the UNION: {one.reason}", repairs=fixes)
