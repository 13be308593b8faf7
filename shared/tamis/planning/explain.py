"""The explanation of a query before it runs, as `tamis explain` and the registry give it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from tamis.analysis.conjuncts import Analysis, analyse
from tamis.analysis.contradictory_having import contradictory_having
from tamis.bounded import nested_queries, sessions, timed_joins, windows
from tamis.bounded.application_time import verdict as application_time
from tamis.bounded.application_time.static_relations import query_inputs
from tamis.bounded.application_time.translate import translated
from tamis.bounded.memory import EMPTY, Memory, sentences
from tamis.bounded.timeless.translate import translate
from tamis.bounded.timeless.verdict import memory_verdict, proof_of
from tamis.durations import seconds
from tamis.expressions.nodes import Literal, conjunction
from tamis.expressions.sql_text import to_sql
from tamis.plan.omission import Omission, bare
from tamis.planning.explanations import latest_values
from tamis.planning.explanations.explanation import Explanation, SourceExplanation
from tamis.planning.explanations.greatest_share import most_omitted
from tamis.planning.explanations.history import history_in_words
from tamis.planning.explanations.impossible_values import impossible_values
from tamis.planning.explanations.missing_keys import warnings
from tamis.planning.explanations.probable_mistakes import probable_mistakes
from tamis.planning.explanations.row_growth import growth_warnings, open_ended_warnings
from tamis.planning.explanations.silent_sources import silence_warnings
from tamis.planning.missing_watermarks import lacking
from tamis.planning.verdict import Verdict, in_words, judge
from tamis.query.model import AlertDef, Catalog, DerivedDef, Query
from tamis.query.patterns.watch_text import WatchText
from tamis.sharing.selectivity import SelectivityEstimator, StreamStatistics

INLINED = "inlined where it is read"


def explain(catalog: Catalog, query: str | AlertDef | DerivedDef) -> Explanation:
    """The explanation of an alert or a derived stream, by its name in `catalog` or itself.

    Raises KeyError if the catalogue has no query of that name, InputError where a table can't be read.
    """
    definition = query
    if isinstance(definition, str):
        named: dict[str, AlertDef | DerivedDef] = {**catalog.derived, **catalog.alerts}
        definition = named[definition]
    reading = catalog.reading(definition)
    nested = definition.query.nested
    joined = reading if nested is None else reading.with_streams(nested.streams)
    found = _explain(reading, definition)
    refusals = (_no_group(one, reading) for one in definition.query.queries)
    never = next((one for one in refusals if one is not None), None)
    if never is not None:
        # What would bound the memory, or give the bound a number, leads away from the mistake.
        memory = replace(found.memory, repairs=())
        found = replace(found, accepted=False, reason=f"{never}, so the query never has a row", memory=memory)
    # A missing equality of keys is the reason for many rows, too.
    queries = definition.query.queries
    warned = tuple(one for query in queries for one in warnings(query, joined)) or found.warnings
    doubted = [one for query in queries for one in probable_mistakes(query, joined) if found.accepted]
    doubted += impossible_values(definition.query, joined) if found.accepted else ()
    silences = silence_warnings(definition.query, reading)
    found = replace(found, warnings=tuple(dict.fromkeys((*warned, *doubted, *silences))))
    found = replace(found, history=history_in_words(definition, catalog))
    if not definition.query.watched:
        return found
    watched = definition.query.watched
    words = WatchText(watched)
    streams = {stream.name: stream for stream in watched}
    return replace(
        found,
        reason=words(found.reason),
        streams=tuple(source.in_words(streams, words) for source in found.streams),
        memory=in_words(found.memory, words),
        warnings=tuple(map(words, found.warnings)),
    )


def _no_group(query: Query, catalog: Catalog) -> str | None:
    """The reason why HAVING removes all groups; None if it may not."""
    streams = {
        source.alias: stream
        for source in query.sources
        if (stream := source.aggregated or catalog.streams.get(source.stream)) is not None
    }
    return contradictory_having(query, streams)


def _explain(catalog: Catalog, definition: AlertDef | DerivedDef) -> Explanation:
    kind = "alert" if isinstance(definition, AlertDef) else "stream"
    query = definition.query
    if isinstance(definition, DerivedDef) and definition.inlined and query.last.grouping is None:
        kept = Memory("bounded", 0, "0", INLINED, "nothing is kept for the stream itself")
        what = "a join, which is" if query.nested is None else "rows of aggregates, which are"
        reason = f"{what} put in where it is read: each alert that reads it is decided with it"
        return Explanation(definition.name, kind, True, reason, (), kept)
    if query.nested is not None:
        return _nested(definition, catalog, kind)
    if definition.query.timeless:
        return _timeless(definition, catalog, kind)
    if definition.query.asof:
        return latest_values.explained(definition, catalog, kind)
    if definition.query.grouping is not None:
        return _windowed(definition, catalog, kind)
    if definition.query.in_time:
        decided = application_time.memory_verdict(definition.query, catalog)
        return _in_time(definition, catalog, kind, lacking(definition.query, catalog, decided))
    found = application_time.decided(definition, catalog)
    if found is not None and found.verdict == "bounded":
        grows = open_ended_warnings(definition.query, catalog)
        return replace(_in_time(definition, catalog, kind, found), warnings=grows)
    verdict = judge(definition, catalog)
    if found is not None:
        # The join by time keeps all tuples; whether any evaluator must, an example says where one was run.
        both = sentences(verdict.memory.reason, found.reason)
        if found.verdict == "unbounded":
            found = replace(found, reason=both, repairs=found.repairs or verdict.memory.repairs)
            said = both
        else:
            # Why nothing was proved helps few users: it stands with the memory.
            said, found = verdict.memory.reason, replace(verdict.memory, reason=both)
        verdict = replace(verdict, memory=found, refusal=verdict.refusal and said)
    reason = verdict.refusal or f"partitioned by {verdict.keys.reason}"
    if verdict.refusal is None and not any(verdict.keys.partition.values()):
        reason = verdict.keys.reason
    if verdict.refusal is None and verdict.analysis.absences:
        reason = sentences(reason, _decision_time(verdict.analysis))
    sources = tuple(_explained(omission, verdict) for omission in verdict.omissions)
    if isinstance(definition, AlertDef) and definition.options.max_delay == 0:
        sources = tuple(map(_without_waiting, sources))
    grows = growth_warnings(verdict) if verdict.refusal is None else ()
    return Explanation(
        definition.name, kind, verdict.refusal is None, reason, sources, verdict.memory, warnings=grows
    )


def _without_waiting(source: SourceExplanation) -> SourceExplanation:
    """The source of an alert with max_delay = '0': edges publish each tuple before later ones come."""
    if source.interval is None or source.window is not None:
        return source
    why = "no omission: with max_delay = '0' edges publish each tuple at once"
    return replace(source, reason=why, most_omitted=0.0)


def _decision_time(analysis: Analysis) -> str:
    """The event time at which a row of NOT EXISTS is certain."""
    absent = analysis.absent
    rows = analysis.joined.rows
    latest = max(analysis.reach(alias, row) or 0 for alias in absent for row in rows)
    after = f"{seconds(latest)} past" if latest > 0 else "past"
    return f"an alarm is raised when event time is {after} its reading: no reading can exclude it any more"


def estimated(
    catalog: Catalog, explained: Explanation, readings: Mapping[str, StreamStatistics]
) -> Explanation:
    """The explanation with the estimated share of the stream that passes each predicate.

    The estimates use `readings` of streams and declared domains.
    """

    def with_share(source: SourceExplanation) -> SourceExplanation:
        stream = source.watched or catalog.streams.get(source.stream)
        filter_ = conjunction(tuple(one for one in (source.filter, source.implied) if one is not None))
        if filter_ is None or stream is None:
            return source
        share = SelectivityEstimator(stream, readings.get(source.stream)).share(filter_)
        return replace(source, selectivity=share)

    return replace(explained, streams=tuple(map(with_share, explained.streams)))


def grown(catalog: Catalog, query: AlertDef | DerivedDef, explained: Explanation) -> Explanation:
    """The explanation with measurements of an unbounded query's example on more and more tuples."""
    if explained.memory.verdict != "unbounded":
        return explained
    asked, catalog = query.query, catalog.reading(query)
    if asked.nested is not None:
        return explained  # examples are only of single queries
    if asked.in_time or application_time.open_ended(asked, catalog):
        in_time = application_time.proof_of(asked, catalog)
        growth = () if in_time is None else tuple(in_time.growth())
    else:
        found = proof_of(asked, catalog) if asked.timeless else None
        growth = () if found is None else tuple(found.growth())
    words = WatchText(asked.watched)
    return replace(explained, growth=tuple(replace(one, stream=words(one.stream)) for one in growth))


