"""Everything that Tamis decides about one query before it runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tamis.errors import NotAcceptedError, Position
from tamis.expressions.nodes import aliases
from tamis.planning.analysis import Analysis, analyse
from tamis.planning.bounds import Memory, memory
from tamis.planning.keys import Keys, partition_keys
from tamis.planning.omission import Omission, decide
from tamis.planning.remembered import MOST, Remembered
from tamis.query.model import AlertDef, Catalog, DerivedDef, Query, StreamDef

IN_TIME = "a query in application time is no join by time"


@dataclass(frozen=True)
class Verdict:
    """A query taken apart and judged. `refusal`: why it is not accepted, None where it is."""

    query: Query
    analysis: Analysis
    keys: Keys
    omissions: tuple[Omission, ...]
    memory: Memory
    refusal: str | None


# Proofs take long, and a query is explained before it is planned, and planned again where its streams change.
_JUDGED = Remembered[Verdict](MOST)


def judge(definition: AlertDef | DerivedDef, catalog: Catalog) -> Verdict:
    """Analyse, prove and bound one alert or derived stream."""
    return _JUDGED.get((definition, *_read(definition, catalog)), None, lambda: _judge(definition, catalog))


def _read(query: AlertDef | DerivedDef, catalog: Catalog) -> Iterator[StreamDef | DerivedDef]:
    """The definitions on which a verdict rests, beside the query's own."""
    for source in query.query.sources:
        if (derived := catalog.derived.get(source.stream)) is not None:
            yield derived
            yield from _read(derived, catalog)
        elif (stream := catalog.streams.get(source.stream)) is not None:
            yield stream


def _judge(definition: AlertDef | DerivedDef, catalog: Catalog) -> Verdict:
    position: Position = definition.position
    analysis = analyse(definition.query, catalog, position)
    keys = partition_keys(analysis)
    if analysis.refused:
        reason = "; ".join(str(error) for error in analysis.refused)
        unknown = Memory("unknown", None, "", "", reason)
        return Verdict(definition.query, analysis, keys, (), unknown, reason)
    heuristic = isinstance(definition, AlertDef) and definition.options.certify == "heuristic"
    omissions = decide(analysis, keys, heuristic=heuristic)
    late = {a for part in analysis.conditions if len(of := aliases(part)) == 1 for a in of}
    if any(omission.alias in late and not omission.interval for omission in omissions):
        # They spare no calls, and a filter at the edge keeps tuples off the network at least.
        analysis = analyse(definition.query, catalog, position, early=True)
        omissions = decide(analysis, keys, heuristic=heuristic)
    verdict = memory(analysis, omissions)
    allowed = isinstance(definition, AlertDef) and definition.options.allow_unbounded
    refusal = verdict.reason if verdict.verdict != "bounded" and not allowed else None
    return Verdict(definition.query, analysis, keys, omissions, verdict, refusal)


def accepted(definition: AlertDef | DerivedDef, catalog: Catalog) -> Verdict:
    """The verdict of a query that is accepted. Raises NotAcceptedError with the reason where it isn't."""
    if definition.query.in_time:
        raise NotAcceptedError(
            IN_TIME,
            where=f"alert {definition.name}",
            hint="evaluate recordings with tamis run",
        )
    verdict = judge(definition, catalog)
    if verdict.refusal is not None:
        repairs = verdict.memory.repairs
        kind = "alert" if isinstance(definition, AlertDef) else "stream"
        file = f"{definition.position}: " if definition.position.file is not None else ""
        raise NotAcceptedError(
            verdict.refusal,
            where=f"{file}{kind} {definition.name}",
            hint="add " + " and ".join(repairs) if repairs else None,
        )
    return verdict
