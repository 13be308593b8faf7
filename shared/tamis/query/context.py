"""Shared state of the resolution of one text: the text, the catalogue so far, and the mistakes found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from tamis.declarations.streams import StreamDef
from tamis.errors import Position, SqlError
from tamis.query.model import Catalog, DerivedDef, Source, Statement
from tamis.query.syntax.dialect import span
from tamis.query.syntax.text import Text

Namespace = Literal["stream", "function", "alert", "pattern"]
"""The kinds of names. Tables are in the namespace of streams, since both can be in FROM."""

_NOWHERE = Position(0, 0)


@dataclass
class Context:
    """One text being resolved. Code that finds a mistake reports it here and goes on to find the others."""

    text: Text
    catalog: Catalog
    errors: list[SqlError] = field(default_factory=list)
    # Names whose definition has a mistake, and unknown names that were reported. Mistakes that may follow
    # from them are not reported, so that a user sees each mistake once.
    broken_streams: set[str] = field(default_factory=set)
    broken_functions: set[str] = field(default_factory=set)
    broken_alerts: set[str] = field(default_factory=set)
    broken_patterns: set[str] = field(default_factory=set)
    # Namespaces with a definition whose name could not be read: an unknown name may be the missing one.
    incomplete: set[Namespace] = field(default_factory=set)
    failed_drops: set[str] = field(default_factory=set)  # streams and tables whose DROP has a mistake
    missing_watermarks: set[str] = field(default_factory=set)  # streams for which one was reported missing
    # Index in `errors` of each mistake that `error_once` reported in the current statement.
    reported: dict[str, int] = field(default_factory=dict)
    select_tokens: list[Token] = field(default_factory=list)  # of the current SELECT
    recovered: bool = False  # a part of the current SELECT was dropped because of a syntax error
    later_functions: set[str] = field(default_factory=set)  # defined further down in the text
    called_functions: set[str] = field(default_factory=set)  # by the current statement
    anonymous_names: set[str] = field(default_factory=set)  # given to queries without a name
    # The subqueries of WITH that the current SELECT can name; None for one with a mistake.
    subqueries: dict[str, DerivedDef | None] = field(default_factory=dict)
    around: int = 0  # the number of queries around the current one, which is a subquery if there are any
    # Parses the text of a definition again, with another catalogue.
    parse: Callable[[str, Catalog, str | None], list[Statement]] = field(default=lambda *_: [], repr=False)

    def stream(self, source: Source) -> StreamDef | None:
        """The stream of a source; None for a table."""
        return source.aggregated or self.catalog.streams.get(source.stream)

    def error(self, what: str, place: int | exp.Expr, hint: str) -> None:
        """Report a mistake at an offset or at an expression."""
        offset = place if isinstance(place, int) else span(place)[0]
        self.errors.append(self.text.error(what, offset, hint))

    def error_once(self, what: str, place: int | exp.Expr, hint: str, key: str | None = None) -> None:
        """Report a mistake once in a statement, at its first position, such as an unknown name that the
        statement repeats. Mistakes with the same `key` are one mistake; by default the message is the key.
        """
        key = what if key is None else key
        if key not in self.reported:
            self.reported[key] = len(self.errors)
            self.error(what, place, hint)
            return
        self.error(what, place, hint)
        other, index = self.errors.pop(), self.reported[key]
        if (other.position or _NOWHERE) < (self.errors[index].position or _NOWHERE):
            self.errors[index] = other

    def broken(self, namespace: Namespace) -> set[str]:
        """The broken names of a namespace."""
        return {
            "stream": self.broken_streams,
            "function": self.broken_functions,
            "alert": self.broken_alerts,
            "pattern": self.broken_patterns,
        }[namespace]

    def anonymous_name(self, position: Position) -> str:
        """A name for a query without one: its line, and its column if another query is on the same line. No
        alert and no stream can have such a name.
        """
        name = f"line {position.line}"
        if name in self.anonymous_names:
            name += f", column {position.column}"
        self.anonymous_names.add(name)
        return name

    def source(self, node: exp.Expr) -> str:
        """The text of an expression, with each run of white space as one blank."""
        start, end = span(node)
        return " ".join(self.text.text[start : end + 1].split())
