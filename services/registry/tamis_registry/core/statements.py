"""What one SQL text does to the state: all of its statements, or an error and nothing.

The text is one step in time: it makes one plan version `n`, and what it makes and replaces again never was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from tamis.errors import NotAcceptedError
from tamis.messaging.topics import stream_topic
from tamis.planning.build import Built, definition_id
from tamis.planning.traffic import Estimate
from tamis.query.catalog import readers
from tamis.query.model import (
    AlertDef,
    Catalog,
    DerivedDef,
    Drop,
    Explain,
    FunctionDef,
    SetPaused,
    Show,
    Statement,
    StreamDef,
    TableDef,
)
from tamis.query.parse import parse
from tamis_registry.core.carry import Conflict, carry_out, existing, same, word
from tamis_registry.core.errors import MissingError, UnboundedError
from tamis_registry.core.membership import delist_dropped
from tamis_registry.core.planner import Planner
from tamis_registry.core.state import Defined, Kind, Retiring, State, Stored
from tamis_registry.core.topics import forget_numbers

Result = Literal["created", "replaced", "unchanged", "dropped", "paused", "resumed", "shown", "explained"]

_KINDS: dict[type[Defined], Kind] = {
    StreamDef: "stream",
    TableDef: "table",
    DerivedDef: "derived",
    FunctionDef: "function",
    AlertDef: "alert",
}


@dataclass(frozen=True)
class Outcome:
    """What became of one statement. `query` is its part of EXPLAIN's document; `shows` what SHOW asked
    for.
    """

    statement: str
    result: Result
    kind: str | None = None
    name: str | None = None
    query: dict[str, Any] | None = None
    shows: str | None = None


def verdict(
    planner: Planner,
    made: AlertDef | DerivedDef,
    catalog: Catalog,
    readings: Mapping[str, Estimate] | None = None,
) -> dict[str, Any]:
    """The query's part of EXPLAIN's document, as `Planner.explain` makes it; raises NotAcceptedError where it
    isn't accepted.
    """
    query = planner.explain(made, catalog, readings)
    if query["accepted"]:
        return query
    memory = query["memory"]
    name = f"{query['kind']} '{made.name}'"
    if memory["verdict"] != "bounded":
        raise UnboundedError(
            f"the memory of {name} is {memory['verdict']}: {memory['reason']}",
            where=str(made.position),
            hint="; or ".join(memory["repairs"]) or "WITH (allow_unbounded = true) accepts it as it is",
            document=query,
        )
    raise NotAcceptedError(f"{name} is refused: {memory['reason']}", where=str(made.position))


def explain_text(
    text: str,
    catalog: Catalog,
    planner: Planner,
    readings: Mapping[str, Estimate],
    file: str | None = None,
) -> list[dict[str, Any]]:
    """EXPLAIN's document of every query of a text, refused ones too; `catalog` is changed as by the text."""
    queries = []
    for statement in parse(text, catalog, carry_out, file):
        carry_out(catalog, statement)
        match statement:
            case TableDef():
                _check_path(statement, catalog)
            case AlertDef() | DerivedDef():
                queries.append(planner.explain(statement, catalog, readings))
            case Explain():
                queries.append(planner.explain(_target(statement, catalog), catalog, readings))
    return queries


def tell(query: dict[str, Any], state: State, built: Built) -> None:
    """Put into a query's part of EXPLAIN's document which topics serve its sources, and why, where it is an
    alert of this state.
    """
    stored = state.alert(query["name"])
    choices = {} if stored is None else built.served(definition_id(stored.name, stored.version))
    for source in query.get("streams", ()):
        # A standing query has a topic for each stream, however often it reads it.
        choice = choices.get(source["alias"]) or choices.get(source["stream"])
        if choice is not None:
            source["sharing"] = {
                "topic": stream_topic(source["stream"], choice.number),
                "how": choice.how,
                "share_before": choice.before,
                "share": choice.after,
                "estimated_from": choice.basis,
                "reason": choice.reason(),
            }


def _check_path(table: TableDef, catalog: Catalog) -> None:
    """Raises RefusedError where the table's file is out of reach."""
    catalog.reach.resolved(table.path, f"{table.position}: table {table.name}")


def _target(wish: Explain, catalog: Catalog) -> AlertDef | DerivedDef:
    if isinstance(wish.target, AlertDef):
        return wish.target
    return catalog.alerts.get(wish.target) or catalog.derived[wish.target]