def _timeless(definition: AlertDef | DerivedDef, catalog: Catalog, kind: str) -> Explanation:
    """A query over streams without time: nothing is omitted, and its memory decides."""
    found = lacking(definition.query, catalog, memory_verdict(definition.query, catalog))
    allowed = isinstance(definition, AlertDef) and definition.options.allow_unbounded
    accepted = found.verdict == "bounded" or allowed
    reason = "streams without time: every tuple counts, whenever it comes" if accepted else found.reason
    members = definition.query.members or (definition.query,)
    filtered = [(source, translate(one, catalog).filters) for one in members for source in one.sources]
    sources = []
    for source, filters in filtered:
        filter_ = bare(conjunction(filters[source.alias]))
        why = "a tuple without time can't be omitted by its neighbours in time"
        sources.append(SourceExplanation.without_omission(source, filter_, why))
    return Explanation(definition.name, kind, accepted, reason, tuple(sources), found)


def _in_time(definition: AlertDef | DerivedDef, catalog: Catalog, kind: str, found: Memory) -> Explanation:
    """A query in application time: nothing is omitted, and its memory decides."""
    allowed = isinstance(definition, AlertDef) and definition.options.allow_unbounded
    accepted = found.verdict == "bounded" or allowed
    in_time = "evaluated in application time: a row appears when event time has passed its last tuple"
    reason = in_time if accepted else found.reason
    return Explanation(
        definition.name, kind, accepted, reason, tuple(_sources_in_time(definition.query, catalog)), found
    )


