"""The verdict on a query, as `tamis explain` and the registry print it: for programs, and for people."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import orjson

from tamis.expressions.nodes import Expr, conjunction
from tamis.expressions.sql_text import to_sql
from tamis.planning import application_time, windowed
from tamis.planning.application_time.ground import ground
from tamis.planning.application_time.timed import translated
from tamis.planning.bounds import TIME_BOUNDED, Memory
from tamis.planning.omission import Omission, bare
from tamis.planning.plan import GREATEST
from tamis.planning.spans import seconds
from tamis.planning.timeless import answer, proof_of
from tamis.planning.timeless.proof import Growth
from tamis.planning.timeless.translate import translate
from tamis.planning.traffic import Estimate, Share, Spread
from tamis.planning.verdict import Verdict, judge
from tamis.query.model import AlertDef, Catalog, DerivedDef, Window

_WIDTH = 100
INLINED = "inlined where it is read"


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
    selectivity: Share | None = None  # of the filter, where it was asked for and can be estimated

    @property
    def predicate(self) -> str | None:
        """The filter as SQL."""
        return None if self.filter is None else to_sql(self.filter)

    def document(self) -> dict[str, Any]:
        """The JSON object of the interface, `window` and `selectivity` where there are any."""
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
                "reason": self.reason,
            },
            **({"window": asdict(self.window)} if self.window else {}),
            **({"selectivity": asdict(self.selectivity)} if self.selectivity else {}),
        }


@dataclass(frozen=True)
class Explanation:
    """What Tamis says about one query before it runs."""

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
        lines += _wrapped(self.reason, "  ")
        if self.accepted:
            for source in self.streams:
                lines += _source(source)
        lines += _memory(self.memory)
        lines += _growth(self.growth or ())
        return "\n".join(lines)


def explain(catalog: Catalog, query: str | AlertDef | DerivedDef) -> Explanation:
    """The explanation of an alert or a derived stream, by its name in `catalog` or itself.

    Raises KeyError where the catalogue has no query of that name, InputError where a table can't be read.
    """
    definition = query
    if isinstance(definition, str):
        named: dict[str, AlertDef | DerivedDef] = {**catalog.derived, **catalog.alerts}
        definition = named[definition]
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
        return _in_time(definition, catalog, kind, application_time.answer(definition.query, catalog))
    found = application_time.decided(definition, catalog)
    if found is not None and found.verdict == "bounded":
        return _in_time(definition, catalog, kind, found)
    verdict = judge(definition, catalog)
    if found is not None:
        # The join by time keeps all tuples; whether any evaluator must, an example says where one was run.
        both = f"{verdict.memory.reason}; {found.reason}"
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


def estimated(catalog: Catalog, explained: Explanation, readings: Mapping[str, Estimate]) -> Explanation:
    """An explanation with the share of its stream that each predicate lets pass, by `readings` of streams and
    by declared domains.
    """

    def with_share(source: SourceExplanation) -> SourceExplanation:
        stream = catalog.streams.get(source.stream)
        if source.filter is None or stream is None:
            return source
        share = Spread(stream, readings.get(stream.name)).share(source.filter)
        return replace(source, selectivity=share)

    return replace(explained, streams=tuple(map(with_share, explained.streams)))


def grown(catalog: Catalog, query: AlertDef | DerivedDef, explained: Explanation) -> Explanation:
    """An explanation with the example of an unbounded query run, on ever more tuples."""
    if explained.memory.verdict != "unbounded":
        return explained
    asked = query.query
    if asked.in_time or application_time.open_ended(asked, catalog):
        in_time = application_time.proof_of(asked, catalog)
        return replace(explained, growth=() if in_time is None else tuple(in_time.growth()))
    found = proof_of(asked, catalog) if asked.timeless else None
    return replace(explained, growth=() if found is None else tuple(found.growth()))


def _timeless(definition: AlertDef | DerivedDef, catalog: Catalog, kind: str) -> Explanation:
    """A query over streams without time: nothing is omitted, and its memory decides."""
    found = answer(definition.query, catalog)
    allowed = isinstance(definition, AlertDef) and definition.options.allow_unbounded
    accepted = found.verdict == "bounded" or allowed
    reason = "streams without time: every tuple counts, whenever it comes" if accepted else found.reason
    members = definition.query.members or (definition.query,)
    filtered = [(source, translate(one, catalog).filters) for one in members for source in one.sources]
    sources = []
    for source, filters in filtered:
        filter_ = bare(conjunction(filters[source.alias]))
        why = "a tuple without time can't be omitted by its neighbours in time"
        sources.append(
            SourceExplanation(source.alias, source.stream, (), filter_, None, None, None, None, why)
        )
    return Explanation(definition.name, kind, accepted, reason, tuple(sources), found)


def _in_time(definition: AlertDef | DerivedDef, catalog: Catalog, kind: str, found: Memory) -> Explanation:
    """A query in application time: nothing is omitted, and its memory decides."""
    allowed = isinstance(definition, AlertDef) and definition.options.allow_unbounded
    accepted = found.verdict == "bounded" or allowed
    reason = (
        "in application time: each row once its last tuple's time has passed" if accepted else found.reason
    )
    sources = []
    for one in definition.query.members or (definition.query,):
        filters = translated(one, ground(one, catalog)).filters
        for source in one.sources:
            filter_ = bare(conjunction(filters[source.alias]))
            why = (
                "a table: it is read as it is"
                if source.stream in catalog.tables
                else "no omission: every tuple counts, however long ago it came"
            )
            sources.append(
                SourceExplanation(source.alias, source.stream, (), filter_, None, None, None, None, why)
            )
    return Explanation(definition.name, kind, accepted, reason, tuple(sources), found)


def _windowed(definition: AlertDef | DerivedDef, catalog: Catalog, kind: str) -> Explanation:
    """Aggregates over windows: every tuple counts."""
    found = windowed.memory(definition.query, catalog)
    (source,) = definition.query.sources
    filter_ = bare(conjunction(translate(definition.query, catalog).filters[source.alias]))
    why = "no omission: every tuple counts for the aggregates of its windows"
    explained = SourceExplanation(
        source.alias, source.stream, (), filter_, None, None, None, None, why, source.window
    )
    reason = "a row for each window and group, once the watermark has passed the window's end"
    return Explanation(definition.name, kind, True, reason, (explained,), found)


def _explained(omission: Omission, verdict: Verdict) -> SourceExplanation:
    value = bare(omission.value)
    return SourceExplanation(
        omission.alias,
        verdict.analysis.streams[omission.alias].name,
        omission.key,
        bare(omission.filter),
        None if value is None else to_sql(value),
        omission.interval or None,
        omission.sides,
        omission.certificate,
        omission.reason,
        verdict.analysis.window,
    )


def _source(source: SourceExplanation) -> Iterator[str]:
    name = source.stream if source.alias == source.stream else f"{source.stream} as {source.alias}"
    yield from _wrapped(f"{name}: {source.reason}", "  ")
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
    if source.selectivity is not None:
        share, basis = source.selectivity.share, source.selectivity.estimated_from
        yield f"    an estimated {100 * share:.3g} % of all, by {basis}"


def _memory(memory: Memory) -> Iterator[str]:
    what = "tuples" if memory.theorem == TIME_BOUNDED else "entries"
    number = "" if memory.bound is None else f", at most {memory.bound} {what}"
    yield f"  memory {memory.verdict}{number}"
    if memory.verdict == "bounded":
        yield from _wrapped(memory.reason, "    ")
        if memory.bound != 0:
            yield from _wrapped(f"{memory.theorem}: {memory.formula}", "    ")
    what = "have a number" if memory.verdict == "bounded" else "be bounded"
    for repair in memory.repairs:
        yield from _wrapped(f"would {what} with: {repair}", "    ")
    if memory.witness is not None:
        yield from _wrapped(f"example: {memory.witness}", "    ")


def _growth(growth: Sequence[Growth]) -> Iterator[str]:
    """How the example grows, a line for each number of tuples."""
    if growth:
        kept, told = f"tuples of {growth[0].stream}, all kept by a plain join", "states to tell apart"
        yield f"    {kept}   {told}   entries of synopses"
        for one in growth:
            counted = "" if one.states is None else str(one.states)
            yield f"    {one.tuples:>{len(kept)}}   {counted:>{len(told)}}   {one.entries:>19}"


def _number(bound: int | None) -> int | orjson.Fragment | None:
    """A bound as orjson takes it, which knows numbers of 64 bits."""
    return bound if bound is None or bound <= GREATEST else orjson.Fragment(str(bound))


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=indent + "  ")
