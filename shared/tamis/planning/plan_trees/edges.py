"""Operators that edges run: scans with filter and omission, functions over series, and derived streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tamis.declarations.backfill import raw_name
from tamis.durations import exact_text, seconds
from tamis.expressions.nodes import Expr, Literal, conjuncts
from tamis.expressions.sql_text import to_sql
from tamis.plan.model import Entry, Input, Plan, StreamPlan, TopicPlan
from tamis.plan.nodes import Scan
from tamis.plan.omission import bare
from tamis.planning.omission_rules import omitted
from tamis.planning.plan_trees.operators import NOTHING, Details, PlanOperator
from tamis.planning.plan_trees.partial_aggregates import partial_aggregates
from tamis.planning.plan_trees.words import (
    column_names,
    condition,
    detail,
    is_not_null,
    representatives,
    selected,
)
from tamis.query.patterns.watch_text import call_text, window_text
from tamis.watching.series_watcher import SeriesWatcher

# A topic may have a rule for each of thousands of readers.
_MOST_RULES = 3


class EdgeInputs:
    """The edges' half of a query: what they run for each of its inputs. `values`: by alias, those that
    omission compares. They tell the rule of an input from others with the same filter.
    """

    def __init__(self, plan: Plan, values: Mapping[str, Expr | None]) -> None:
        self._plan, self._values = plan, values
        self._streams = {stream.name: stream for stream in plan.streams}
        self._topics = {topic.name: topic for stream in plan.streams for topic in stream.topics}

    def of(self, one: Input) -> PlanOperator:
        """The tree of an input. Where a topic has tuples of other queries, too, the joiner filters again."""
        stream, topic = self._streams[one.stream], self._topics[one.topic]
        wanted = conjuncts(bare(one.filter))
        read = tuple(dict.fromkeys((*one.partition_key, *((one.time,) if one.time else ()), *one.columns)))
        value = self._values.get(one.alias)
        own = [entry for entry in topic.entries if _serves(entry, one, wanted, value)]
        edge = _scan(stream, topic, own, _named(stream, one.alias), read)
        if topic.partials is not None:
            return partial_aggregates(self._plan, stream, topic, topic.partials, edge)
        if all(set(wanted) <= set(conjuncts(entry.filter)) for entry in topic.entries):
            return edge
        return PlanOperator("Filter", "joiner", details=(("filter", condition(wanted)),), inputs=(edge,))

    def derived(self, name: str, topic: TopicPlan) -> PlanOperator:
        """The tree of a derived stream that the edges of the stream `name` write to a topic."""
        stream = self._streams[name]
        return _scan(stream, topic, topic.entries, _named(stream, ""), ())


def filtered(edge: PlanOperator, scan: Scan, sent: Expr | None) -> PlanOperator:
    """The tuples of an occurrence of a stream. The edges send tuples that pass `sent`, which is wider than
    the filter of an occurrence if the query reads the stream several times.
    """
    known = set(conjuncts(bare(sent)))
    left = [one for part in scan.filter for one in conjuncts(part) if bare(one) not in known]
    if not left:
        return edge
    return PlanOperator("Filter", "joiner", details=(("filter", condition(left)),), inputs=(edge,))


def _named(stream: StreamPlan, alias: str) -> str:
    name = raw_name(stream.base or stream.name)
    return name if alias in ("", name) else f"{name} as {alias}"


def _serves(entry: Entry, one: Input, wanted: tuple[Expr, ...], value: Expr | None) -> bool:
    """True if the entry is the one for an input with these conditions and this compared value. It also
    excludes tuples without a value, where this is proven safe.
    """
    interval, found = one.interval, conjuncts(entry.filter)
    alike = set(wanted) <= set(found) and all(one in wanted or is_not_null(one) for one in found)
    if not alike or not interval:
        return alike and not entry.interval and entry.representation == one.representation
    return 0 < entry.interval <= interval and entry.value == value


def _scan(
    stream: StreamPlan, topic: TopicPlan, own: Sequence[Entry], subject: str, read: tuple[str, ...]
) -> PlanOperator:
    """The scan of a stream's sources. `own`: the rules of the topic for this query alone."""
    sent = detail("topic", topic.name) if topic.partials is None else ()
    scan = PlanOperator(
        "Scan",
        "edge",
        subject,
        (
            *_rules(topic.entries, own),
            *_history(stream),
            *(() if topic.select else (*detail("columns", column_names(read)), *sent)),
        ),
        _held(topic.entries),
        inputs=tuple(_series(stream)),
    )
    if not topic.select:
        return scan
    columns = (*detail("select", selected(topic.select)), *sent)
    return PlanOperator("Project", "edge", "", columns, inputs=(scan,))


