"""Bound of the tuples that a join by time keeps: a formula, and a number where rates are declared.

The joiner keeps a tuple x of source S while x may still join a tuple that has not arrived. That is so while
the frontier of some partner p is at most t_x + w(S,p), where w(S,p) is the greatest t_p - t_S that the time
bounds imply. So the kept tuples of one key have event times in a span whose length is at most

    W(S) = max over partners p of ( w(S,p) + delay(p) + L(p) + max_stall(p) ) + max_ahead(S).

The reason: p's frontier is the least event time that a listed shard of p can still publish. This is the
shard's watermark, `delay` behind the newest tuple that it read, or its oldest held tuple, on which omission
decides at most L later. A shard that is silent for `max_stall` is declared gone, so the newest tuple that it
read is at most that far behind the present. No tuple of S is ahead of the present by more than `max_ahead`,
because edges refuse it. If `max_ahead` is 'unlimited', there is no number. A closed span of W microseconds is
covered by W div per + 1 spans of length `per`, so it holds at most count * (W div per + 1) tuples of one key.
Over all keys and sources (a source under EXISTS or NOT EXISTS is its own partner, too; see `Joined.reach`):

    bound = sum over S of keys(S) * count(S) * ( W(S) div per(S) + 1 ).

An alert with max_delay = '0' holds nothing: its L(p) is 0 here.

This is the bound of the query alone. In a fleet, p's tuples may come from a topic that other queries read,
too. The frontier of a topic waits for the tuples that any entry of the topic holds, so the greatest L of the
entries replaces L(p). The bounds that the joiner shows beside its state are larger by this difference
(`tamis_joiner.monitoring.kafka_monitor`).

The number is right only if the streams keep to their declarations. Tamis counts tuples that exceed them, and
an alert rule compares the metric of live tuples with the bound. An unconnected pair of sources has no w, and
every tuple may be needed forever.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tamis.analysis.conjuncts import Analysis
from tamis.bounded.memory import EMPTY, Memory, no_number, sentences, undeclared
from tamis.declarations.streams import StreamDef
from tamis.durations import seconds
from tamis.expressions.nodes import COMPARISONS, Call, Expr, Literal, Type, columns
from tamis.expressions.sql_text import identifier, to_sql
from tamis.expressions.sql_text import interval as interval_text
from tamis.plan.model import Kept
from tamis.plan.omission import Omission
from tamis.query.linear_times import difference_limits
from tamis.wording.bound_units import TIME_BOUNDED

STATELESS = "one stream: each tuple is decided alone"
UNCONNECTED = "join without a bound on time"
_MOST_SECONDS = 1e12  # as microseconds, they fit into 64 bits


def memory(analysis: Analysis, omissions: Sequence[Omission]) -> Memory:
    """The memory that the join of a query needs."""
    if analysis.contradiction:
        return Memory("bounded", 0, "0", EMPTY, f"{analysis.contradiction}, so the query never has a row")
    if len(analysis.aliases) == 1:
        return Memory("bounded", 0, "0", STATELESS, "no tuple is kept for a later one")
    apart = analysis.closure.unconnected()
    if apart:
        return _unknown(analysis, apart) or _unbounded(analysis, apart)
    spans = _spans(analysis, omissions)
    missing = [lack for one in dict.fromkeys(analysis.streams.values()) if (lack := undeclared(one))]
    formula = " + ".join(_term(alias, analysis.streams[alias], spans[alias]) for alias in analysis.aliases)
    longest = _longest(max(spans, key=lambda alias: spans[alias]), analysis, omissions)
    if missing:
        ahead = all(stream.max_ahead is not None for stream in analysis.streams.values())
        reason = sentences(no_number(missing), longest) if ahead else no_number(missing)
        return Memory("bounded", None, formula, TIME_BOUNDED, reason)
    total = sum(one.most() for one in kept(analysis, omissions).values() if one)
    return Memory("bounded", total, formula, TIME_BOUNDED, longest)


def kept(analysis: Analysis, omissions: Sequence[Omission]) -> dict[str, Kept | None]:
    """The bound of the tuples that the join keeps of each source.

    None if nothing bounds the join, if `keys` or `rate` of the source isn't declared, or if its `max_ahead`
    is 'unlimited'.
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
    waits = (wait.total for wait in _waits(alias, analysis, omissions))
    return max(0, *waits) + (analysis.streams[alias].max_ahead or 0)  # without a limit it has no number


@dataclass(frozen=True)
class _Wait:
    """The longest wait of a source for one partner, microseconds."""

    partner: str
    range: int
    delay: int
    held: int
    stall: int

    @property
    def total(self) -> int:
        return self.range + self.delay + self.held + self.stall


def _waits(alias: str, analysis: Analysis, omissions: Sequence[Omission]) -> list[_Wait]:
    held = {omission.alias: omission.interval for omission in omissions}
    return [
        _Wait(p, reach, stream.delay, held[p], stream.max_stall)
        for p, stream in analysis.streams.items()
        if (p != alias or analysis.waits_for_itself(p)) and (reach := analysis.reach(p, alias)) is not None
    ]


