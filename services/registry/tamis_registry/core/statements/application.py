"""Application of one SQL text to the state: either all of its statements, or an error and no change.

All statements of a text belong to one plan version `n`. A definition that the same text creates and replaces
again is never used.
"""

from __future__ import annotations

from dataclasses import replace

from tamis.declarations.definitions import FunctionDef, PatternDef, TableDef
from tamis.declarations.streams import StreamDef
from tamis.persistent.dicts import PersistentDict
from tamis.planning.incremental import Built
from tamis.query.catalog import dependents
from tamis.query.model import (
    AlertDef,
    Catalog,
    DerivedDef,
    Drop,
    Explain,
    Redefine,
    SetPaused,
    Show,
    Statement,
)
from tamis.sharing.topic_choice import TopicId
from tamis.wording.names import suggest
from tamis_registry.core.errors import MissingError, lists
from tamis_registry.core.plan.planner import Planner
from tamis_registry.core.plan.shared_topics import derived_readers, forget_numbers, new_derived
from tamis_registry.core.shards.backfill import check_paused, check_replaced
from tamis_registry.core.shards.membership import delist_dropped
from tamis_registry.core.snapshot import Snapshot
from tamis_registry.core.state.model import KINDS, Defined, State, Stored
from tamis_registry.core.statements.catalog_changes import (
    Conflict,
    carry_out,
    existing,
    same,
    stays,
    word,
)
from tamis_registry.core.statements.outcomes import (
    DecidedQuery,
    Kept,
    Outcome,
    Result,
    check_path,
    decided,
)
from tamis_registry.core.statements.redefinition import redefine, unchanged
from tamis_registry.core.statements.replacement import retire

_LISTED = ("alert", "stream", "pattern")  # kinds that `tamis get` and the HTTP API list


