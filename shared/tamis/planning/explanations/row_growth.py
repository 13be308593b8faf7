"""Joins whose rows can grow much faster than the readings. Each row is an alarm.

In a join by time, the greatest number of rows of one tuple is the product of the numbers of its partners in
each other stream. The times of these partners lie in a span W, the greatest minus the least difference that
the time bounds admit. A closed span of W microseconds has at most count * (W div per + 1) tuples of one key,
by the declared rate. Where values don't matter for omission, at most two retained tuples lie in any omission
interval L, since a third one would lie between two equal ones. Then W has at most 2 * (W div L + 1) partners.

Nothing is said about joins of two streams: either omission leaves few tuples, or a condition over both
decides, which usually holds rarely. With three streams and more the numbers are multiplied.

In a join that no condition bounds in time, a tuple joins all earlier ones. Their number grows for ever.

A join without an equality of keys is a probable mistake, too. It is valid: each tuple joins the tuples of all
keys, and the query runs in a single partition. Most often the equality was forgotten. A query that says
anything else about these keys, such as `a.room = 'k1'` or `a.room < b.room`, is taken to mean what it says.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from tamis.analysis.conjuncts import Analysis, analyse, flatten_and, key_equality
from tamis.analysis.equality_classes import classes
from tamis.bounded.application_time.verdict import open_ended
from tamis.bounded.memory import sentences
from tamis.declarations.streams import StreamDef
from tamis.durations import seconds
from tamis.expressions.nodes import Literal, Type, columns
from tamis.expressions.sql_text import identifier, interval
from tamis.plan.omission import Omission
from tamis.planning.join_verdict import JoinVerdict
from tamis.query.model import Catalog, Query, asof_joins, selects_of


def missing_keys(query: Query, catalog: Catalog) -> tuple[str, ...]:
    """A warning for each stream with KEY columns that no equality connects to the others."""
    found: list[str] = []
    for one in selects_of(query):
        found += _warnings(one, catalog)
    return tuple(dict.fromkeys(found))


def _warnings(query: Query, catalog: Catalog) -> Iterator[str]:
    streams = {
        source.alias: catalog.streams[source.stream]
        for source in query.sources
        if source.stream in catalog.streams
    }
    times = {alias: stream.time for alias, stream in streams.items() if stream.time is not None}
    mentioned: set[tuple[str, str]] = set()
    group = {alias: alias for alias in (source.alias for source in query.sources)}
    for join in asof_joins(query):
        for left, right in join.keys:
            _connect(group, left.alias, right.alias)
    for conjunct in query.all_conjuncts:
        for part in flatten_and(conjunct.expr):
            pair = key_equality(part, times)
            if pair is not None:
                _connect(group, pair[0].alias, pair[1].alias)
            else:
                mentioned |= {(column.alias, column.name) for column in columns(part)}
    for first, second in combinations(streams, 2):
        if group[first] == group[second]:
            continue
        likely = _likely(streams[first], streams[second])
        said = {(first, one) for one, _ in likely} | {(second, other) for _, other in likely}
        if not likely or said & mentioned:
            continue
        _connect(group, first, second)
        one, other = (
            [identifier(f) + "." + identifier(key[i]) for key in likely] for i, f in ((0, first), (1, second))
        )
        equal = " AND ".join(f"{a} = {b}" for a, b in zip(one, other, strict=True))
        every = likely[0][1]
        which = (
            f"the latest tuple of {second}, of any {every}"
            if second in {join.alias for join in asof_joins(query)}
            else f"the tuples of {second} of every {every}"
        )
        yield (
            f"no condition equates keys of {first} and {second}: each tuple of {first} joins {which}. If only"
            f" those of the same {every} are meant, add AND {equal}"
        )


def _connect(group: dict[str, str], first: str, second: str) -> None:
    old, new = group[second], group[first]
    for alias, name in group.items():
        if name == old:
            group[alias] = new


def _likely(first: StreamDef, second: StreamDef) -> list[tuple[str, str]]:
    """The pairs of KEY columns that are probably meant to be equal: those of one name, or the only ones."""
    types: list[Mapping[str, Type]] = [
        {column.name: column.type for column in stream.columns if column.key} for stream in (first, second)
    ]
    named = [(name, name) for name in types[0] if types[1].get(name) is types[0][name]]
    if named or any(len(one) != 1 for one in types):
        return named
    ((left, left_type),), ((right, right_type),) = (one.items() for one in types)
    return [(left, right)] if left_type is right_type else []


# Fewer rows for each reading are an alarm that repeats itself, which episodes group.
_MANY = 100
_SECOND = 1_000_000
_MINUTE = 60 * _SECOND


def growth_warnings(verdict: JoinVerdict) -> tuple[str, ...]:
    """A warning if one tuple of the first source can have many rows; else nothing."""
    analysis = verdict.analysis
    names = analysis.joined.rows  # a tuple under EXISTS gives no row of its own
    if len(names) < 3 or analysis.refused or analysis.contradiction is not None:
        return ()
    if analysis.closure.unconnected():
        return ()
    omissions = {omission.alias: omission for omission in verdict.omissions}
    first, *others = names
    most = {other: _partners(first, omissions[other], analysis) for other in others}
    rows = math.prod(most.values())
    if rows < _MANY:
        return ()
    return (sentences(*_sentences(first, most, rows, verdict)),)


def open_ended_warnings(query: Query, catalog: Catalog) -> tuple[str, ...]:
    """A warning about a join by time that no condition bounds in time."""
    if not open_ended(query, catalog):
        return ()
    later, earlier = analyse(query, catalog).closure.unconnected()[0]
    times = [f"{identifier(one)}.{identifier(_time(query, catalog, one))}" for one in (later, earlier)]
    return (
        sentences(
            f"each row is an alarm, and each tuple of {later} joins all earlier tuples of {earlier} that meet"
            " the conditions: the number of rows of one tuple grows for ever",
            f"bound the times, such as AND {times[0]} <= {times[1]} + {interval(_MINUTE)}, or write SELECT"
            " DISTINCT if each row is wanted once",
        ),
    )


def _time(query: Query, catalog: Catalog, alias: str) -> str:
    (stream,) = (one.stream for one in query.sources if one.alias == alias)
    return str(catalog.streams[stream].time)


def _sentences(first: str, most: dict[str, int], rows: int, verdict: JoinVerdict) -> Iterator[str]:
    analysis = verdict.analysis
    product = " * ".join(f"{count:,}" for count in most.values())
    total = f"{product} = {rows:,}"
    undeclared = [name for name in most if analysis.streams[name].rate is None]
    rate = "at the declared rate"
    if undeclared:
        rate = f"at one reading a second of each key of {' and '.join(undeclared)}"
    span = max(_width(first, other, analysis) for other in most)
    yield (
        f"each row is an alarm, and one tuple of {first} can have up to {total} rows: {rate} it joins that"
        f" many combinations of {' and '.join(most)} within {seconds(span)}"
    )
    shown = {column.alias for output in verdict.query.select for column in columns(output.expr)}
    names = analysis.joined.rows
    hidden = [alias for alias in names if alias not in shown]
    if hidden and len(hidden) < len(names):
        left = [alias for alias in names if alias not in hidden]
        named = " and ".join(hidden)
        yield (
            f"SELECT has no column of {named}: if one alarm for each tuple of {' and '.join(left)} is enough,"
            f" write {named} as WHERE EXISTS (SELECT 1 FROM … WHERE …)"
        )
    else:
        yield (
            f"if one alarm for each tuple of {first} is enough, select columns of {first} alone and write the"
            " others as WHERE EXISTS (SELECT 1 FROM … WHERE …)"
        )
    yield "otherwise shorten the bounds on time"


def _partners(first: str, omission: Omission, analysis: Analysis) -> int:
    """The greatest number of tuples of a source that can join one tuple of the first source."""
    other = omission.alias
    stream, width = analysis.streams[other], _width(first, other, analysis)
    count, per = (1, _SECOND) if stream.rate is None else (stream.rate.count, stream.rate.per)
    keys = 1 if _equated(first, other, stream.key, analysis) else stream.keys or 1
    every = keys * count * (width // per + 1)
    if not omission.interval or not isinstance(omission.value, Literal):
        return every
    if not _equated(first, other, omission.key, analysis):
        return every
    return min(every, 2 * (width // omission.interval + 1))


def _width(first: str, other: str, analysis: Analysis) -> int:
    """The length of the span of time in which the partners of one tuple lie."""
    upper = analysis.closure.upper
    return upper[other, first] + upper[first, other]


def _equated(first: str, other: str, names: Sequence[str], analysis: Analysis) -> bool:
    """True if each of these columns of a source equals a column of the first source."""
    groups = [{(column.alias, column.name) for column in group} for group in classes(analysis.equalities)]
    return all(
        any((other, name) in group and any(alias == first for alias, _ in group) for group in groups)
        for name in names
    )
