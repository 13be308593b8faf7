"""How many tuples a join by time can ever keep, as a formula and, where `keys` and `rate` are declared, a
number.

The joiner keeps a tuple x of source S while a tuple that is still to come may meet it: while the frontier
of some partner p is at most t_x + w(S,p), where w(S,p) is the greatest t_p - t_S that the time bounds
imply. So the kept tuples of one key have event times in a span whose length is at most

    W(S) = max over partners p of ( w(S,p) + delay(p) + L(p) + max_stall(p) ) + max_ahead(S).

For p's frontier is the least event time that a listed shard of p can still publish. That is its watermark,
`delay` behind the newest tuple that it read, or its oldest held tuple, which omission decides at most L
after it. A shard that is silent for `max_stall` is declared gone, so that the newest tuple read lies at
most that far behind the present; and no tuple of S lies ahead of the present by more than `max_ahead` (0
where it is not declared: then event times are taken not to run ahead). A closed span of W microseconds
holds at most count * (W div per + 1) tuples of one key, since it is covered by that many spans of `per`.
Over all keys and sources:

    bound = sum over S of keys(S) * count(S) * ( W(S) div per(S) + 1 ).

That is the query's by itself. In a fleet p's tuples may come by a topic that others read as well: its
frontier waits for what any entry of the topic holds, so the greatest L among them stands for L(p), and the
bounds that the joiner shows beside its state are larger by that (`tamis_joiner.observer`).

The number rests on the declarations being kept: Tamis counts what exceeds it, and the metric of live tuples
beside the bound has an alert rule. An unconnected pair of sources has no w, and every tuple may be needed
for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tamis.expressions.sql_text import identifier
from tamis.expressions.sql_text import interval as interval_text
from tamis.planning.analysis import Analysis
from tamis.planning.omission import Omission
from tamis.planning.plan import Kept
from tamis.planning.spans import seconds
from tamis.query.model import StreamDef

TIME_BOUNDED = "time-bounded join (rate x span x keys)"
STATELESS = "one stream: each tuple is decided alone"
EMPTY = "contradiction: nothing can join"
UNCONNECTED = "join without a bound on time"


@dataclass(frozen=True)
class Memory:
    """The verdict on a query's memory, with the fields that `tamis explain --json` prints."""

    verdict: Literal["bounded", "unbounded", "unknown"]
    bound: int | None
    formula: str
    theorem: str
    reason: str
    repairs: tuple[str, ...] = ()
    witness: str | None = None


def memory(analysis: Analysis, omissions: Sequence[Omission]) -> Memory:
    """How much memory the join of a query needs."""
    if analysis.contradiction:
        return Memory(
            "bounded", 0, "0", EMPTY, f"warning: {analysis.contradiction}, so the query never has a row"
        )
    if len(analysis.aliases) == 1:
        return Memory("bounded", 0, "0", STATELESS, "no tuple is kept for a later one")
    apart = analysis.closure.unconnected()
    if apart:
        return _unbounded(analysis, apart)
    spans = _spans(analysis, omissions)
    undeclared = [
        f"{stream.name}: {_missing(stream)}"
        for stream in dict.fromkeys(analysis.streams.values())
        if _missing(stream)
    ]
    formula = " + ".join(_term(alias, analysis.streams[alias], spans[alias]) for alias in analysis.aliases)
    if undeclared:
        reason = "bounded by time; no number, since it is not declared " + ", ".join(undeclared)
        return Memory("bounded", None, formula, TIME_BOUNDED, reason)
    total = sum(one.most() for one in kept(analysis, omissions).values() if one)
    longest = max(spans, key=lambda alias: spans[alias])
    reason = f"a tuple is kept for at most {seconds(spans[longest])} of event time (source {longest})"
    return Memory("bounded", total, formula, TIME_BOUNDED, reason)


