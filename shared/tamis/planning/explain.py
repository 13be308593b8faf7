"""The verdict on a query, as `tamis explain` and the registry print it: for programs, and for people."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import orjson

from tamis.bounded import windows
from tamis.bounded.application_time import classification
from tamis.bounded.application_time import verdict as application_time
from tamis.bounded.application_time.static_relations import query_inputs
from tamis.bounded.application_time.translate import translated
from tamis.bounded.memory import Memory, sentences
from tamis.bounded.timeless.proof import Growth
from tamis.bounded.timeless.translate import translate
from tamis.bounded.timeless.verdict import memory_verdict, proof_of
from tamis.durations import seconds
from tamis.expressions.nodes import Expr, conjunction
from tamis.expressions.sql_text import to_sql
from tamis.plan.model import GREATEST
from tamis.plan.omission import Omission, bare
from tamis.planning.join_bounds import TIME_BOUNDED
from tamis.planning.missing_watermarks import lacking
from tamis.planning.verdict import Verdict, in_words, judge
from tamis.planning.watched_source import WatchedSource
from tamis.query.model import AlertDef, Catalog, DerivedDef, Source, StreamDef, Window
from tamis.query.patterns.watch_text import WatchText
from tamis.sharing.selectivity import SelectivityEstimator, ShareEstimate, StreamStatistics

_WIDTH = 100
_GROWTH_HEADS = ("states to distinguish", "entries kept by Tamis")
# Where a sentence of a reason begins: such a text is a list of reasons.
_NEXT_SENTENCE = re.compile(r"(?<=\.) (?=[A-Z])")
INLINED = "inlined where it is read"
_IMPLIED = "The other conditions imply {}, by which edges filter, too"


@dataclass(frozen=True)
class SourceExplanation:
    """One source of a query. Expressions are SQL over the stream's columns; intervals are microseconds."""

    alias: str
    stream: str
    key: tuple[str, ...]  # what omission keeps apart: the partition key's columns first
    filter: Expr | None
    value: str | None
    interval: int | None
    sides: str | None
    certificate: str | None
    reason: str
    window: Window | None = None
    implied: Expr | None = None  # by the other conditions: edges apply it beside the filter
    selectivity: ShareEstimate | None = None  # of both, where it was asked for and can be estimated
    watched: StreamDef | None = None  # the watched stream in place of the stream, which `filter` reads

    @staticmethod
    def without_omission(source: Source, filter_: Expr | None, reason: str) -> SourceExplanation:
        """A source of which every tuple that passes the filter is kept."""
        return SourceExplanation(
            alias=source.alias,
            stream=source.stream,
            key=(),
            filter=filter_,
            value=None,
            interval=None,
            sides=None,
            certificate=None,
            reason=reason,
        )

    @property
    def predicate(self) -> str | None:
        """The filter as SQL."""
        return None if self.filter is None else self._text(self.filter)

    @property
    def implied_predicate(self) -> str | None:
        """The implied predicate as SQL."""
        return None if self.implied is None else self._text(self.implied)

    def _text(self, expr: Expr) -> str:
        text = to_sql(expr)
        return text if self.watched is None else WatchText([self.watched])(text)

    def in_words(self, streams: Mapping[str, StreamDef], words: WatchText) -> SourceExplanation:
        """The same with the calls and streams of the user's SQL; `streams` are the watched ones by name."""
        watched = streams.get(self.stream)
        return replace(
            self,
            stream=self.stream if watched is None else watched.shown_name,
            key=tuple(map(words, self.key)),
            value=None if self.value is None else words(self.value),
            reason=words(self.reason),
            watched=watched,
        )

    def document(self) -> dict[str, Any]:
        """The JSON object of the interface, `similar`, `window` and `selectivity` where there are any."""
        implied = self.implied_predicate
        return {
            "alias": self.alias,
            "stream": self.stream,
            "key": list(self.key),
            "predicate": self.predicate,
            "value": self.value,
            "omission": {
                "interval": self.interval,
                "sides": self.sides,
                "certificate": self.certificate,
                "reason": self.reason + (f". {_IMPLIED.format(implied)}" if implied else ""),
            },
            **({"similar": WatchedSource.of(self.watched).document()} if self.watched else {}),
            **({"window": asdict(self.window)} if self.window else {}),
            **({"selectivity": asdict(self.selectivity)} if self.selectivity else {}),
        }


