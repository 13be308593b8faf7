"""Replacement of an alert: its old definition runs on beside the new one, and EXPLAIN says what differs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from tamis.declarations.backfill import raw_name
from tamis.durations import seconds
from tamis.plan.model import Definition, Input, Plan, StandingQuery
from tamis.plan.nodes import Sessions, Windows
from tamis.planning.queries.definitions import definition_id
from tamis.query.model import AlertDef, AlertOptions
from tamis_registry.core.plan.retirement import span
from tamis_registry.core.state.model import Retiring, State, Stored
from tamis_registry.core.statements.catalog_changes import same
from tamis_registry.core.topic_readers import filter_sql

Query = Definition | StandingQuery

_DURATIONS = ("max_delay", "gap", "for_", "within")


def retire(state: State, name: str, n: int) -> None:
    """Let the running definition of an alert, if there is one, run on beside the one that plan `n` makes."""
    old = state.alert(name)
    if old is not None and old.alert is not None and not old.paused and old.version < n:
        retiring = Retiring(name, old.version, old.sql, old.order, n, old.topics, old.alert)
        state.retiring[retiring.id] = retiring


def replacement(
    old: Stored, made: AlertDef, state: State, running: Plan | None, planned: Plan
) -> dict[str, Any] | None:
    """The part of EXPLAIN's document about the alert in service that `made` replaces: its plan version, the
    differences, and how the new definition takes over. None if `made` is the same alert.

    `state` and `planned` have the new definition, `running` is the plan that the fleet has.
    """
    if old.alert is None:
        lost = f"alert {old.name} doesn't run: {old.refusal}"
        return {"plan": old.version, "changes": [], "transition": [lost, _BEGINS]}
    if same(old.alert, made):
        return None
    was = None if running is None else _query(running, old.name, old.version)
    new = next(
        (query for query in planned.queries if query.alert == made.name and _newest(query, planned)), None
    )
    changes = list(_options(old.alert.options, made.options))
    if was is not None and new is not None:
        changes = [*_sources(was, new, state), _bounds(was, new), *changes]
    return {"plan": old.version, "changes": changes, "transition": list(_transition(old, was, new))}


def _query(plan: Plan, alert: str, version: int) -> Query | None:
    return next((one for one in plan.queries if (one.alert, one.version) == (alert, version)), None)


def _newest(query: Query, plan: Plan) -> bool:
    return definition_id(query.alert, query.version) not in plan.retiring


def _sources(old: Query, new: Query, state: State) -> Iterator[str]:
    """The differences in what edges publish for each source, and the topics that have it."""
    before = {source.alias or source.stream: source for source in old.inputs}
    for source in new.inputs:
        was = before.pop(source.alias or source.stream, None)
        of = _label(source, state)
        if was is None:
            yield f"{of} is a new source, from topic {source.topic}"
        else:
            yield from (f"{of}: {one}" for one in _source(was, source))
    for gone in before.values():
        yield f"{_label(gone, state)} is no source any more"


def _source(old: Input, new: Input) -> Iterator[str]:
    same_topic = old.topic == new.topic
    yield f"topic {old.topic} stays" if same_topic else f"topic {old.topic} becomes {new.topic}"
    filters = [filter_sql(one.filter) or "empty" for one in (old, new)]
    if filters[0] != filters[1]:
        yield f"the filter of edges is {filters[0]} and becomes {filters[1]}"
    if old.interval != new.interval:
        spans = [seconds(one.interval) if one.interval else "none" for one in (old, new)]
        yield f"the omission interval is {spans[0]} and becomes {spans[1]}"
    if filters[0] == filters[1] and old.interval == new.interval:
        yield "the filter and the omission interval of edges stay"
    if old.partition_key != new.partition_key:
        keys = [", ".join(one.partition_key) or "empty" for one in (old, new)]
        yield f"the partition key is {keys[0]} and becomes {keys[1]}"


def _label(source: Input, state: State) -> str:
    stream = raw_name(state.base(source.stream))
    return stream if source.alias in ("", stream) else f"{stream} as {source.alias}"


def _bounds(old: Query, new: Query) -> str:
    bounds = ["no number" if one.bound is None else str(one.bound) for one in (old, new)]
    changed = f"is {bounds[0]} and becomes {bounds[1]}" if old.bound != new.bound else f"stays {bounds[0]}"
    return f"the bound of its memory {changed}"


def _options(old: AlertOptions, new: AlertOptions) -> Iterator[str]:
    for one in fields(AlertOptions):
        was, becomes = getattr(old, one.name), getattr(new, one.name)
        if was != becomes:
            told = [_option(one.name, value) for value in (was, becomes)]
            yield f"option {one.name.rstrip('_')} is {told[0]} and becomes {told[1]}"


def _option(name: str, value: Any) -> str:
    if value is None or value == ():
        return "not set"
    if name in _DURATIONS:
        return seconds(value)
    if name == "labels":
        return ", ".join(f"{label}={text}" for label, text in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


_BEGINS = (
    "the new definition begins with the next plan: of each shard it counts the readings that the edge reads"
    " after the shard has taken up that plan"
)


def _transition(old: Stored, was: Query | None, new: Query | None) -> Iterator[str]:
    """Sentences about live state and episodes (protocol, rule 11; `tamis_alerts.core.rules`)."""
    if old.paused:
        yield f"the alert is paused, and stays paused: RESUME ALERT {old.name} begins with the new definition"
        return
    yield _BEGINS
    yield (
        "when a shard takes up the plan, its edge publishes the tuples that it holds for the old definition;"
        f" while {definition_id(old.name, old.version)} runs on, edges retain what either definition needs"
    )
    if was is not None:
        yield _old_state(was)
    if isinstance(new, StandingQuery):
        yield "the new definition begins without state: its windows and groups count no earlier reading"
    yield (
        "open episodes stay open, with the severity and labels with which they opened; while both definitions"
        " run, the longer gap closes them, and then that of the new one"
    )


def _old_state(old: Query) -> str:
    name = definition_id(old.alert, old.version)
    taken = "when all shards have taken up the plan"
    if isinstance(old, StandingQuery):
        left = ""
        if isinstance(old.node, Windows | Sessions):
            kind = "windows" if isinstance(old.node, Windows) else "sessions"
            left = f"; {kind} that are open then give no row of it"
        counts = "keeps its state, counts the earlier readings, and ends"
        return f"the old definition, {name}, {counts} {taken}{left}"
    if len(old.inputs) == 1:
        return f"the old definition, {name}, decides about earlier readings, and ends {taken}"
    live = (
        f"the old definition, {name}, keeps its live tuples and raises the alarms that need an earlier"
        f" reading; it ends {taken} and no earlier tuple can find a partner any more"
    )
    longest = span(old)
    if longest is None:
        return f"{live}: no time bound says when that is, and DROP ALERT {old.alert} ends it"
    return f"{live}: partners are at most {seconds(longest)} apart"
