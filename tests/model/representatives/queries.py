"""Queries of which edges publish representatives, with variants that other alerts of a schedule ask."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

from tests.oracle.bounded.representatives.random_queries import KINDS, Declared, Maker, Query
from tests.oracle.bounded.representatives.trees import column, of

from tamis.errors import TamisError
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of

_KINDS = tuple(kind for kind in KINDS if kind not in ("front", "windows", "unlimited", "mixed"))


@dataclass(frozen=True)
class Asked:
    """The query of an alert. `raw`: its edges publish every reading."""

    query: Query
    raw: bool = False

    def statement(self, alert: str, *, again: bool) -> str:
        """The statement that makes the alert, or makes it anew."""
        create = "CREATE OR REPLACE" if again else "CREATE"
        raw = " WITH (edge = 'raw')" if self.raw else ""
        return f"{create} ALERT {alert}{raw} AS {self.query.sql()};"


def pool(number: int) -> tuple[Asked, ...]:
    """A query with its variants; the first two are the same, so that they share entries."""
    while not (found := _variants(number)):
        number += 10_000
    return found


@cache
def _variants(number: int) -> tuple[Asked, ...]:
    r = random.Random(f"query {number}")
    make = Maker(r, _KINDS[number % len(_KINDS)])
    query = make.query()
    if not _represented(query):
        return ()
    alias = r.choice(make.aliases)
    other = of(r.choice((">", "<=")), column(alias, "y"), make.number())
    narrow = replace(query, conditions=(*query.conditions, other))
    some = [Asked(narrow)] if _represented(narrow) else []
    return Asked(query), Asked(query), *some, Asked(query, raw=True)


def _represented(query: Query) -> bool:
    """True if edges can publish representatives of each stream."""
    try:
        plan = first_plan(catalog_of(f"{query.declarations()} CREATE ALERT q AS {query.sql()};"))
    except TamisError:
        return False
    entries = [entry for stream in plan.streams for topic in stream.topics for entry in topic.entries]
    return all(entry.representation is not None for entry in entries)


def with_more_keys(query: Query, r: random.Random) -> Query:
    """The streams with more keys than declared, where keys are declared."""
    streams = {name: tuple(_more(one) for one in columns) for name, columns in query.streams.items()}
    return replace(query, streams=streams) if r.random() < 0.15 else query


def _more(one: Declared) -> Declared:
    return replace(one, values=(*one.values, 101, 102, 103)) if "KEY" in one.declared else one


def streams_of(query: Query) -> Iterator[str]:
    """The streams that a query reads, each once."""
    yield from dict.fromkeys(stream for _, stream in query.sources)
