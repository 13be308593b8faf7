"""JoinVerdict on one query before it runs: analysis, omission rules, and the bound of its memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tamis.analysis.conjuncts import Analysis, analyse
from tamis.analysis.partition_keys import Keys, partition_keys
from tamis.bounded.memory import Memory
from tamis.declarations.streams import StreamDef
from tamis.errors import NotAcceptedError, Position
from tamis.expressions.nodes import aliases
from tamis.expressions.python_functions import calls, name_of
from tamis.expressions.sql_text import to_sql
from tamis.plan.omission import Omission, bare
from tamis.planning.join_bounds import memory
from tamis.planning.omission_rules import decide
from tamis.query.model import AlertDef, Catalog, DerivedDef, InApplicationTime, Query
from tamis.query.patterns.watch_text import WatchText

IN_TIME = "a query in application time isn't a join by time"


@dataclass(frozen=True)
class JoinVerdict:
    """The analysis of a query and the decision on it. `refusal`: the reason if it is not accepted."""

    query: Query
    analysis: Analysis
    keys: Keys
    omissions: tuple[Omission, ...]
    memory: Memory
    refusal: str | None


def judge(definition: AlertDef | DerivedDef, catalog: Catalog) -> JoinVerdict:
    """Analyse, prove and bound one alert or derived stream; cached by the catalogue.

    Proofs take long. A query is explained before it is planned, and planned again when its streams change.
    """
    catalog = catalog.reading(definition)
    objects = (definition, *read_by(definition, catalog))
    found: JoinVerdict = catalog.results.get(objects, "verdict", lambda: _judge(definition, catalog))
    return found


def learn(definition: AlertDef | DerivedDef, catalog: Catalog, verdict: JoinVerdict) -> None:
    """Cache a verdict that another process has made."""
    catalog.results.put((definition, *read_by(definition, catalog)), "verdict", verdict)


def read_by(query: AlertDef | DerivedDef, catalog: Catalog) -> Iterator[StreamDef | DerivedDef]:
    """The definitions that a verdict uses besides the query's own."""
    catalog = catalog.reading(query)
    for source in query.query.sources:
        if (derived := catalog.derived.get(source.stream)) is not None:
            yield derived
            yield from read_by(derived, catalog)
        elif (stream := catalog.streams.get(source.stream)) is not None:
            yield stream


def _judge(definition: AlertDef | DerivedDef, catalog: Catalog) -> JoinVerdict:
    found = _judged(definition, catalog)
    watched = definition.query.watched
    if not watched:
        return found
    words = WatchText(watched)
    refusal = None if found.refusal is None else words(found.refusal)
    return replace(found, memory=in_words(found.memory, words), refusal=refusal)


def in_words(memory: Memory, words: WatchText) -> Memory:
    """The memory with texts in the words of the user's SQL."""
    return replace(
        memory,
        formula=words(memory.formula),
        reason=words(memory.reason),
        repairs=tuple(map(words, memory.repairs)),
        witness=None if memory.witness is None else words(memory.witness),
    )


def _judged(definition: AlertDef | DerivedDef, catalog: Catalog) -> JoinVerdict:
    position: Position = definition.position
    within = definition.options.within if isinstance(definition, AlertDef) else None
    analysis = analyse(definition.query, catalog, position, within=within)
    keys = partition_keys(analysis)
    if analysis.refused:
        reason = "; ".join(str(error) for error in analysis.refused)
        unknown = Memory("unknown", None, "", "", reason)
        return JoinVerdict(definition.query, analysis, keys, (), unknown, reason)
    heuristic = isinstance(definition, AlertDef) and definition.options.certify == "heuristic"
    before = omissions = decide(analysis, keys, heuristic=heuristic)
    late = {a for part in analysis.conditions if len(of := aliases(part)) == 1 for a in of}
    if any(omission.alias in late and not _saves_calls(omission) for omission in omissions):
        # Late filters save no calls of functions here; as filters at the edge they save network traffic.
        analysis = analyse(definition.query, catalog, position, early=True, within=within)
        before, omissions = omissions, decide(analysis, keys, heuristic=heuristic)
    if within is not None:
        omissions = tuple(map(_with_calls, before, omissions))
    verdict = memory(analysis, _held(definition, omissions))
    allowed = isinstance(definition, AlertDef) and definition.options.allow_unbounded
    refusal = verdict.reason if verdict.verdict != "bounded" and not allowed else None
    if analysis.contradiction is not None:
        refusal = verdict.reason
    return JoinVerdict(definition.query, analysis, keys, omissions, verdict, refusal)


def _held(definition: AlertDef | DerivedDef, omissions: tuple[Omission, ...]) -> tuple[Omission, ...]:
    """The omissions for which edges hold tuples: with max_delay = '0' they publish each tuple at once, so no
    frontier waits for it.
    """
    if not isinstance(definition, AlertDef) or definition.options.max_delay != 0:
        return omissions
    return tuple(replace(omission, interval=0) for omission in omissions)


def _saves_calls(omission: Omission) -> bool:
    """Tell if omission can choose tuples before the functions of a late filter are called."""
    return omission.interval > 0 and (omission.value is None or not any(calls(omission.value)))


def _with_calls(late: Omission, used: Omission) -> Omission:
    """The rule that is used, with the reason if its filter calls functions for every tuple. `late`: the rule
    without functions in the filter, as far as these have declared shapes.
    """
    called = [] if used.filter is None else list(calls(used.filter))
    if not called:
        return used
    if late is used:
        why = f"{name_of(called[0])} has no declared shape"
    elif late.value is None:
        why = late.reason.removeprefix("no omission: ")
    else:
        why = f"the brackets would compare {to_sql(bare(late.value))}"
    return replace(
        used, reason=f"{used.reason}. Edges call {name_of(called[0])} for every tuple, since {why}"
    )


def accepted(definition: AlertDef | DerivedDef, catalog: Catalog) -> JoinVerdict:
    """The verdict on an accepted query. Raises NotAcceptedError with the reason if it isn't accepted."""
    kind = "alert" if isinstance(definition, AlertDef) else "stream"
    if isinstance(definition.query, InApplicationTime):
        raise NotAcceptedError(
            IN_TIME,
            where=f"{kind} {definition.name}",
            hint="evaluate recordings with tamis run",
        )
    verdict = judge(definition, catalog)
    if verdict.refusal is not None:
        repairs = verdict.memory.repairs
        file = f"{definition.position}: " if definition.position.file is not None else ""
        raise NotAcceptedError(
            verdict.refusal,
            where=f"{file}{kind} {definition.name}",
            hint="add " + " and ".join(repairs) if repairs else None,
        )
    return verdict