class TextApplication:
    """Applies the statements of one text in turn to `state`; definitions of `before` stay as they are.
    `built`: the parts of the newest plan.
    """

    def __init__(
        self, state: State, planner: Planner, n: int, built: Built | None, before: Catalog | None = None
    ) -> None:
        self.state = state
        self._built = built
        self._before = before
        self._planner = planner
        self._n = n

    def take(self, statement: Statement) -> Outcome:
        """Apply one statement. Raises TamisError if that isn't possible."""
        if self._before is not None and stays(self._before, statement):
            return self._keep(statement)
        match statement:
            case AlertDef():
                return self._alert(statement)
            case StreamDef() | TableDef() | DerivedDef() | FunctionDef() | PatternDef():
                return self._define(statement)
            case Redefine():
                return self._redefine(statement)
            case Drop():
                return self._drop(statement)
            case SetPaused():
                return self._pause(statement)
            case Show():
                return Outcome(f"show {statement.kind}", "shown", shows=statement.kind)
            case Explain():
                return self._explain(statement)

    def _keep(self, statement: Statement) -> Outcome:
        """Leave the existing definition, and report if the statement differs from it."""
        assert not isinstance(statement, Show | Explain)
        kept = None
        match statement:
            case Drop():
                verb, kind = "drop", statement.kind
                stored = self._named(kind, statement.name)
                if stored is not None:
                    asked = f"DROP {kind.upper()} {statement.name}"
                    kept = Kept(stored.sql, asked, str(statement.position))
            case Redefine():
                verb, kind = statement.verb, statement.kind
                stored = self._named(kind, statement.name)
                if stored is not None and not unchanged(self.state.catalog, statement):
                    kept = Kept(stored.sql, statement.made.sql, str(statement.position))
            case SetPaused():
                verb, kind = ("pause" if statement.paused else "resume"), "alert"
                stored = self.state.statements[f"alert/{statement.name}"]
                if stored.paused != statement.paused:
                    now, asked = (
                        f"{'PAUSE' if p else 'RESUME'} ALERT {statement.name}"
                        for p in (stored.paused, statement.paused)
                    )
                    kept = Kept(now, asked, str(statement.position))
            case _:
                verb, kind = "create", "alert" if isinstance(statement, AlertDef) else word(statement)
                current = existing(self.state.catalog, statement)
                if current is not None and not same(current, statement):
                    kept = Kept(current.sql, statement.sql, str(statement.position))
        result: Result = "unchanged" if kept is None else "kept"
        return Outcome(f"{verb} {kind}", result, kind, statement.name, kept=kept)

    def _define(self, made: StreamDef | TableDef | DerivedDef | FunctionDef | PatternDef) -> Outcome:
        if isinstance(made, TableDef):
            check_path(made, self.state.catalog)
        kind = word(made)
        known = existing(self.state.catalog, made) is not None
        query = self._decided(made) if isinstance(made, DerivedDef) else None
        carry_out(self.state.catalog, made)
        if not known:
            self._store(made)
            if isinstance(made, DerivedDef):
                stored = new_derived(self.state, made, self.state.order, self._n)
                self.state.statements[f"derived/{made.name}"] = stored
        notices = made.notices if isinstance(made, PatternDef) else ()
        result: Result = "unchanged" if known else "created"
        return Outcome(f"create {kind}", result, kind, made.name, query, notices=notices)

    def _decided(self, made: AlertDef | DerivedDef) -> DecidedQuery:
        return decided(self._planner, made, self.state.catalog, self.state.statistics)

    def _alert(self, made: AlertDef) -> Outcome:
        known = existing(self.state.catalog, made)
        if isinstance(known, AlertDef):
            check_replaced(known, made)
        carry_out(self.state.catalog, made)
        query = self._decided(made)
        if known is not None and same(known, made):
            return Outcome("create alert", "unchanged", "alert", made.name, query)
        old = self.state.alert(made.name)
        retire(self.state, made.name, self._n)
        self._store(made, paused=bool(old and old.paused))
        return Outcome("create alert", "replaced" if old else "created", "alert", made.name, query)

    def _redefine(self, wish: Redefine) -> Outcome:
        what = f"{'create' if wish.verb == 'replace' else wish.verb} {wish.kind}"
        if unchanged(self.state.catalog, wish):
            return Outcome(what, "unchanged", wish.kind, wish.name)
        replanned = redefine(self.state, self._planner, wish, self._n)
        result: Result = "altered" if wish.verb == "alter" else "replaced"
        return Outcome(what, result, wish.kind, wish.name, replanned=tuple(replanned))

    def _drop(self, drop: Drop) -> Outcome:
        current = self._named(drop.kind, drop.name)
        if current is None:
            kinds = {drop.kind, "derived"} if drop.kind == "stream" else {drop.kind}
            known = [one.name for one in self.state.statements.values() if one.kind in kinds]
            # No command lists functions and tables, so the hint has their names.
            hint = suggest(drop.name, known, lists(f"{drop.kind}s") if drop.kind in _LISTED else None)
            raise MissingError(f"there is no {drop.kind} '{drop.name}'", hint=hint)
        if current.definition is not None:
            carry_out(self.state.catalog, drop)
        if drop.kind == "alert":
            self._forget_old(drop.name)
        else:
            self._check_old(drop)
            self._check_leases(drop)
            self._check_readers(drop)
        del self.state.statements[f"{current.kind}/{current.name}"]
        if current.kind == "stream":
            delist_dropped(self.state, [drop.name], self._n)
            forget_numbers(self.state, drop.name)
            self.state.statistics.pop(drop.name, None)
        return Outcome(f"drop {drop.kind}", "dropped", drop.kind, drop.name)

    def _forget_old(self, alert: str) -> None:
        for key in [key for key, old in self.state.retiring.items() if old.alert == alert]:
            del self.state.retiring[key]

    def _check_old(self, drop: Drop) -> None:
        """A definition that still runs beside its successor reads what it was made with."""
        current = self.state.statements[f"pattern/{drop.name}"].definition if drop.kind == "pattern" else None
        dropped = {drop.name: current} if isinstance(current, PatternDef) else {}
        for old in self.state.retiring.values():
            alone = Catalog(
                alerts=PersistentDict({old.alert: old.definition} if old.definition else {}),
                patterns=self.state.catalog.patterns | dropped,
            )
            if list(dependents(alone, drop.kind, drop.name)):
                raise Conflict(
                    f"{drop.kind} '{drop.name}' is read by the replaced definition of alert '{old.alert}', "
                    "which still runs until its last alarms are raised",
                    drop.position,
                    f"try again later, or drop alert {old.alert} first",
                )

    def _check_leases(self, drop: Drop) -> None:
        leases = [lease for lease in self.state.leases.values() if lease.stream == drop.name]
        if drop.kind == "stream" and leases:
            named = sorted({lease.consumer or "a consumer without name" for lease in leases})
            raise Conflict(
                f"stream '{drop.name}' is read from outside the fleet by {', '.join(named[:5])}",
                drop.position,
                "it can be dropped once their leases have expired",
            )

    def _check_readers(self, drop: Drop) -> None:
        """Alerts over the base stream may read the topic of a derived stream."""
        running, replaced = derived_readers(self.state, drop.name) if drop.kind == "stream" else ([], [])
        if running:
            named = ", ".join(f"alert '{name}'" for name in running[:5])
            raise Conflict(
                f"the topic of stream '{drop.name}' is read by {named}: it has all readings that they need",
                drop.position,
                f"replace them first: CREATE OR REPLACE ALERT {running[0]} WITH (read_derived = false) …",
            )
        if replaced:
            raise Conflict(
                f"the topic of stream '{drop.name}' is read by the replaced definition of alert "
                f"'{replaced[0]}', which still runs until its last alarms are raised",
                drop.position,
                f"try again later, or drop alert {replaced[0]} first",
            )

    def _pause(self, wish: SetPaused) -> Outcome:
        verb = "pause" if wish.paused else "resume"
        current = self.state.statements[f"alert/{wish.name}"]
        if current.alert is not None:
            check_paused(current.alert, wish)
        carry_out(self.state.catalog, wish)
        if current.paused == wish.paused:
            return Outcome(f"{verb} alert", "unchanged", "alert", wish.name)
        # What it missed while it was paused can't be made up for: it begins as a new definition.
        version = current.version if wish.paused else self._n
        # Derived streams may be dropped while it is paused.
        topics: dict[str, TopicId] = {
            alias: topic for alias, topic in current.topics.items() if isinstance(topic, int)
        }
        self.state.statements[f"alert/{wish.name}"] = replace(
            current, paused=wish.paused, version=version, topics=topics
        )
        self._forget_old(wish.name)
        return Outcome(f"{verb} alert", "paused" if wish.paused else "resumed", "alert", wish.name)

    def _explain(self, wish: Explain) -> Outcome:
        snapshot = Snapshot(self._planner, self.state.draft(), self._built)
        (query,) = snapshot.explain_parsed([wish], self._planner)
        return Outcome("explain", "explained", explained=query)

    def _named(self, kind: str, name: str) -> Stored | None:
        found = self.state.statements.get(f"{kind}/{name}")
        return self.state.statements.get(f"derived/{name}") if found is None and kind == "stream" else found

    def _store(self, made: Defined, paused: bool = False) -> None:
        kind = KINDS[type(made)]
        self.state.order += 1
        self.state.statements[f"{kind}/{made.name}"] = Stored(
            kind, made.name, made.sql, self.state.order, self._n, paused, definition=made
        )
