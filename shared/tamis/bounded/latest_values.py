"""Memory of queries with ASOF JOIN, as a formula and, where enough is declared, as a number.

A row is decided when the watermarks of all streams have passed its tuple of the first stream. Until then the
tuple waits. The watermark of a stream p is at most `delay(p) + max_stall(p)` behind the present, and a tuple
of S is at most `max_ahead(S)` ahead of it. So the waiting tuples of S have event times in a span of

    X(S) = max over p of ( delay(p) + max_stall(p) ) + max_ahead(S),

and for a joined stream of X(S) + `least`, if it is joined at least `least` before each tuple. Of the tuples
before that, the last one is kept for each value of the equated columns. With an age bound it is forgotten
when it is older than the bound, so these tuples lie in a span of the bound.

The number of values of the equated columns follows from CHECKs, BOOLEAN, conditions on the stream, and `keys`
for KEY columns. Other columns may always have a new value. Without an age bound the query is then unbounded.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tamis.analysis.conjuncts import flatten_and
from tamis.bounded.joined_tables import limited_cases
from tamis.bounded.memory import Memory, no_number, sentences, undeclared
from tamis.declarations.streams import StreamDef
from tamis.difference_bounds import Bound
from tamis.durations import seconds
from tamis.expressions.nodes import Expr, Type, columns, substitute
from tamis.expressions.sql_text import identifier, interval
from tamis.operators.application_time.arrivals import Arrival, rate_of
from tamis.query.model import AsOfJoin, Catalog, LatestValueJoin, Output, Source, TimelessSelect

LATEST = "latest values (waiting tuples and one for each key)"
# The age bound of a proposed repair: the user puts their own.
_AGE = 3_600_000_000


@dataclass(frozen=True)
class _Term:
    """A summand: a number of tuples, infinity where nothing declared limits it, and its formula."""

    count: Bound
    text: str


def memory_verdict(query: LatestValueJoin, catalog: Catalog) -> Memory:
    """The verdict on a query with ASOF JOIN."""
    pairs = list(zip(query.sources[1:], query.joins, strict=True))
    for source, join in pairs:
        values = _values(source, join, catalog)
        if join.most is None and values.count == math.inf and not _limited_by_keys(source, join, catalog):
            return _unbounded(query, source, join, catalog)
    streams = [catalog.streams[source.stream] for source in query.sources]
    wait = max(stream.delay + stream.max_stall for stream in streams)
    summands = [_waiting(query.sources[0], streams[0], wait)]
    for (source, join), stream in zip(pairs, streams[1:], strict=True):
        summands.append(_waiting(source, stream, wait + join.least))
        summands.append(_latest(source, join, stream, catalog))
    formula = " + ".join(one.text for one in summands)
    kept = " and ".join(
        f"the last tuple of {source.alias} of each {_named(join)}" if join.keys else f"one of {source.alias}"
        for source, join in pairs
    )
    reason = sentences(f"kept: {kept}, and the tuples that wait for the watermarks", _longest(streams))
    total = sum(one.count for one in summands)
    if total == math.inf:
        missing = [lack for one in dict.fromkeys(streams) if (lack := undeclared(one))]
        return Memory("bounded", None, formula, LATEST, sentences(no_number(missing), reason))
    return Memory("bounded", int(total), formula, LATEST, reason)


def candidate_filters(query: LatestValueJoin, join: AsOfJoin) -> tuple[Expr, ...]:
    """The conditions that a tuple must meet to be chosen by an ASOF JOIN, or to hide another one.

    Conditions in WHERE apply to the chosen tuple. But the equated columns of all rows have the values of the
    first source, if they are equated with it. So its conditions on these columns hold for both.
    """
    first = query.sources[0].alias
    equal = {
        left: right
        for left, right in join.keys
        if left.alias == first and left.type is right.type is not Type.DOUBLE  # -0.0 and 0.0 are equal
    }
    same = [
        substitute(part, lambda column: equal[column])
        for conjunct in query.conjuncts
        for part in flatten_and(conjunct.expr)
        if (read := set(columns(part))) and read <= set(equal)
    ]
    own = [part for conjunct in join.filters for part in flatten_and(conjunct.expr)]
    return tuple(dict.fromkeys((*own, *same)))


def _longest(streams: Sequence[StreamDef]) -> str:
    """The longest wait of a tuple, and what it consists of."""
    slow = max(streams, key=lambda one: one.delay + one.max_stall)
    ahead = max(streams, key=lambda one: one.max_ahead or 0)
    parts = (
        (ahead.max_ahead or 0, f"max_ahead of {ahead.shown_name}"),
        (slow.max_stall, f"max_stall of {slow.shown_name}"),
        (slow.delay, f"delay of the WATERMARK of {slow.shown_name}"),
    )
    total = sum(length for length, _ in parts)
    said = " + ".join(f"{seconds(length)} {what}" for length, what in parts if length)
    return f"a tuple waits for at most {seconds(total)}: {said}"


def _waiting(source: Source, stream: StreamDef, wait: int) -> _Term:
    """The tuples of a source that wait for the watermarks."""
    if stream.max_ahead is None:
        count: Bound = math.inf
        within = f"{seconds(wait)} + max_ahead({source.alias})"
    else:
        count = Arrival(1, rate=rate_of(stream)).most_tuples(wait + stream.max_ahead)
        within = seconds(wait + stream.max_ahead)
    number = "n" if count == math.inf else count
    return _Term(count, f"{number} (tuples of {source.alias} that wait, within {within})")


def _latest(source: Source, join: AsOfJoin, stream: StreamDef, catalog: Catalog) -> _Term:
    """The last tuples before those that wait."""
    values = _values(source, join, catalog)
    if join.most is not None:
        young = Arrival(1, rate=rate_of(stream)).most_tuples(join.most)
        if young < values.count or (values.count == math.inf and not _limited_by_keys(source, join, catalog)):
            number = "n" if young == math.inf else young
            return _Term(young, f"{number} (latest tuples of {source.alias} within {seconds(join.most)})")
    return _Term(values.count, f"{values.text} (latest tuples of {source.alias})")


def _values(source: Source, join: AsOfJoin, catalog: Catalog) -> _Term:
    """The number of values of the equated columns; 0 if no tuple of the source meets its conditions."""
    columns = dict.fromkeys(column for _, column in join.keys)
    outputs = tuple(Output(f"{column.alias}.{column.name}", column) for column in columns)
    cases = limited_cases(TimelessSelect((source,), join.filters, outputs, distinct=True), catalog)
    if cases is None:
        return _Term(0, "0")
    if not columns:
        return _Term(1, "1")
    total: Bound = sum((math.prod(factor.count for factor in case) for case in cases), 0)
    if total == math.inf:
        return _Term(total, f"keys({source.alias})")
    texts = [" * ".join(f"{factor.count} ({factor.of})" for factor in case) or "1" for case in cases]
    return _Term(total, " + ".join(texts) if len(texts) == 1 else f"({' + '.join(texts)})")


def _limited_by_keys(source: Source, join: AsOfJoin, catalog: Catalog) -> bool:
    """True if the equated columns would have a limited number of values if `keys` were declared."""
    stream = catalog.streams[source.stream]
    declared = catalog.copy()
    declared.streams[stream.name] = replace(stream, keys=1)
    found = _values(source, join, declared)
    return found.count < math.inf


def _unbounded(query: LatestValueJoin, source: Source, join: AsOfJoin, catalog: Catalog) -> Memory:
    """`source` has equated columns that may always have a new value."""
    stream = catalog.streams[source.stream]
    free = list(_free(source, join, catalog))
    named = " and ".join(free)
    first = catalog.streams[query.sources[0].stream]
    times = [
        f"{identifier(one.alias)}.{identifier(str(s.time))}"
        for one, s in ((query.sources[0], first), (source, stream))
    ]
    reason = (
        f"the last tuple of {source.alias} is kept for ever for each value of {named}, since a tuple of"
        f" {query.sources[0].alias} with this value may always come later, and nothing limits the values of"
        f" {named}"
    )
    witness = (
        f"n tuples of {source.alias} with different values of {named}: a later tuple of"
        f" {query.sources[0].alias} may need any one of them"
    )
    repair = f"AND {times[1]} >= {times[0]} - {interval(_AGE)} in the ON of {source.alias}"
    return Memory("unbounded", None, "", LATEST, reason, (repair,), witness)


def _free(source: Source, join: AsOfJoin, catalog: Catalog) -> Iterator[str]:
    """The equated columns that nothing limits, each alone."""
    for _, column in dict.fromkeys(join.keys):
        one = replace(join, keys=((column, column),))
        found = _values(source, one, catalog)
        if found.count == math.inf and not _limited_by_keys(source, one, catalog):
            yield f"{identifier(column.alias)}.{identifier(column.name)}"


def _named(join: AsOfJoin) -> str:
    return " and ".join(dict.fromkeys(f"{column.alias}.{column.name}" for _, column in join.keys))
