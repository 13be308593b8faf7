"""What the readers of one text share: the text, the catalogue so far, and the mistakes found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches

from sqlglot import exp

from tamis.errors import Position, SqlError
from tamis.query.dialect import span
from tamis.query.model import Catalog
from tamis.query.text import Text


@dataclass(frozen=True)
class Name:
    """A name as it counts (folded to lower case unless quoted) and where it stands."""

    text: str
    offset: int


@dataclass
class Context:
    """One text being read. A reader that meets a mistake reports it here and goes on to find the others."""

    text: Text
    catalog: Catalog
    errors: list[SqlError] = field(default_factory=list)
    # Names whose own definition has a mistake: what reads them is left alone; one mistake is told once.
    broken_streams: set[str] = field(default_factory=set)
    broken_functions: set[str] = field(default_factory=set)
    broken_alerts: set[str] = field(default_factory=set)
    later_functions: set[str] = field(default_factory=set)  # defined further down in the text
    used_functions: set[str] = field(default_factory=set)  # called by the statement being read
    unnamed_queries: set[str] = field(default_factory=set)  # what those without a name were called

    def error(self, what: str, place: int | exp.Expr, hint: str) -> None:
        """Report a mistake at an offset or an expression."""
        offset = place if isinstance(place, int) else span(place)[0]
        self.errors.append(self.text.error(what, offset, hint))

    def unnamed(self, position: Position) -> str:
        """What a query without a name is called: by its line, and behind another of that line by its column,
        too. No alert and no stream can be called so.
        """
        name = f"line {position.line}"
        if name in self.unnamed_queries:
            name += f", column {position.column}"
        self.unnamed_queries.add(name)
        return name

    def source(self, node: exp.Expr) -> str:
        """The text of an expression, with runs of white space as one blank."""
        start, end = span(node)
        return " ".join(self.text.text[start : end + 1].split())


def name_of(identifier: exp.Expr) -> Name:
    """The name that an identifier stands for, as in Postgres: folded to lower case unless quoted."""
    text = identifier.name
    return Name(text if identifier.args.get("quoted") else text.lower(), span(identifier)[0])


def suggest(name: str, known: Iterable[str], otherwise: str | None = None) -> str:
    """What may have been meant by a name that isn't known.

    >>> suggest("tmep", ["temp", "rh"])
    "did you mean 'temp'?"
    >>> suggest("x", ["temp", "rh"])
    'known are: rh, temp'
    """
    names = sorted(set(known))
    folded = {known.lower(): known for known in names}
    close = get_close_matches(name.lower(), folded, n=1)
    if close:
        return f"did you mean '{folded[close[0]]}'?"
    if otherwise is not None:
        return otherwise
    return f"known are: {', '.join(names)}" if names else "none is defined yet"
