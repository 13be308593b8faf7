"""Changes of streams and functions after which a query would no longer be accepted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from tamis.errors import Position
from tamis.planning.decide import verdict_on
from tamis.query.catalog import apply
from tamis.query.model import AlertDef, Catalog, DerivedDef, Redefine, Statement


@dataclass(frozen=True)
class NoLongerAccepted:
    """A query that a change would make refused, with the reason and what would help."""

    kind: str  # "alert", "stream"
    name: str
    reason: str
    repairs: tuple[str, ...]


@dataclass(frozen=True)
class RefusedChange:
    """A change that is refused as a whole because of these queries. `statement`: its first words."""

    statement: str
    position: Position
    queries: tuple[NoLongerAccepted, ...]

    def document(self) -> dict[str, Any]:
        """The JSON object of the interface."""
        return {
            "statement": self.statement,
            "where": str(self.position),
            "queries": [asdict(one) for one in self.queries],
        }


def refused_changes(statements: Iterable[Statement]) -> list[RefusedChange]:
    """The changes among the statements of a file that would make an accepted query refused.

    Raises InputError where a table can't be read.
    """
    catalog, found = Catalog(), []
    for statement in statements:
        before = catalog.copy() if isinstance(statement, Redefine) else catalog
        apply(catalog, statement)
        if isinstance(statement, Redefine):
            readers = (one for one in statement.readers if isinstance(one, AlertDef | DerivedDef))
            queries = [_no_longer_accepted(one, before, catalog) for one in readers]
            refused = tuple(one for one in queries if one is not None)
            if refused:
                words = "ALTER" if statement.verb == "alter" else "CREATE OR REPLACE"
                name = f"{words} {statement.kind.upper()} {statement.name}"
                found.append(RefusedChange(name, statement.position, refused))
    return found


def _no_longer_accepted(
    query: AlertDef | DerivedDef, before: Catalog, after: Catalog
) -> NoLongerAccepted | None:
    now = verdict_on(query, after)
    known = (before.alerts if isinstance(query, AlertDef) else before.derived)[query.name]
    if now.accepted or not verdict_on(known, before).accepted:
        return None
    return NoLongerAccepted(now.kind, query.name, now.reason, now.memory.repairs)