@dataclass(frozen=True)
class Explanation:
    """The explanation of one query before it runs."""

    name: str
    kind: str  # "alert", "stream"
    accepted: bool
    reason: str  # why it is refused; otherwise how it is partitioned
    streams: tuple[SourceExplanation, ...]
    memory: Memory
    growth: tuple[Growth, ...] | None = None  # of a query that is called unbounded, where it was asked for

    def document(self) -> dict[str, Any]:
        """The JSON object of the interface."""
        return {
            "name": self.name,
            "kind": self.kind,
            "accepted": self.accepted,
            "streams": [source.document() for source in self.streams],
            "memory": {
                **asdict(self.memory),
                "bound": _number(self.memory.bound),
                "repairs": list(self.memory.repairs),
            },
            **({} if self.growth is None else {"growth": [asdict(one) for one in self.growth]}),
        }

    def text(self) -> str:
        """For people: the reasons first."""
        lines = [f"{self.kind} {self.name}: {'accepted' if self.accepted else 'REFUSED'}"]
        for sentence in _sentences(self.reason):
            lines += _wrapped(sentence, "  ")
        if self.accepted:
            notes = _common_notes(self.streams)
            for source in self.streams:
                lines += _source(source, notes)
            lines += _wrapped(". ".join(notes), "  ") if notes else []
        lines += _memory(self.memory)
        lines += _growth(self.growth or ())
        return "\n".join(lines)


def explain(catalog: Catalog, query: str | AlertDef | DerivedDef) -> Explanation:
    """The explanation of an alert or a derived stream, by its name in `catalog` or itself.

    Raises KeyError if the catalogue has no query of that name, InputError where a table can't be read.
    """
    definition = query
    if isinstance(definition, str):
        named: dict[str, AlertDef | DerivedDef] = {**catalog.derived, **catalog.alerts}
        definition = named[definition]
    found = _explain(catalog.reading(definition), definition)
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
    )


def _explain(catalog: Catalog, definition: AlertDef | DerivedDef) -> Explanation:
    kind = "alert" if isinstance(definition, AlertDef) else "stream"
    if isinstance(definition, DerivedDef) and definition.joins:
        kept = Memory("bounded", 0, "0", INLINED, "nothing is kept for the stream itself")
        reason = "a join, which is put in where it is read: each alert that reads it is decided with it"
        return Explanation(definition.name, kind, True, reason, (), kept)
    if definition.query.timeless:
        return _timeless(definition, catalog, kind)
    if definition.query.grouping is not None:
        return _windowed(definition, catalog, kind)
    if definition.query.in_time:
        decided = application_time.memory_verdict(definition.query, catalog)
        return _in_time(definition, catalog, kind, lacking(definition.query, catalog, decided))
    found = classification.decided(definition, catalog)
    if found is not None and found.verdict == "bounded":
        return _in_time(definition, catalog, kind, found)
    verdict = judge(definition, catalog)
    if found is not None:
        # The join by time keeps all tuples; whether any evaluator must, an example says where one was run.
        both = sentences(verdict.memory.reason, found.reason)
        if found.verdict == "unbounded":
            found = replace(found, reason=both, repairs=found.repairs or verdict.memory.repairs)
        else:
            found = replace(verdict.memory, reason=both)
        verdict = replace(verdict, memory=found, refusal=verdict.refusal and found.reason)
    reason = verdict.refusal or f"partitioned by {verdict.keys.reason}"
    if verdict.refusal is None and not any(verdict.keys.partition.values()):
        reason = verdict.keys.reason
    sources = tuple(_explained(omission, verdict) for omission in verdict.omissions)
    return Explanation(definition.name, kind, verdict.refusal is None, reason, sources, verdict.memory)


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
    asked = query.query
    if asked.in_time or classification.open_ended(asked, catalog):
        in_time = application_time.proof_of(asked, catalog)
        return replace(explained, growth=() if in_time is None else tuple(in_time.growth()))
    found = proof_of(asked, catalog) if asked.timeless else None
    return replace(explained, growth=() if found is None else tuple(found.growth()))


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
    sources = []
    for one in definition.query.members or (definition.query,):
        filters = translated(one, query_inputs(one, catalog)).filters
        for source in one.sources:
            filter_ = bare(conjunction(filters[source.alias]))
            why = (
                "a table: it is read as it is"
                if source.stream in catalog.tables
                else "no omission: every tuple counts, however long ago it came"
            )
            sources.append(SourceExplanation.without_omission(source, filter_, why))
    return Explanation(definition.name, kind, accepted, reason, tuple(sources), found)


