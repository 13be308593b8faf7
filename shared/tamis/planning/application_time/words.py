"""What is proved of a query in application time, in words about the user's columns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from tamis.bounded.application_time.arrivals import Timed
from tamis.bounded.application_time.decide import Failure
from tamis.bounded.application_time.witness import Named, Witness
from tamis.planning.application_time.timed import rate_of
from tamis.planning.timeless import words
from tamis.query.model import StreamDef


def unbounded(timed: Timed, failure: Failure) -> str:
    """Why a query needs more memory than any number."""
    query, part = timed.query, failure.part
    said = words.unbounded(query, timed.closure, failure.violation)
    if part is None:
        return said
    kept = " and ".join(query.aliases[x] for x in part.members if x not in part.hot)
    to_come = [x for x in part.missing if timed.end(x) == math.inf]
    later = " or ".join(query.aliases[x] for x in to_come)
    return f"{said}; a tuple of {later} may come any time after those of {kept}"


def scenario(timed: Timed, witness: Witness) -> str:
    """A witness as an example for people."""
    query = timed.query
    columns = [query.nodes[node - 1].column for node in witness.key]
    numbers = [[_value(timed, node, stored) for stored in witness.stored] for node in witness.key]
    texts = [words.values(query, node, own) for node, own in zip(witness.key, numbers, strict=True)]
    shown = [", ".join(one) for one in zip(*texts, strict=True)]
    named = " and ".join(dict.fromkeys(stream for stream, _ in witness.stored[0]))
    later = " and ".join(dict.fromkeys(stream for stream, _ in witness.completions[0]))
    values = ", ".join(f"({one})" for one in shown)
    return (
        f"any number of tuples of {named}, one after the other, with ({', '.join(columns)}) = {values}, …:"
        f" tuples of {later} that come later tell every choice of them from every other"
    )


def _value(timed: Timed, node: int, stored: Sequence[Named]) -> int:
    """The value of a node in what is stored at once."""
    stream, column = timed.query.streams[timed.query.occurrence(node)], timed.query.nodes[node - 1].column
    return next(one[column] for name, one in stored if name == stream and column in one)


def undeclared(streams: Iterable[StreamDef], timed: Sequence[Timed]) -> list[str]:
    """What would have to be declared for a number."""
    found = []
    for stream in dict.fromkeys(streams):
        if stream.time is not None and rate_of(stream) is None:
            missing = [
                n for n, v in (("keys", stream.keys if stream.key else 1), ("rate", stream.rate)) if v is None
            ]
            found.append(f"{stream.name}: {' and '.join(missing)}")
    for one in timed:
        for i in one.streams if any(one.end(i) != math.inf for i in one.streams) else ():
            if one.arrivals[i].time and one.closure.lower(one.arrivals[i].time) == -math.inf:
                found.append(f"{one.query.streams[i]}: when it begins, as a CHECK of its event time")
    return list(dict.fromkeys(found))
