"""The catalogue: all definitions by name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tamis.declarations.definitions import FunctionDef, PatternDef, TableDef
from tamis.declarations.file_access import UNRESTRICTED, FileAccess
from tamis.declarations.streams import StreamDef
from tamis.identity_cache import IdentityCache
from tamis.persistent.dicts import PersistentDict
from tamis.query.model.statements import AlertDef, DerivedDef


@dataclass
class Catalog:
    """The definitions so far, by name. `parse` resolves names in it, and only `apply` changes it.

    `streams` also has the watched streams that an alert or a derived stream reads; nobody can name these.
    """

    streams: dict[str, StreamDef] = field(default_factory=dict)
    derived: dict[str, DerivedDef] = field(default_factory=dict)
    functions: dict[str, FunctionDef] = field(default_factory=dict)
    alerts: PersistentDict[str, AlertDef] = field(default_factory=PersistentDict)
    paused: set[str] = field(default_factory=set)
    tables: dict[str, TableDef] = field(default_factory=dict)
    patterns: dict[str, PatternDef] = field(default_factory=dict)
    file_access: FileAccess = UNRESTRICTED  # to the files of tables and patterns
    # Results of analyses of its definitions (verdicts, explanations), shared with copies.
    results: IdentityCache[Any] = field(default_factory=IdentityCache, compare=False, repr=False)

    def copy(self) -> Catalog:
        """An independent copy; definitions themselves are immutable."""
        return Catalog(
            dict(self.streams),
            dict(self.derived),
            dict(self.functions),
            self.alerts.copy(),
            set(self.paused),
            dict(self.tables),
            dict(self.patterns),
            self.file_access,
            self.results,
        )

    @property
    def raw_streams(self) -> dict[str, StreamDef]:
        """The raw streams that users have defined, without the watched streams."""
        return {name: stream for name, stream in self.streams.items() if stream.base is None}

    def raw_stream(self, name: str) -> StreamDef | None:
        """The raw stream that a user has defined with that name; None if there is none."""
        found = self.streams.get(name)
        return None if found is None or found.base is not None else found

    def reading(self, *definitions: AlertDef | DerivedDef) -> Catalog:
        """The catalogue with the watched streams of these definitions, which need not be in it. It is this
        object if it has all of them.
        """
        missing = [
            stream
            for definition in definitions
            for stream in definition.query.watched
            if stream.name not in self.streams
        ]
        return self.with_streams(missing) if missing else self

    def with_streams(self, streams: Iterable[StreamDef]) -> Catalog:
        """A copy that also has these streams."""
        extended = self.copy()
        extended.streams |= {stream.name: stream for stream in streams}
        return extended