def _windowed(definition: AlertDef | DerivedDef, catalog: Catalog, kind: str) -> Explanation:
    """Aggregates over windows: every tuple counts."""
    found = windows.memory_verdict(definition.query, catalog)
    (source,) = definition.query.sources
    filter_ = bare(conjunction(translate(definition.query, catalog).filters[source.alias]))
    why = "no omission: every tuple counts for the aggregates of its windows"
    explained = replace(SourceExplanation.without_omission(source, filter_, why), window=source.window)
    reason = "a row for each window and group, once the watermark has passed the window's end"
    return Explanation(definition.name, kind, True, reason, (explained,), found)


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
    )


def _common_notes(sources: Sequence[SourceExplanation]) -> list[str]:
    """The sentences after the first one that stand in the reasons of several sources. They concern the whole
    query, as the note on rounding does, and are printed once.
    """
    found = Counter(note for source in sources for note in _sentences(source.reason)[1:])
    return [note for note, count in found.items() if count > 1]


def _source(source: SourceExplanation, elsewhere: Sequence[str]) -> Iterator[str]:
    """The lines of one source, without the notes that are printed elsewhere."""
    name = source.stream if source.alias == source.stream else f"{source.stream} as {source.alias}"
    reason = ". ".join(note for note in _sentences(source.reason) if note not in elsewhere)
    yield from _wrapped(f"{name}: {reason}", "  ")
    if source.watched is not None:
        for line in WatchedSource.of(source.watched).lines():
            yield from _wrapped(line, "    ")
    if source.window is not None:
        every = "" if source.window.slide == source.window.size else f" every {seconds(source.window.slide)}"
        yield from _wrapped(f"windows of {seconds(source.window.size)}{every}", "    ")
    if source.interval is not None:
        what = f"omission interval {seconds(source.interval)}, " if source.window is None else ""
        proved = not str(source.certificate).startswith(("heuristic", "trusted"))
        yield from _wrapped(f"{what}{'proof' if proved else 'certificate'}: {source.certificate}", "    ")
        yield from _wrapped(f"value {source.value}", "    ")
    if source.key:
        yield from _wrapped(f"for each {', '.join(source.key)}", "    ")
    if source.predicate is not None:
        yield from _wrapped(f"of tuples with {source.predicate}", "    ")
    if source.implied is not None:
        yield from _wrapped(f"the other conditions imply {source.implied_predicate}", "    ")
    if source.selectivity is not None:
        share, basis = source.selectivity.share, source.selectivity.estimated_from
        yield f"    an estimated {100 * share:.3g} % of all, by {basis}"


def _memory(memory: Memory) -> Iterator[str]:
    what = "tuples" if memory.theorem == TIME_BOUNDED else "entries"
    number = "" if memory.bound is None else f", at most {memory.bound} {what}"
    yield f"  memory {memory.verdict}{number}"
    if memory.verdict == "bounded":
        for sentence in _sentences(memory.reason):
            yield from _wrapped(sentence, "    ")
        if memory.bound != 0:
            described = memory.theorem in (TIME_BOUNDED, windows.WINDOWED)
            rule = memory.theorem if described else f"bound ({memory.theorem})"
            yield from _wrapped(f"{rule}: {memory.formula}", "    ")
    what = "have a number" if memory.verdict == "bounded" else "be bounded"
    for repair in memory.repairs:
        yield from _wrapped(f"would {what} with: {repair}", "    ")
    if memory.witness is not None:
        yield from _wrapped(f"example: {memory.witness}", "    ")


def _growth(growth: Sequence[Growth]) -> Iterator[str]:
    """Lines for the growth of the example, one for each number of tuples."""
    if growth:
        heads = [f"tuples of {growth[0].stream} (a plain join keeps all)", *_GROWTH_HEADS]
        yield "    " + "   ".join(heads)
        for one in growth:
            cells = (one.tuples, "-" if one.states is None else one.states, one.entries)
            yield "    " + "   ".join(f"{cell:>{len(head)}}" for cell, head in zip(cells, heads, strict=True))
    counted = [one.tuples for one in growth if one.states is not None]
    if counted and len(counted) < len(growth):
        yield f"    (-: states are counted for at most {max(counted)} tuples)"


def _number(bound: int | None) -> int | orjson.Fragment | None:
    """A bound as orjson takes it, which knows numbers of 64 bits."""
    return bound if bound is None or bound <= GREATEST else orjson.Fragment(str(bound))


def _sentences(reason: str) -> list[str]:
    """The sentences of a reason, without full stops."""
    return [one.removesuffix(".") for one in _NEXT_SENTENCE.split(reason)]


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=indent + "  ")