def _sources_in_time(query: Query, catalog: Catalog) -> list[SourceExplanation]:
    sources = []
    for one in query.members or (query,):
        filters = translated(one, query_inputs(one, catalog)).filters
        for source in one.sources:
            filter_ = bare(conjunction(filters[source.alias]))
            if source.stream in catalog.tables:
                why = "a table: it is read as it is"
            elif any(other.aggregated is not None for other in one.sources):
                why = "no omission: every tuple counts beside rows of aggregates"
            else:
                why = "no omission: every tuple counts, however long ago it came"
            sources.append(SourceExplanation.without_omission(source, filter_, why))
    return sources


def _windowed(definition: AlertDef | DerivedDef, catalog: Catalog, kind: str) -> Explanation:
    """Aggregates over windows or sessions: every tuple counts."""
    query = definition.query
    found = (sessions if query.session is not None else windows).memory_verdict(query, catalog)
    allowed = isinstance(definition, AlertDef) and definition.options.allow_unbounded
    accepted = found.verdict == "bounded" or allowed
    reason = found.reason
    if accepted and query.session is None:
        reason = "a row for each window and group, once the watermark has passed the window's end"
    elif accepted:
        reason = "a row for each session and group, once the watermark is later than the session's end"
    return Explanation(definition.name, kind, accepted, reason, _windowed_sources(query, catalog), found)