class Fold:
    """Takes the statements of one text in turn; `state` is changed as they are taken."""

    def __init__(self, state: State, planner: Planner, n: int) -> None:
        self.state = state
        self._planner = planner
        self._n = n

    def take(self, statement: Statement) -> Outcome:
        """Do one statement; raises TamisError where it can't be done."""
        match statement:
            case AlertDef():
                return self._alert(statement)
            case StreamDef() | TableDef() | DerivedDef() | FunctionDef():
                return self._define(statement)
            case Drop():
                return self._drop(statement)
            case SetPaused():
                return self._pause(statement)
            case Show():
                return Outcome(f"show {statement.kind}", "shown", shows=statement.kind)
            case Explain():
                return self._explain(statement)

    def _define(self, made: StreamDef | TableDef | DerivedDef | FunctionDef) -> Outcome:
        if isinstance(made, TableDef):
            _check_path(made, self.state.catalog)
        kind = word(made)
        known = existing(self.state.catalog, made) is not None
        query = self._verdict(made) if isinstance(made, DerivedDef) else None
        carry_out(self.state.catalog, made)
        if not known:
            self._store(made)
        return Outcome(f"create {kind}", "unchanged" if known else "created", kind, made.name, query)

    def _verdict(self, made: AlertDef | DerivedDef) -> dict[str, Any]:
        return verdict(self._planner, made, self.state.catalog, self.state.estimates)

    def _alert(self, made: AlertDef) -> Outcome:
        known = existing(self.state.catalog, made)
        carry_out(self.state.catalog, made)
        query = self._verdict(made)
        if known is not None and same(known, made):
            return Outcome("create alert", "unchanged", "alert", made.name, query)
        old = self.state.alert(made.name)
        if old and old.alert and not old.paused and old.version < self._n:
            retiring = Retiring(made.name, old.version, old.sql, old.order, self._n, old.topics, old.alert)
            self.state.retiring[retiring.id] = retiring
        self._store(made, paused=bool(old and old.paused))
        return Outcome("create alert", "replaced" if old else "created", "alert", made.name, query)

    def _drop(self, drop: Drop) -> Outcome:
        current = self._named(drop.kind, drop.name)
        if current is None:
            raise MissingError(
                f"there is no {drop.kind} '{drop.name}'", hint="see what there is with `tamis get`"
            )
        if current.definition is not None:
            carry_out(self.state.catalog, drop)
        if drop.kind == "alert":
            self._forget_old(drop.name)
        else:
            self._check_old(drop)
            self._check_leases(drop)
        del self.state.statements[f"{current.kind}/{current.name}"]
        if current.kind == "stream":
            delist_dropped(self.state, [drop.name], self._n)
            forget_numbers(self.state, drop.name)
            self.state.estimates.pop(drop.name, None)
        return Outcome(f"drop {drop.kind}", "dropped", drop.kind, drop.name)

    def _forget_old(self, alert: str) -> None:
        for key in [key for key, old in self.state.retiring.items() if old.alert == alert]:
            del self.state.retiring[key]

    def _check_old(self, drop: Drop) -> None:
        """A definition that still runs beside its successor reads what it was made with."""
        for old in self.state.retiring.values():
            alone = Catalog(alerts={old.alert: old.definition} if old.definition else {})
            if list(readers(alone, drop.kind, drop.name)):
                raise Conflict(
                    f"{drop.kind} '{drop.name}' is read by the replaced definition of alert '{old.alert}', "
                    "which runs until its last combinations have come",
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

    def _pause(self, wish: SetPaused) -> Outcome:
        verb = "pause" if wish.paused else "resume"
        current = self.state.statements[f"alert/{wish.name}"]
        carry_out(self.state.catalog, wish)
        if current.paused == wish.paused:
            return Outcome(f"{verb} alert", "unchanged", "alert", wish.name)
        # What it missed while it was paused can't be made up for: it begins as a new definition.
        version = current.version if wish.paused else self._n
        self.state.statements[f"alert/{wish.name}"] = replace(current, paused=wish.paused, version=version)
        self._forget_old(wish.name)
        return Outcome(f"{verb} alert", "paused" if wish.paused else "resumed", "alert", wish.name)

    def _explain(self, wish: Explain) -> Outcome:
        catalog = self.state.catalog
        query = self._planner.explain(_target(wish, catalog), catalog, self.state.estimates)
        return Outcome("explain", "explained", query=query)

    def _named(self, kind: str, name: str) -> Stored | None:
        found = self.state.statements.get(f"{kind}/{name}")
        return self.state.statements.get(f"derived/{name}") if found is None and kind == "stream" else found

    def _store(self, made: Defined, paused: bool = False) -> None:
        kind = _KINDS[type(made)]
        self.state.order += 1
        self.state.statements[f"{kind}/{made.name}"] = Stored(
            kind, made.name, made.sql, self.state.order, self._n, paused, definition=made
        )
