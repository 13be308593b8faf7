"""Decision on a query of any kind, before it runs.

A join by time is proved (`tamis.planning.join_verdict`). All other kinds keep every tuple that passes their
filters, and their memory decides.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator
from dataclasses import replace
from typing import assert_never

from tamis.analysis.conjuncts import Analysis, analyse
from tamis.analysis.contradictory_having import contradictory_having
from tamis.bounded import latest_values, nested_queries, sessions, timed_joins, windows
from tamis.bounded.application_time import verdict as application_time
from tamis.bounded.application_time.static_relations import query_inputs
from tamis.bounded.application_time.translate import translated
from tamis.bounded.memory import Memory, sentences
from tamis.bounded.timeless import verdict as timeless
from tamis.bounded.timeless.translate import translate
from tamis.durations import seconds
from tamis.expressions.nodes import aliases, conjunction
from tamis.plan.omission import Omission, bare
from tamis.planning.join_verdict import in_words, judge, read_by
from tamis.planning.missing_watermarks import lacking
from tamis.planning.missing_windows import windows_instead
from tamis.planning.verdict import InputVerdict, Verdict, kept_whole, kind_of, never_a_row, whole_input
from tamis.query.model import (
    AlertDef,
    ApplicationTimeSelect,
    ApplicationTimeUnion,
    Catalog,
    DerivedDef,
    GroupByQuery,
    InApplicationTime,
    InnerQuery,
    JoinByTime,
    LatestValueJoin,
    NestedQuery,
    OuterQuery,
    Query,
    SessionGroupBy,
    TimelessGroupBy,
    TimelessQuery,
    TimelessSelect,
    TimelessUnion,
    WindowGroupBy,
    all_queries,
    last_query,
    selects_of,
)
from tamis.query.patterns.watch_text import WatchText


def verdict_on(definition: AlertDef | DerivedDef, catalog: Catalog) -> Verdict:
    """The verdict on a query, cached for the same definitions and versions of table files.

    Raises InputError if a table can't be read.
    """
    found: Verdict = catalog.results.get(*_key(definition, catalog), lambda: _decide(definition, catalog))
    return found


def learn(definition: AlertDef | DerivedDef, catalog: Catalog, found: Verdict) -> None:
    """Cache a verdict that another process has made of an equal definition and an equal catalogue."""
    catalog.results.put(*_key(definition, catalog), found)


def _key(definition: AlertDef | DerivedDef, catalog: Catalog) -> tuple[tuple[object, ...], Hashable]:
    versions = tuple(_file_versions(definition, catalog))
    return (definition, *read_by(definition, catalog)), ("verdict of any kind", versions)


def _file_versions(definition: AlertDef | DerivedDef, catalog: Catalog) -> Iterator[Hashable]:
    """The versions of the table files that a query reads."""
    for name in dict.fromkeys(source.stream for source in definition.query.sources):
        if (table := catalog.tables.get(name)) is not None:
            try:
                file = os.stat(table.path)
                yield table.path, file.st_mtime_ns, file.st_size, file.st_ino
            except OSError:
                yield table.path, None


def _decide(definition: AlertDef | DerivedDef, catalog: Catalog) -> Verdict:
    catalog = catalog.reading(definition)
    query = definition.query
    verdict = _by_kind(definition, catalog)
    never = next(
        (reason for one in all_queries(query) if (reason := _no_group(one, catalog)) is not None), None
    )
    if never is not None:
        # What would bound the memory, or give the bound a number, leads away from the mistake.
        memory = replace(verdict.memory, repairs=())
        verdict = replace(
            verdict, accepted=False, reason=f"{never}, so the query never has a row", memory=memory
        )
    if not query.watched:
        return verdict
    words = WatchText(query.watched)
    streams = {stream.name: stream for stream in query.watched}
    return replace(
        verdict,
        reason=words(verdict.reason),
        inputs=tuple(
            replace(
                one,
                omission=replace(one.omission, reason=words(one.omission.reason)),
                watched=streams.get(one.stream),
            )
            for one in verdict.inputs
        ),
        memory=in_words(verdict.memory, words),
    )


def _by_kind(definition: AlertDef | DerivedDef, catalog: Catalog) -> Verdict:
    query = definition.query
    inlined = isinstance(definition, DerivedDef) and definition.inlined
    if inlined and not isinstance(last_query(query), GroupByQuery):
        kept = Memory("bounded", 0, "0", "inlined where it is read", "nothing is kept for the stream itself")
        what = "rows of aggregates, which are" if isinstance(query, NestedQuery) else "a join, which is"
        reason = f"{what} put in where it is read: each alert that reads it is decided with it"
        return kept_whole(definition, kept, reason, ())
    match query:
        case JoinByTime():
            in_time = application_time.decided(definition, catalog)
            if in_time is not None and in_time.verdict == "bounded":
                return replace(_in_time(definition, query, catalog, in_time), open_ended=True)
            return _join(definition, catalog, in_time)
        case LatestValueJoin():
            return _latest_values(definition, query, catalog)
        case WindowGroupBy():
            memory = windows.memory_verdict(query, catalog)
            reason = "a row for each window and group, once the watermark has passed the window's end"
            return kept_whole(definition, memory, reason, tuple(_windowed_inputs(query, catalog)))
        case SessionGroupBy():
            memory = sessions.memory_verdict(query, catalog)
            reason = "a row for each session and group, once the watermark is later than the session's end"
            return kept_whole(definition, memory, reason, tuple(_windowed_inputs(query, catalog)))
        case TimelessSelect() | TimelessGroupBy() | TimelessUnion():
            return _timeless(definition, query, catalog)
        case ApplicationTimeSelect() | ApplicationTimeUnion():
            memory = lacking(query, catalog, application_time.memory_verdict(query, catalog))
            return _in_time(definition, query, catalog, memory)
        case NestedQuery():
            return _nested(definition, query, catalog)
        case _:
            assert_never(query)


def _no_group(query: Query, catalog: Catalog) -> str | None:
    """The reason why HAVING removes all groups; None if it may not."""
    streams = {
        source.alias: stream
        for source in query.sources
        if (stream := source.aggregated or catalog.streams.get(source.stream)) is not None
    }
    return contradictory_having(query, streams)


# ---- joins by time


def _join(definition: AlertDef | DerivedDef, catalog: Catalog, in_time: Memory | None) -> Verdict:
    """A join by time. `in_time`: the verdict in application time on an open-ended join that isn't bounded."""
    join = judge(definition, catalog)
    memory, refusal = join.memory, join.refusal
    if in_time is not None:
        # The join by time keeps all tuples; whether any evaluator must, an example says where one was run.
        both = sentences(memory.reason, in_time.reason)
        if in_time.verdict == "unbounded":
            memory = replace(in_time, reason=both, repairs=in_time.repairs or memory.repairs)
            refusal = refusal and both
        else:
            # Why nothing was proved helps few users: it stands with the memory.
            refusal = refusal and memory.reason
            memory = replace(memory, reason=both)
    reason = refusal or f"partitioned by {join.keys.reason}"
    if refusal is None and not any(join.keys.partition.values()):
        reason = join.keys.reason
    if refusal is None and join.analysis.absences:
        reason = sentences(reason, _decision_time(join.analysis))
    waiting = not (isinstance(definition, AlertDef) and definition.options.max_delay == 0)
    inputs = tuple(_joined(omission, join.analysis, waiting) for omission in join.omissions)
    return Verdict(definition.name, kind_of(definition), refusal is None, reason, inputs, memory, join)