def _nested(definition: AlertDef | DerivedDef, catalog: Catalog, kind: str) -> Explanation:
    """A query over rows of aggregates: all of its queries together."""
    query = definition.query
    assert query.nested is not None
    found = nested_queries.memory_verdict(query, catalog, _memory)
    allowed = isinstance(definition, AlertDef) and definition.options.allow_unbounded
    never = next((one for one in map(partial(_contradiction, catalog=catalog), query.queries) if one), None)
    if never is not None:
        what = f"{never}, so the query never has a row"
        return Explanation(definition.name, kind, False, what, (), Memory("bounded", 0, "0", EMPTY, what))
    accepted = found.verdict == "bounded" or allowed
    in_order = "rows of aggregates come when their windows have ended, and are taken in order of event time"
    if any(one.timed_by is not None for one in query.queries):
        in_order = (
            "tuples are joined when the watermarks have passed them by the bounds on their times; the row of"
            " a window comes when all of its tuples are joined"
        )
    sources: list[SourceExplanation] = []
    for source in _nested_sources(query, catalog):
        if source not in sources:
            sources.append(source)
    return Explanation(
        definition.name, kind, accepted, in_order if accepted else found.reason, tuple(sources), found
    )


def _contradiction(query: Query, catalog: Catalog) -> str | None:
    """The reason why a join by time that is read in windows never has a row; None if it may have rows."""
    return None if query.timed_by is None else analyse(query, catalog).contradiction


def _memory(query: Query, catalog: Catalog) -> Memory:
    """The verdict on a nested query, or on one of its queries."""
    if query.nested is not None:
        return nested_queries.memory_verdict(query, catalog, _memory)
    if query.session is not None:
        return sessions.memory_verdict(query, catalog)
    if query.grouping is not None:
        return windows.memory_verdict(query, catalog)
    if query.timed_by is not None:
        return timed_joins.memory_verdict(query, catalog)
    return application_time.memory_verdict(query, catalog)


def _nested_sources(query: Query, catalog: Catalog) -> Iterator[SourceExplanation]:
    """The raw streams and tables of a nested query, those of inner queries first."""
    nested = query.nested
    if nested is None:
        found = _windowed_sources if query.grouping is not None else _sources_in_time
        yield from _joined_sources(query, catalog) if query.timed_by is not None else found(query, catalog)
        return
    for stream in nested.streams:
        if stream.aggregates is not None:
            yield from _nested_sources(stream.aggregates, catalog)
    names = {stream.name for stream in nested.streams}
    for source in _nested_sources(nested.query, catalog.with_streams(nested.streams)):
        if source.stream not in names:
            yield source


def _joined_sources(query: Query, catalog: Catalog) -> Iterator[SourceExplanation]:
    """The streams of a join by time whose rows are read in windows."""
    found = analyse(query, catalog)
    why = "no omission: every combination counts for the aggregates of its windows"
    for source in query.sources:
        filter_ = bare(conjunction(found.filters[source.alias]))
        yield SourceExplanation.without_omission(source, filter_, why)


def _windowed_sources(query: Query, catalog: Catalog) -> tuple[SourceExplanation, ...]:
    filters = translate(replace(query, grouping=None), query_inputs(query, catalog).catalog).filters
    explained = []
    for source in query.sources:
        filter_ = bare(conjunction(filters[source.alias]))
        what = "windows" if query.session is None else "sessions"
        why = f"no omission: every tuple counts for the aggregates of its {what}"
        if source.stream in catalog.tables:
            why = "a table: it is read as it is"
        one = SourceExplanation.without_omission(source, filter_, why)
        explained.append(replace(one, window=source.window, session=source.session))
    return tuple(explained)


def _explained(omission: Omission, verdict: Verdict) -> SourceExplanation:
    value = bare(omission.value)
    analysis = verdict.analysis
    return SourceExplanation(
        omission.alias,
        analysis.streams[omission.alias].name,
        omission.key,
        bare(conjunction(analysis.filters[omission.alias])),
        None if value is None else to_sql(value),
        omission.interval or None,
        omission.sides,
        omission.certificate,
        omission.reason,
        analysis.window,
        bare(conjunction(analysis.implied.get(omission.alias, ()))),
        constant=isinstance(omission.value, Literal),
        most_omitted=most_omitted(omission, analysis.streams[omission.alias]),
    )
