"""The registry's definitions in another process: only changes are sent.

Each definition is pickled separately, because pickling thousands at once would stop every thread of the
registry.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass

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
        self._known: dict[tuple[str, str], object] = {}

    def difference(self, catalog: Catalog) -> Difference:
        """The message that makes the replica equal to `catalog`; it counts as sent."""
        now = {(kind, name): one for kind, some in kinds(catalog) for name, one in some.items()}
        gone = tuple(key for key in self._known if key not in now)
        new = tuple((*key, pickle.dumps(one)) for key, one in now.items() if self._known.get(key) is not one)
        self._known = now
        return Difference(gone, new, frozenset(catalog.paused))