def _joined(omission: Omission, analysis: Analysis, waiting: bool) -> InputVerdict:
    """An input of a join by time. `waiting`: edges hold its tuples until the later ones are there."""
    alias = omission.alias
    if omission.interval and not waiting and analysis.window is None:
        why = "no omission: with max_delay = '0' edges publish each tuple at once"
        omission = replace(omission, reason=why)
    return InputVerdict(
        alias,
        analysis.streams[alias].name,
        omission,
        bare(conjunction(analysis.filters[alias])),
        bare(conjunction(analysis.implied.get(alias, ()))),
        analysis.window,
    )


def _decision_time(analysis: Analysis) -> str:
    """The event time at which a row of NOT EXISTS is certain."""
    rows = analysis.joined.rows
    latest = max(analysis.reach(alias, row) or 0 for alias in analysis.absent for row in rows)
    after = f"{seconds(latest)} past" if latest > 0 else "past"
    return f"an alarm is raised when event time is {after} its reading: no reading can exclude it any more"


# ---- queries that keep every tuple


def _timeless(definition: AlertDef | DerivedDef, query: TimelessQuery, catalog: Catalog) -> Verdict:
    memory = lacking(query, catalog, timeless.memory_verdict(query, catalog))
    filtered = [(one, translate(one, catalog).filters) for one in selects_of(query)]
    why = "a tuple without time can't be omitted by its neighbours in time"
    reason = "streams without time: every tuple counts, whenever it comes"
    if (in_windows := windows_instead(query, catalog)) is not None:
        why = "no omission: every tuple counts for the aggregates"
        reason = "without windows every tuple counts once, when it comes, however late it is"
        if memory.verdict != "bounded":
            memory = replace(memory, repairs=(in_windows, *memory.repairs))
    inputs = (
        whole_input(source, conjunction(filters[source.alias]), why)
        for one, filters in filtered
        for source in one.sources
    )
    return kept_whole(definition, memory, reason, tuple(inputs))


