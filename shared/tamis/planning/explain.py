"""The explanation of a query, as `tamis explain` and the registry give it: its verdict, rendered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import assert_never

from tamis.bounded.application_time import verdict as application_time
from tamis.bounded.timeless.verdict import proof_of
from tamis.declarations.streams import StreamDef
from tamis.expressions.nodes import Literal, conjunction
from tamis.expressions.sql_text import to_sql
from tamis.plan.omission import bare
from tamis.planning.decide import verdict_on
from tamis.planning.explanations.explanation import Explanation, SourceExplanation
from tamis.planning.explanations.probable_mistakes import (
    impossible_values,
    probable_mistakes,
    silence_warnings,
)
from tamis.planning.explanations.row_growth import growth_warnings, missing_keys, open_ended_warnings
from tamis.planning.explanations.transfer import Transfer, transfer
from tamis.planning.verdict import InputVerdict, Verdict
from tamis.query.model import (
    AlertDef,
    ApplicationTimeSelect,
    ApplicationTimeUnion,
    Catalog,
    DerivedDef,
    JoinByTime,
    LatestValueJoin,
    NestedQuery,
    SessionGroupBy,
    TimelessGroupBy,
    TimelessSelect,
    TimelessUnion,
    WindowGroupBy,
    all_queries,
)
from tamis.query.patterns.watch_text import WatchText
from tamis.sharing.selectivity import SelectivityEstimator, StreamStatistics

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def explain(catalog: Catalog, query: str | AlertDef | DerivedDef) -> Explanation:
    """The explanation of an alert or a derived stream, by its name in `catalog` or itself.

    Raises KeyError if the catalogue has no query of that name, InputError where a table can't be read.
    """
    definition = query
    if isinstance(definition, str):
        named: dict[str, AlertDef | DerivedDef] = {**catalog.derived, **catalog.alerts}
        definition = named[definition]
    return rendered(verdict_on(definition, catalog), definition, catalog)


def rendered(verdict: Verdict, definition: AlertDef | DerivedDef, catalog: Catalog) -> Explanation:
    """The explanation of a query from its verdict. Of the catalogue it needs the definitions that the query
    reads.
    """
    reading = catalog.reading(definition)
    words = WatchText(definition.query.watched)
    immediate = isinstance(definition, AlertDef) and definition.options.max_delay == 0
    alert = definition if isinstance(definition, AlertDef) and verdict.accepted else None
    return Explanation(
        verdict.name,
        verdict.kind,
        verdict.accepted,
        verdict.reason,
        tuple(
            source
            if alert is None or source.stream in catalog.tables
            else _with_transfer(source, transfer(alert, reading, source.stream))
            for source in (_source(one, verdict, words, immediate) for one in verdict.inputs)
        ),
        verdict.memory,
        warnings=tuple(map(words, _warnings(verdict, definition, reading))),
        history=_history(definition, catalog),
    )


def _with_transfer(source: SourceExplanation, sent: Transfer | None) -> SourceExplanation:
    if sent is not None and sent.represented is not None:
        source = replace(source, reason="a tuple is omitted if earlier ones stand for it in every row")
    return replace(source, transfer=sent)


def _warnings(verdict: Verdict, definition: AlertDef | DerivedDef, catalog: Catalog) -> dict[str, None]:
    query = definition.query
    joined = catalog.with_streams(query.streams) if isinstance(query, NestedQuery) else catalog
    queries = all_queries(query)
    warned = [warning for one in queries for warning in missing_keys(one, joined)]
    if not warned and verdict.open_ended:
        warned += open_ended_warnings(query, catalog)
    elif not warned and verdict.join is not None and verdict.join.refusal is None:
        # A missing equality of keys is the reason for many rows, too.
        warned += growth_warnings(verdict.join)
    if verdict.accepted:
        warned += [warning for one in queries for warning in probable_mistakes(one, joined)]
        warned += impossible_values(query, joined)
    return dict.fromkeys((*warned, *silence_warnings(query, catalog)))


def _source(one: InputVerdict, verdict: Verdict, words: WatchText, immediate: bool) -> SourceExplanation:
    """The explanation of an input. `immediate`: edges publish its tuples before later ones come."""
    omission = one.omission
    value = bare(omission.value)
    most = None
    if verdict.join is not None:
        most = most_omitted(one, verdict.join.analysis.streams[one.alias])
    if immediate and omission.interval and one.window is None:
        most = 0.0
    return SourceExplanation(
        one.alias,
        one.stream if one.watched is None else one.watched.shown_name,
        tuple(map(words, omission.key)),
        one.filter,
        None if value is None else words(to_sql(value)),
        omission.interval or None,
        omission.sides,
        omission.certificate,
        omission.reason,
        one.window,
        one.implied,
        constant=isinstance(omission.value, Literal),
        watched=one.watched,
        most_omitted=most,
        session=one.session,
    )


def most_omitted(one: InputVerdict, stream: StreamDef) -> float | None:
    """The greatest share of the tuples that omission can leave out; None without omission or a rate.

    Nobody can promise how many tuples omission leaves out: it depends on how the values move. A greatest
    share follows from the declared rate. Between two neighbouring retained tuples of a key that have omitted
    tuples between them lies at most the omission interval L, so both and the tuples between them lie in a
    closed span of L. At most N = count * (L div per + 1) tuples of a key lie in such a span. Of each retained
    tuple and the omitted ones that follow it, at most N - 2 of N - 1 tuples are omitted. With windows, at
    least one of the tuples of each window is retained, so at most N - 1 of N are omitted, where N is that of
    the window's size.
    """
    omission = one.omission
    if not omission.interval or stream.rate is None:
        return None
    most = stream.rate.count * (omission.interval // stream.rate.per + 1)
    if omission.window is not None:
        return (most - 1) / most
    return max(0.0, (most - 2) / (most - 1)) if most > 1 else 0.0


def _history(definition: AlertDef | DerivedDef, catalog: Catalog) -> str:
    """Readings that edges read again for the option `from` of an alert, and the cost; empty without it."""
    since = definition.options.from_ if isinstance(definition, AlertDef) else None
    if since is None:
        return ""
    names = dict.fromkeys(one.stream for one in definition.query.sources if one.stream in catalog.streams)
    streams = " and ".join(names)
    left_out = ""
    if since != "earliest":
        at = (_EPOCH + timedelta(microseconds=since)).isoformat()
        left_out = f". Readings from before {at} are left out"
    return (
        f"edges read the sources of {streams} once more for this alert alone, from the beginning of what "
        f"Kafka topics and recordings still have, and then go on with new readings{left_out}. The tuples are "
        "sent in topics that no other alert shares. While an edge reads the history, a source that is more "
        "than max_stall ahead of another one waits for it. Sources of different edges can be further apart, "
        "and the joiner keeps the tuples between"
    )


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
    match asked:
        case TimelessSelect() | TimelessGroupBy() | TimelessUnion():
            timeless_proof = proof_of(asked, catalog)
            growth = () if timeless_proof is None else tuple(timeless_proof.growth())
        case ApplicationTimeSelect() | ApplicationTimeUnion() | JoinByTime():
            if isinstance(asked, JoinByTime) and not application_time.open_ended(asked, catalog):
                return explained
            in_time = application_time.proof_of(asked, catalog)
            growth = () if in_time is None else tuple(in_time.growth())
        case LatestValueJoin() | WindowGroupBy() | SessionGroupBy() | NestedQuery():
            return explained  # examples are only of single queries, and not of these kinds
        case _:
            assert_never(asked)
    words = WatchText(asked.watched)
    return replace(explained, growth=tuple(replace(one, stream=words(one.stream)) for one in growth))