def _longest(alias: str, analysis: Analysis, omissions: Sequence[Omission]) -> str:
    """The longest time for which the join keeps a tuple, of source `alias`, and what it consists of."""
    wait = max(_waits(alias, analysis, omissions), key=lambda one: one.total)
    own, partner = analysis.streams[alias], analysis.streams[wait.partner]
    total = seconds(_span(alias, analysis, omissions))
    parts = (
        (own.max_ahead or 0, f"max_ahead of {own.shown_name}"),
        (wait.stall, f"max_stall of {partner.shown_name}"),
        (wait.held, f"omission interval of {wait.partner}"),
        (wait.range, "time range of the join" if analysis.window is None else "length of a window"),
        (wait.delay, f"delay of the WATERMARK of {partner.shown_name}"),
    )
    said = f"a tuple is kept for at most {total} of event time (source {alias})"
    if wait.total <= 0:
        return said  # no tuple of a partner comes later
    said += ": " + " + ".join(f"{seconds(length)} {what}" for length, what in parts if length)
    if wait.stall > (own.max_ahead or 0) + wait.total - wait.stall:
        name = partner.shown_name
        said += (
            f". It is kept so long in case the readings of {name} stop: declare a smaller max_stall for"
            f" {name} if its sources are never silent for {seconds(wait.stall)}"
        )
    return said


def _keys(stream: StreamDef) -> int | None:
    """The number of keys of a stream; 1 without KEY columns, because the rate is then that of the whole
    stream.
    """
    return stream.keys if stream.key else 1


def _kept(stream: StreamDef, span: int) -> Kept | None:
    keys, rate = _keys(stream), stream.rate
    if keys is None or rate is None or stream.max_ahead is None:
        return None
    return Kept(span, keys * rate.count, rate.per)


def _term(alias: str, stream: StreamDef, span: int) -> str:
    keys = _keys(stream)
    number = f"keys({alias})" if keys is None else str(keys)
    time = seconds(span)
    if stream.max_ahead is None:
        time = f"({time} + max_ahead({alias}))"
    if stream.rate is None:
        return f"{number} * rate({alias}) over {time}"
    return f"{number} * {stream.rate.count} * ({time} div {seconds(stream.rate.per)} + 1)"


def _unbounded(analysis: Analysis, apart: list[tuple[str, str]]) -> Memory:
    """`apart`: pairs (i, j) for which a tuple of i may come any time after the tuple of j that it joins."""
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


def _unknown(analysis: Analysis, apart: list[tuple[str, str]]) -> Memory | None:
    """The verdict where a condition on the event times of such a pair isn't read as a bound, but may be one;
    None if there is no such condition.
    """
    for condition in analysis.conditions:
        timed = {c.alias for c in columns(condition) if analysis.times.get(c.alias) == c.name}
        pair = next((pair for pair in apart if timed >= set(pair)), None)
        if pair is None:
            continue
        first, second = sorted(pair, key=analysis.aliases.index)
        return Memory(
            "unknown",
            None,
            "",
            UNCONNECTED,
            f"not proven: {to_sql(condition)} isn't read as a bound on the time between the tuples of"
            f" {pair[0]} and {pair[1]}, and no other condition bounds it{_of_seconds(analysis)}",
            (_repair(first, second, analysis),),
        )
    return None


def _of_seconds(analysis: Analysis) -> str:
    """A sentence on conditions on the seconds between two event times, which are no bounds; else ""."""
    found = []
    for condition in analysis.conditions:
        if isinstance(condition, Call) and condition.op in COMPARISONS:
            left, right = (_as_interval(arg) for arg in condition.args)
            bound = None if left is None or right is None else Call(condition.op, (left, right), Type.BOOLEAN)
            if bound is not None and difference_limits(bound, analysis.times) is not None:
                found.append(to_sql(bound))
    if not found:
        return ""
    return f". EXTRACT(EPOCH FROM …) sets no bound on times: write {' AND '.join(found)}"


def _as_interval(expr: Expr) -> Expr | None:
    """The interval whose seconds `expr` is: a constant, or the seconds of an interval; None for others."""
    if isinstance(expr, Literal) and isinstance(expr.value, int | float) and abs(expr.value) < _MOST_SECONDS:
        return Literal(round(expr.value * 1_000_000), Type.INTERVAL)
    if isinstance(expr, Call) and expr.op == "epoch" and expr.args[0].type is Type.INTERVAL:
        return expr.args[0]
    if isinstance(expr, Call) and expr.op == "abs" and (inner := _as_interval(expr.args[0])) is not None:
        return Call("abs", (inner,), Type.INTERVAL)
    return None


def _spanning(pairs: list[tuple[str, ...]], analysis: Analysis) -> list[tuple[str, str]]:
    """The fewest of these pairs that connect all sources; earlier pairs are preferred."""
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