def _latest_values(definition: AlertDef | DerivedDef, query: LatestValueJoin, catalog: Catalog) -> Verdict:
    """A query with ASOF JOIN."""
    if not any(join.outer for join in query.joins):
        # A row of inner joins meets all conditions, as in a join by time. LEFT JOIN may have NULL.
        filters = tuple(conjunct for join in query.joins for conjunct in join.filters)
        plain = JoinByTime(query.sources, (*query.conjuncts, *filters), query.select)
        contradiction = analyse(plain, catalog).contradiction
        if contradiction is not None:
            return never_a_row(definition, contradiction)
    memory = latest_values.memory_verdict(query, catalog)
    first = query.sources[0]
    own = tuple(c.expr for c in query.conjuncts if aliases(c.expr) == {first.alias})
    joined = " and ".join(join.alias for join in query.joins)
    why = f"no omission: a tuple at another time may have another latest tuple of {joined}"
    inputs = [whole_input(first, conjunction(own), why)]
    for source, join in zip(query.sources[1:], query.joins, strict=True):
        why = "no omission: each tuple may be the latest, and hides the ones before it even if WHERE drops it"
        inputs.append(whole_input(source, conjunction(latest_values.candidate_filters(query, join)), why))
    reason = f"a row for each tuple of {first.alias}, when the watermarks have passed it"
    return kept_whole(definition, memory, reason, tuple(inputs))


def _in_time(
    definition: AlertDef | DerivedDef,
    query: InApplicationTime | JoinByTime,
    catalog: Catalog,
    memory: Memory,
) -> Verdict:
    """A query in application time."""
    reason = "evaluated in application time: a row appears when event time has passed its last tuple"
    return kept_whole(definition, memory, reason, tuple(_inputs_in_time(query, catalog)))


def _inputs_in_time(query: InApplicationTime | JoinByTime, catalog: Catalog) -> Iterator[InputVerdict]:
    for one in selects_of(query):
        filters = translated(one, query_inputs(one, catalog)).filters
        for source in one.sources:
            if source.stream in catalog.tables:
                why = "a table: it is read as it is"
            elif any(other.aggregated is not None for other in one.sources):
                why = "no omission: every tuple counts beside rows of aggregates"
            else:
                why = "no omission: every tuple counts, however long ago it came"
            yield whole_input(source, conjunction(filters[source.alias]), why)


def _windowed_inputs(query: WindowGroupBy | SessionGroupBy, catalog: Catalog) -> Iterator[InputVerdict]:
    filters = translate(query, query_inputs(query, catalog).catalog).filters
    what = "windows" if isinstance(query, WindowGroupBy) else "sessions"
    for source in query.sources:
        why = f"no omission: every tuple counts for the aggregates of its {what}"
        if source.stream in catalog.tables:
            why = "a table: it is read as it is"
        whole = whole_input(source, conjunction(filters[source.alias]), why)
        yield replace(whole, window=source.window, session=source.session)


def _nested(definition: AlertDef | DerivedDef, query: NestedQuery, catalog: Catalog) -> Verdict:
    """A query over rows of aggregates: all of its queries together."""
    memory = _nested_memory(query, catalog)
    timed = [one for one in all_queries(query) if isinstance(one, JoinByTime)]
    never = next((one for join in timed if (one := analyse(join, catalog).contradiction) is not None), None)
    if never is not None:
        return never_a_row(definition, never)
    in_order = "rows of aggregates come when their windows have ended, and are taken in order of event time"
    if timed:
        in_order = (
            "tuples are joined when the watermarks have passed them by the bounds on their times; the row of"
            " a window comes when all of its tuples are joined"
        )
    return kept_whole(definition, memory, in_order, tuple(dict.fromkeys(_nested_inputs(query, catalog))))


def _nested_memory(query: InnerQuery | OuterQuery, catalog: Catalog) -> Memory:
    """The verdict on the memory of a nested query, or of one of its queries."""
    match query:
        case NestedQuery():
            return nested_queries.memory_verdict(query, catalog, _nested_memory)
        case JoinByTime():
            return timed_joins.memory_verdict(query, catalog)
        case WindowGroupBy():
            return windows.memory_verdict(query, catalog)
        case SessionGroupBy():
            return sessions.memory_verdict(query, catalog)
        case ApplicationTimeSelect():
            return application_time.memory_verdict(query, catalog)
        case _:
            assert_never(query)


def _nested_inputs(query: InnerQuery | OuterQuery, catalog: Catalog) -> Iterator[InputVerdict]:
    """The raw streams and tables of a nested query, those of inner queries first."""
    match query:
        case NestedQuery():
            for stream in query.streams:
                yield from _nested_inputs(stream.query, catalog)
            names = {stream.name for stream in query.streams}
            within = _nested_inputs(query.query, catalog.with_streams(query.streams))
            yield from (one for one in within if one.stream not in names)
        case JoinByTime():
            filters = analyse(query, catalog).filters
            why = "no omission: every combination counts for the aggregates of its windows"
            for source in query.sources:
                yield whole_input(source, conjunction(filters[source.alias]), why)
        case WindowGroupBy() | SessionGroupBy():
            yield from _windowed_inputs(query, catalog)
        case ApplicationTimeSelect():
            yield from _inputs_in_time(query, catalog)
        case _:
            assert_never(query)
