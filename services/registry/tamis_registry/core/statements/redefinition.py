"""Redefinition of streams and functions while alerts read them.

All queries that read the changed definition are proved again. They are refused as a whole, with the list of
the queries that would no longer be accepted. The definition of an alert becomes a new one, as by CREATE OR
REPLACE ALERT: the old one runs on beside it and reads the stream as it was (protocol, rule 11).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tamis.declarations.definitions import FunctionDef, TableDef
from tamis.declarations.domains import domain_check
from tamis.declarations.streams import StreamDef
from tamis.errors import SqlErrors, TamisError
from tamis.persistent.dicts import PersistentDict
from tamis.planning.queries.former_definitions import Former, stream_columns
from tamis.planning.queries.standing_queries import is_standing
from tamis.planning.verdict import Verdict
from tamis.query.catalog import dependents
from tamis.query.model import AlertDef, Catalog, DerivedDef, Redefine
from tamis.query.redefinition import described, meaning
from tamis_registry.core.leases import understood
from tamis_registry.core.plan.planner import Planner
from tamis_registry.core.plan.shared_topics import derived_readers, new_derived
from tamis_registry.core.shards.backfill import cannot_change
from tamis_registry.core.state.model import KINDS, Retiring, State, key_of
from tamis_registry.core.statements.catalog_changes import Conflict, carry_out
from tamis_registry.core.statements.outcomes import Replanned, decided

Query = AlertDef | DerivedDef


@dataclass
class _Work:
    """One redefinition. `before`: the catalogue until now."""

    state: State
    planner: Planner
    wish: Redefine
    n: int
    before: Catalog
    failures: list[Conflict] = field(default_factory=list)

    def fail(self, what: str, hint: str | None) -> None:
        """Note a reason why the redefinition is refused."""
        self.failures.append(Conflict(what, self.wish.position, hint))


def unchanged(catalog: Catalog, wish: Redefine) -> bool:
    """True if the definition is as the statement says."""
    now = (
        catalog.raw_stream(wish.name)
        if isinstance(wish.made, StreamDef)
        else catalog.functions.get(wish.name)
    )
    if isinstance(now, StreamDef) and isinstance(wish.made, StreamDef):
        return meaning(now) == meaning(wish.made)
    if isinstance(now, FunctionDef) and isinstance(wish.made, FunctionDef):
        return meaning(now) == meaning(wish.made)
    return False


def redefine(state: State, planner: Planner, wish: Redefine, n: int) -> list[Replanned]:
    """Change a definition in plan version `n`; returns the queries that read it.

    Raises SqlErrors with everything that would no longer hold; then `state` must not be used any more.
    """
    work = _Work(state, planner, wish, n, state.catalog.copy())
    carry_out(state.catalog, wish)
    queries = [one for one in wish.readers if isinstance(one, AlertDef | DerivedDef)]
    verdicts = [(one, verdict) for one in queries if (verdict := _verdict(work, one)) is not None]
    for query in queries:
        if isinstance(query, DerivedDef):
            _check_topic(work, query)
        elif query.options.from_ is not None and _needs_new_definition(
            work, work.before.alerts[query.name], query
        ):
            work.fail(*cannot_change(query.name))
    leases = _leases(work)
    if work.failures:
        raise SqlErrors(work.failures)
    _remember(work)
    for made in (wish.made, *wish.readers):
        if not isinstance(made, AlertDef):
            _store(work, made)
    state.leases |= leases
    return [_replan(work, query, verdict) for query, verdict in verdicts]


def _verdict(work: _Work, query: Query) -> Verdict | None:
    """The verdict on a query with the changed definition; None if it is refused."""
    try:
        return decided(work.planner, query, work.state.catalog, work.state.statistics).verdict
    except TamisError as error:
        work.fail(f"{described(query)} would no longer be accepted: {error.what}", error.hint)
        return None


def _check_topic(work: _Work, derived: DerivedDef) -> None:
    """The topic of a derived stream must not change while alerts or others read it."""
    before = work.before.derived[derived.name]
    if derived is before or _same_tuples(before, derived):
        return
    running, replaced = derived_readers(work.state, derived.name)
    for name in (*running, *replaced):
        work.fail(
            f"alert '{name}' reads the topic of stream '{derived.name}', whose tuples would change",
            f"replace it first: CREATE OR REPLACE ALERT {name} WITH (read_derived = false) …",
        )
    for lease in work.state.leases.values():
        if lease.stream == derived.name:
            work.fail(
                f"{lease.consumer or 'a consumer without name'} outside the fleet reads the topic of stream "
                f"'{derived.name}', whose tuples would change",
                "end its lease first",
            )


def _same_tuples(before: DerivedDef, now: DerivedDef) -> bool:
    """True if the topic of a derived stream carries the same tuples, perhaps with more columns."""
    selected = {output.name: output.expr for output in now.query.select}
    return before.query.conjuncts == now.query.conjuncts and all(
        selected.get(output.name) == output.expr for output in before.query.select
    )


def _leases(work: _Work) -> dict[str, Any]:
    """The leases with predicates that are resolved again."""
    found = {}
    for key, lease in work.state.leases.items():
        if work.state.catalog.streams.get(lease.stream) is work.before.streams.get(lease.stream):
            continue
        try:
            found[key] = understood(lease, work.state.catalog)
        except TamisError as error:
            named = lease.consumer or "a consumer without name"
            work.fail(f"the lease of {named} would no longer be valid: {error.what}", error.hint)
    return found


def _remember(work: _Work) -> None:
    """Note in the old definitions that still run what they read until now."""
    old = [one for one in _replaced(work) if not isinstance(one, AlertDef)]
    for key, retiring in work.state.retiring.items():
        if retiring.definition is not None:
            work.state.retiring[key] = _with_former(retiring, retiring.definition, old, work)


def _replaced(work: _Work) -> Iterator[StreamDef | TableDef | FunctionDef | DerivedDef | AlertDef]:
    """The definitions of before that have changed."""
    before = work.before
    for made in (work.wish.made, *work.wish.readers):
        match made:
            case StreamDef():
                old: Any = before.streams[made.name]
            case TableDef():
                old = before.tables[made.name]
            case FunctionDef():
                old = before.functions[made.name]
            case DerivedDef():
                old = before.derived[made.name]
            case AlertDef():
                old = before.alerts[made.name]
        if old is not made:
            yield old


def _with_former(retiring: Retiring, alert: AlertDef, old: Sequence[Any], work: _Work) -> Retiring:
    alone = Catalog(alerts=PersistentDict({alert.name: alert}))
    if not any(
        list(dependents(alone, KINDS[type(one)].replace("derived", "stream"), one.name)) for one in old
    ):
        return retiring
    known = {(type(one.definition), one.definition.name) for one in retiring.former_definitions}
    new = tuple(Former(work.n, one) for one in old if (type(one), one.name) not in known)
    return retiring.with_former((*retiring.former_definitions, *new))


def _store(work: _Work, made: StreamDef | TableDef | FunctionDef | DerivedDef) -> None:
    state = work.state
    stored = state.statements[key_of(made)]
    if isinstance(made, DerivedDef):
        before = work.before.derived[made.name]
        if made is not before and not _same_tuples(before, made):
            state.statements[key_of(made)] = new_derived(state, made, stored.order, work.n)
        else:
            state.statements[key_of(made)] = replace(stored, definition=made)
    elif stored.definition is not made:
        state.statements[key_of(made)] = replace(stored, sql=made.sql, version=work.n, definition=made)


def _replan(work: _Work, query: Query, verdict: Verdict) -> Replanned:
    before = (work.before.derived if isinstance(query, DerivedDef) else work.before.alerts)[query.name]
    changes = tuple(_differences(work.planner.decide(before, work.before), verdict))
    if isinstance(query, DerivedDef):
        return Replanned(verdict, "kept" if query is before else "replaced", changes)
    assert isinstance(before, AlertDef)
    key = key_of(query)
    stored = work.state.statements[key]
    if not _needs_new_definition(work, before, query):
        if query is not before:
            work.state.statements[key] = replace(stored, definition=query)
        return Replanned(verdict, "kept", changes)
    if not stored.paused and stored.version < work.n:
        old = [one for one in _replaced(work) if not isinstance(one, AlertDef)]
        retiring = Retiring(
            query.name, stored.version, stored.sql, stored.order, work.n, stored.topics, before
        )
        work.state.retiring[retiring.id] = _with_former(retiring, before, old, work)
    work.state.statements[key] = replace(stored, version=work.n, topics={}, definition=query)
    return Replanned(verdict, "replaced", changes)


def _needs_new_definition(work: _Work, before: AlertDef, now: AlertDef) -> bool:
    """True if the alert must have a new definition: it means something else, or its proofs and its tuples
    depend on what has changed.

    A join compares tuples from before and after the change, so each change of the columns separates them. A
    standing query would begin anew, so it has a new definition only if its synopses depend on the change.
    """
    if before is not now:
        return True
    standing = is_standing(now, work.state.catalog)
    for source in now.query.sources:
        old, new = work.before.streams.get(source.stream), work.state.catalog.streams.get(source.stream)
        if old is None or new is None or old is new:
            continue
        if standing and (old.keys, old.rate, _domains(old)) != (new.keys, new.rate, _domains(new, old)):
            return True
        if not standing and stream_columns(old) != stream_columns(new):
            return True
    return False


def _domains(stream: StreamDef, of: StreamDef | None = None) -> list[object]:
    """The domains of the columns that `of` has, which is `stream` if not given."""
    names = {column.name for column in (of or stream).columns}
    return [
        (column.name, column.not_null, domain_check(column))
        for column in stream.columns
        if column.name in names
    ]


def _differences(before: Verdict, now: Verdict) -> Iterator[str]:
    """Differences in the omission and in the bound of a query, for its owner."""
    old = {one.alias: one.omission for one in before.inputs}
    for one in now.inputs:
        was = old.get(one.alias)
        if was is not None and was.interval and not one.omission.interval:
            yield f"edges omit no tuple of {one.alias} any more: {one.reason}"
        elif was is not None and one.omission.interval and not was.interval:
            yield f"edges omit tuples of {one.alias} now: {one.reason}"
    if before.memory.bound != now.memory.bound:
        bounds = (before.memory.bound, now.memory.bound)
        said = ["no number" if one is None else str(one) for one in bounds]
        yield f"the bound of its memory was {said[0]} and is {said[1]}"
