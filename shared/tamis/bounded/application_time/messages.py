"""Messages about queries in application time, in terms of the user's columns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from tamis.bounded.application_time.arrivals import TimedQuery
from tamis.bounded.application_time.decide import Failure
from tamis.bounded.application_time.witness import Named, Witness
from tamis.bounded.memory import sentences, undeclared
from tamis.bounded.timeless import messages
from tamis.query.model import StreamDef


def unbounded(timed: TimedQuery, failure: Failure) -> str:
    """The reason why a query needs unlimited memory."""
    query, part = timed.query, failure.part
    texts = messages.unbounded(query, timed.closure, failure.violation)
    if part is None:
        return texts
    kept = " and ".join(query.aliases[x] for x in part.members if x not in part.spans)
    to_come = [x for x in part.missing if timed.end(x) == math.inf]
    later = " or ".join(query.aliases[x] for x in to_come)
    return sentences(texts, f"a tuple of {later} may come any time after those of {kept}")


def scenario(timed: TimedQuery, witness: Witness) -> str:
    """A witness as an example for users."""
    query = timed.query
    columns = [query.nodes[node - 1].column for node in witness.key]
    numbers = [[_value(timed, node, stored) for stored in witness.stored] for node in witness.key]
    texts = [messages.values(query, node, own) for node, own in zip(witness.key, numbers, strict=True)]
    shown = [", ".join(one) for one in zip(*texts, strict=True)]
    named = " and ".join(dict.fromkeys(stream for stream, _ in witness.stored[0]))
    later = " and ".join(dict.fromkeys(stream for stream, _ in witness.completions[0]))
    values = ", ".join(f"({one})" for one in shown)
    return (
        f"any number of tuples of {named}, one after the other, with ({', '.join(columns)}) = {values}, …:"
        f" later tuples of {later} give different rows for each subset of these"
    )


def _value(timed: TimedQuery, node: int, stored: Sequence[Named]) -> int:
    """The value of a node in what is stored at once."""
    stream, column = timed.query.streams[timed.query.occurrence(node)], timed.query.nodes[node - 1].column
    return next(one[column] for name, one in stored if name == stream and column in one)


def missing_declarations(streams: Iterable[StreamDef], timed: Sequence[TimedQuery]) -> list[str]:
    """The declarations that are missing for a number."""
    with_time = [stream for stream in dict.fromkeys(streams) if stream.time is not None]
    found = [lack for stream in with_time if (lack := undeclared(stream))]
    for one in timed:
        for i in one.streams if any(one.end(i) != math.inf for i in one.streams) else ():
            if one.arrivals[i].time and one.closure.lower(one.arrivals[i].time) == -math.inf:
                found.append(
                    f"stream {one.query.streams[i]} has no CHECK that says when its event time begins"
                )
    return list(dict.fromkeys(found))
