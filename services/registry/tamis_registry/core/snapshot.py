"""The registry's state at one moment, for questions that change nothing.

A proof may take seconds. It runs on a snapshot, so that the registry's loop can continue meanwhile. Only the
question uses the snapshot's state, and the objects that it shares with the registry never change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tamis.plan.model import partial_topics
from tamis.planning.incremental import Built
from tamis.query.model import Catalog, Redefine, Statement
from tamis_registry.core.leases import take
from tamis_registry.core.plan.draft_plan import plan_draft
from tamis_registry.core.plan.planner import Planner, knowing
from tamis_registry.core.plan.shared_topics import new_derived
from tamis_registry.core.state.model import Lease, State, Stored
from tamis_registry.core.statements.outcomes import explain_all, tell
from tamis_registry.core.statements.reading import (
    OutdatedError,
    Read,
    parsed,
    same_definitions,
)
from tamis_registry.core.statements.replacement import replacement, retire
from tamis_registry.core.topic_readers import tell_needs


@dataclass(frozen=True)
class Snapshot:
    """A draft of the state with the newest estimates. `before`: the parts of the newest plan."""

    planner: Planner
    state: State
    before: Built | None

    def explain(self, text: str, file: str | None = None) -> list[dict[str, Any]]:
        """EXPLAIN's document of every query of a text. It changes the snapshot's state, so call it once for
        each snapshot.
        """
        return self.explain_parsed(parsed(text, self.state.catalog, file), self.planner)

    def explain_read(self, text: Read, by: Catalog) -> list[dict[str, Any]]:
        """EXPLAIN's document for a text that another process has read with the catalogue `by`.

        Raises OutdatedError if the definitions have changed since.
        """
        if not same_definitions(by, self.state.catalog):
            raise OutdatedError
        text = text.within(self.state.catalog)
        return self.explain_parsed(text.statements, knowing(self.planner, text.known))

    def explain_parsed(self, statements: Sequence[Statement], planner: Planner) -> list[dict[str, Any]]:
        """EXPLAIN's document for statements that were parsed with the snapshot's catalogue."""
        draft = self.state
        known, derived = dict(draft.catalog.alerts), set(draft.catalog.derived)
        queries = explain_all(statements, draft.catalog, planner, draft.statistics)
        for query in queries:
            if not query["accepted"]:
                of = draft.catalog.alerts if query["kind"] == "alert" else draft.catalog.derived
                of.pop(query["name"], None)
        n = draft.version + 1
        for name, stream in draft.catalog.derived.items():
            if name not in derived:
                draft.statements[f"derived/{name}"] = new_derived(draft, stream, 0, n)
        for name in known.keys() - draft.catalog.alerts.keys():
            draft.statements.pop(f"alert/{name}", None)
        # Old definitions would have to read streams as they were before a redefinition.
        redefined = any(isinstance(one, Redefine) for one in statements)
        replaced = {}
        for name, alert in draft.catalog.alerts.items():
            if alert is not known.get(name):
                before = draft.alert(name)
                if before is not None and before.version < n and not redefined:
                    replaced[name] = before
                    retire(draft, name, n)
                draft.statements[f"alert/{name}"] = Stored("alert", name, alert.sql, 0, n, definition=alert)
        built = self._planned(draft, n)
        running = self.before.plan if self.before else None
        for query in queries:
            tell(query, draft, built)
            old, made = replaced.get(query["name"]), draft.catalog.alerts.get(query["name"])
            if old is not None and made is not None and query["kind"] == "alert":
                found = replacement(old, made, draft, running, built.plan)
                if found is not None:
                    query["replaces"] = found
        tell_needs(queries, draft, built.plan)
        return queries

    def look(self, wanted: Lease) -> tuple[State, Lease]:
        """The lease that would be made now, and the state with it. Call it once for each snapshot."""
        lease, _ = take(self.state, wanted, self.state.version + 1)
        if lease.subscription is not None:
            self._planned(self.state, self.state.version + 1)
        return self.state, self.state.leases[lease.id]

    def _planned(self, draft: State, n: int) -> Built:
        partials: frozenset[str] | None = frozenset()
        if self.before is not None:
            partials = partial_topics(self.before.plan) if self.before.partials else None
        return plan_draft(self.planner, draft, n, self.before, partials=partials)