def kept(analysis: Analysis, omissions: Sequence[Omission]) -> dict[str, Kept | None]:
    """What the join can ever keep of each source; None where nothing bounds the join, or `keys` or `rate` of
    the source isn't declared.
    """
    if analysis.contradiction or len(analysis.aliases) == 1:
        return dict.fromkeys(analysis.aliases, Kept(0, 0, 1))
    if analysis.closure.unconnected():
        return dict.fromkeys(analysis.aliases)
    return {
        alias: _kept(analysis.streams[alias], span) for alias, span in _spans(analysis, omissions).items()
    }


def _spans(analysis: Analysis, omissions: Sequence[Omission]) -> dict[str, int]:
    return {alias: _span(alias, analysis, omissions) for alias in analysis.aliases}


def _span(alias: str, analysis: Analysis, omissions: Sequence[Omission]) -> int:
    """W of the module's docstring, microseconds."""
    held = {omission.alias: omission.interval for omission in omissions}
    waits = (
        analysis.closure.upper[partner, alias] + stream.delay + held[partner] + stream.max_stall
        for partner, stream in analysis.streams.items()
        if partner != alias
    )
    return max(0, *waits) + (analysis.streams[alias].max_ahead or 0)


def _keys(stream: StreamDef) -> int | None:
    """How many keys a stream has; without KEY columns its rate is that of the whole stream."""
    return stream.keys if stream.key else 1


def _missing(stream: StreamDef) -> str:
    names = [name for name, value in (("keys", _keys(stream)), ("rate", stream.rate)) if value is None]
    return " and ".join(names)


def _kept(stream: StreamDef, span: int) -> Kept | None:
    keys, rate = _keys(stream), stream.rate
    return None if keys is None or rate is None else Kept(span, keys * rate.count, rate.per)


def _term(alias: str, stream: StreamDef, span: int) -> str:
    keys = _keys(stream)
    number = f"keys({alias})" if keys is None else str(keys)
    if stream.rate is None:
        return f"{number} * rate({alias}) over {seconds(span)}"
    per = seconds(stream.rate.per)
    return f"{number} * {stream.rate.count} * ({seconds(span)} div {per} + 1)"


def _unbounded(analysis: Analysis, apart: list[tuple[str, str]]) -> Memory:
    """`apart`: pairs (i, j) such that a tuple of i may come any time after the one of j that it joins."""
    later, earlier = apart[0]
    pairs = list(dict.fromkeys(tuple(sorted(pair, key=analysis.aliases.index)) for pair in apart))
    named = ", ".join(f"{a} and {b}" for a, b in pairs)
    repair = " ".join(_repair(a, b, analysis) for a, b in _spanning(pairs, analysis))  # all of them together
    return Memory(
        "unbounded",
        None,
        "",
        UNCONNECTED,
        f"nothing bounds the time between the tuples of {named} that join: every tuple of {earlier} is kept"
        f" for ever, since a tuple of {later} that joins it may always come later",
        (repair,),
        f"n tuples of {earlier} with different values, one a second, and none of {later}: the next tuple of"
        f" {later} may join any subset of them",
    )


def _spanning(pairs: list[tuple[str, ...]], analysis: Analysis) -> list[tuple[str, str]]:
    """The fewest of these pairs that connect all sources, first ones first."""
    group = {alias: alias for alias in analysis.aliases}
    for i in analysis.aliases:
        for j in analysis.aliases:
            if (i, j) in analysis.closure.upper and (j, i) in analysis.closure.upper:
                old, new = group[j], group[i]
                group = {alias: new if g == old else g for alias, g in group.items()}
    chosen: list[tuple[str, str]] = []
    for a, b in pairs:
        if group[a] != group[b]:
            old, new = group[b], group[a]
            group = {alias: new if g == old else g for alias, g in group.items()}
            chosen.append((a, b))
    return chosen


def _repair(a: str, b: str, analysis: Analysis) -> str:
    first = f"{identifier(a)}.{identifier(analysis.times[a])}"
    second = f"{identifier(b)}.{identifier(analysis.times[b])}"
    limit = interval_text(60_000_000)
    return f"AND {second} BETWEEN {first} - {limit} AND {first} + {limit}"