def _rules(entries: Sequence[Entry], own: Sequence[Entry]) -> Details:
    """The rules by which edges publish to a topic: a tuple that one of them retains is published. A query
    without a rule of its own is served by a wider one, which omits nothing.
    """
    details: Details = ()
    for entry in own or [one for one in entries if _whole(one)][:_MOST_RULES]:
        details += (*detail("filter", condition(conjuncts(entry.filter))), *_omission(entry))
    others = len(entries) - max(len(own), 1)
    if others > 0:
        rules = "1 rule" if others == 1 else f"{others} rules"
        details += (("also sent", f"tuples by {rules} of other queries on the topic"),)
    return details


def _omission(entry: Entry) -> Details:
    if entry.representation is not None:
        return (("representatives", representatives(entry.representation.covers)),)
    if not _omits(entry):
        return ()
    value = None if isinstance(entry.value, Literal) or entry.value is None else to_sql(entry.value)
    decided = "" if entry.max_delay is None else f"after at most {seconds(entry.max_delay)} (max_delay)"
    return (
        ("omission", omitted(entry.value, entry.sides, entry.interval, entry.window)),
        *detail("value", value or ""),
        *detail("for each", column_names(entry.omission_key)),
        *detail("decided", decided),
    )


def _whole(entry: Entry) -> bool:
    return not _omits(entry) and entry.representation is None


def _omits(entry: Entry) -> bool:
    """True if edges wait for later tuples that may make a tuple superfluous."""
    return bool(entry.interval) and entry.max_delay != 0


def _held(entries: Sequence[Entry]) -> str:
    """The state of edges for omission and representatives."""
    omitting = [one for one in entries if _omits(one)]
    waits = [one.interval if one.max_delay is None else min(one.interval, one.max_delay) for one in omitting]
    held = [f"tuples until omission is decided, for at most {seconds(max(waits))}"] if waits else []
    most = sum(one.representation.most for one in entries if one.representation is not None)
    held += [f"at most {most:,} representatives in each shard"] if most else []
    return " and ".join(held) or NOTHING


def _history(stream: StreamPlan) -> Details:
    """The part of the stream that edges read once more for an alert with the option `from`."""
    if stream.origin is None:
        return ()
    begin = "the beginning" if stream.begin is None else exact_text(stream.begin)
    return (("history", f"read once more, from {begin}"),)


def _series(stream: StreamPlan) -> Iterator[PlanOperator]:
    """Patterns and window functions, whose values edges add to the stream's tuples."""
    each = "" if not stream.series_key else f" of each {column_names(stream.series_key)}"
    if stream.watches:
        watcher = SeriesWatcher(stream.watches)
        calls = tuple(("call", call_text(watch)) for watch in stream.watches)
        kept = f"{_latest(watcher.most_needed)}{each}, in {watcher.bytes_per_key} bytes"
        yield PlanOperator("Patterns", "edge", "", calls, kept)
    if stream.window_functions:
        calls = tuple(("call", window_text(one)) for one in stream.window_functions)
        frames = [one.frame for one in stream.window_functions]
        rows = max((frame.first for frame in frames if frame.first is not None), default=0)
        spans = [frame.span for frame in frames if frame.first is None]
        latest = [_latest(rows)] if rows else []
        latest += [f"the readings of the last {seconds(max(spans))}"] if spans else []
        yield PlanOperator("WindowFunctions", "edge", "", calls, f"{' and '.join(latest) or NOTHING}{each}")


def _latest(readings: int) -> str:
    return "the latest reading" if readings == 1 else f"the latest {readings} readings"
