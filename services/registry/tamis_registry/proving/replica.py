"""The registry's definitions in another process: only changes are sent.

Each definition is pickled separately, because pickling thousands at once would stop every thread of the
registry.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass

from tamis.persistent.dicts import changed_keys
from tamis.query.model import Catalog
from tamis_registry.core.statements.reading import Definitions, kinds


@dataclass(frozen=True)
class Difference:
    """The removed and the new definitions, by kind and name. `paused`: all paused alerts."""

    gone: tuple[tuple[str, str], ...]
    new: tuple[tuple[str, str, bytes], ...]
    paused: frozenset[str]

    def apply(self, catalog: Catalog) -> None:
        """Change a replica."""
        tables: dict[str, Definitions] = dict(kinds(catalog))
        for kind, name in self.gone:
            del tables[kind][name]
        for kind, name, pickled in self.new:
            tables[kind][name] = pickle.loads(pickled)
        catalog.paused = set(self.paused)


class Sent:
    """The definitions that were sent to one replica."""

    def __init__(self) -> None:
        self._known = Catalog()

    def difference(self, catalog: Catalog) -> Difference:
        """The message that makes the replica equal to `catalog`; it counts as sent."""
        # A copy: the catalogue of a draft may still change.
        before, now = self._known, catalog.copy()
        gone: list[tuple[str, str]] = []
        new: list[tuple[str, str, bytes]] = []
        for (kind, known), (_, found) in zip(kinds(before), kinds(now), strict=True):
            removed, added = changed_keys(known, found)
            gone += ((kind, name) for name in removed)
            new += ((kind, name, pickle.dumps(found[name])) for name in added)
        self._known = now
        return Difference(tuple(gone), tuple(new), frozenset(catalog.paused))
