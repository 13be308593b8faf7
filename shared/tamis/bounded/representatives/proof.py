"""The proof that a query needs limited memory, because of each source some tuples stand for all others.

The rows over tuples that cover all others are the rows over all tuples, also if all sources are replaced at
the same time, and after every tuple. For a combination of tuples that is a row, replace its first tuple by a
covering one: the row stays, since a tuple is covered for whatever tuples the others are. Then replace the
next one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tamis.analysis.conjuncts import flatten_and
from tamis.bounded.memory import Memory
from tamis.bounded.representatives.aggregates import (
    NUMBERS,
    DistinctForm,
    distinct_form,
    distinct_query,
    written,
)
from tamis.bounded.representatives.covers import CountedCover, Covers
from tamis.bounded.representatives.limits import Limits
from tamis.certificates.interval_arithmetic.subdivision import QueryEffort
from tamis.expressions.nodes import Expr, aliases, columns
from tamis.expressions.sql_text import to_sql
from tamis.operators.synopses.bound import Term
from tamis.plan.nodes import Cover
from tamis.query.model import Catalog, TimelessGroupBy, TimelessSelect

THEOREM = "representatives (docs/bounded.md)"


@dataclass(frozen=True)
class SourceCovers:
    """The covers of one source, and the conditions on its tuples alone."""

    alias: str
    filter: tuple[Expr, ...]
    covers: tuple[CountedCover, ...]


@dataclass(frozen=True)
class Represented:
    """A query of which representatives are enough, and the summands of the bound. `query`: the DISTINCT query
    whose conditions decide; a query with aggregates has one that needs the same tuples.
    """

    query: TimelessSelect
    sources: tuple[SourceCovers, ...]
    terms: tuple[Term, ...] = ()

    @property
    def bound(self) -> int:
        """The most kept tuples and remembered rows."""
        return sum(int(term.count) for term in self.terms)

    def memory(self) -> Memory:
        """The verdict."""
        counted = Counter(term.text for term in self.terms)
        texts = [text if count == 1 else f"{count} * {text}" for text, count in counted.items()]
        return Memory("bounded", self.bound, " + ".join(texts), THEOREM, self._reason())

    def _reason(self) -> str:
        """The tuples that are kept, in one sentence."""
        said = []
        for source in self.sources:
            kept = " and ".join(cover.said for cover in source.covers)
            limited = dict.fromkeys(to_sql(one) for cover in source.covers for one in cover.limited)
            said.append(f"for each {' and '.join(limited)} {kept}" if limited else kept)
        return f"these tuples stand for all others: {'; '.join(said)}"


@dataclass(frozen=True)
class NotRepresented:
    """The reason why no proof was found; empty if a query can have none."""

    reason: str = ""


def represented(query: TimelessSelect | TimelessGroupBy, catalog: Catalog) -> Represented | NotRepresented:
    """The representatives of a query with DISTINCT or aggregates over several sources."""
    plain = isinstance(query, TimelessSelect) and not query.distinct
    if plain or len(query.sources) < 2:
        return NotRepresented()
    streams = tuple(catalog.streams[source.stream] for source in query.sources)
    found: Represented | NotRepresented = catalog.results.get(
        (query, *streams), "representatives", lambda: _represented(query, catalog)
    )
    return found


def _represented(query: TimelessSelect | TimelessGroupBy, catalog: Catalog) -> Represented | NotRepresented:
    if isinstance(query, TimelessSelect):
        return _covered(DistinctForm(query, catalog), grouped=False)
    form = distinct_form(query, catalog)
    found = NotRepresented() if form is None else _covered(form, grouped=True)
    return _written(found, query) if isinstance(found, Represented) else found


def _covered(form: DistinctForm, *, grouped: bool) -> Represented | NotRepresented:
    query, catalog = form.query, form.catalog
    limits = Limits(query, catalog)
    shown = tuple(dict.fromkeys(c for output in query.select for c in columns(output.expr) if c.alias))
    if not limits.possible or not all(map(limits.limited, shown)):
        return NotRepresented()
    parts = [part for conjunct in query.conjuncts for part in flatten_and(conjunct.expr)]
    several = [part for part in parts if len(aliases(part)) > 1]
    several += [] if form.reached is None else [form.reached]
    streams = {source.alias: catalog.streams[source.stream] for source in query.sources}
    filters = {alias: _filters(alias, parts, limits) for alias in streams}
    known = streams if form.numbers is None else {**streams, NUMBERS: form.numbers}
    search = Covers(known, filters, shown, limits, QueryEffort())
    found = []
    for alias in streams:
        covers = search.of(alias, several)
        if covers is None:
            return NotRepresented(search.missing(alias, several))
        if form.most > 1 and (len(covers) > 1 or any(one.cover.unequal for one in covers)):
            return NotRepresented(f"more than one tuple of {alias} is needed for a count of 1")
        found.append(SourceCovers(alias, filters[alias], tuple(one.times(form.most) for one in covers)))
    terms = [Term(one.alias, cover.factors) for one in found for cover in one.covers]
    terms.append(Term(None, tuple(limits.factors(shown)), grouped))
    return Represented(query, tuple(found), tuple(terms))


def _written(found: Represented, query: TimelessGroupBy) -> Represented:
    """The representatives without columns that the query computes."""

    def own(exprs: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(written(expr, query) for expr in exprs)

    def counted(one: CountedCover) -> CountedCover:
        return replace(one, cover=replace(one.cover, equal=own(one.cover.equal)), limited=own(one.limited))

    sources = tuple(
        replace(one, filter=own(one.filter), covers=tuple(map(counted, one.covers))) for one in found.sources
    )
    return replace(found, sources=sources)


def every_tuple(query: TimelessGroupBy) -> Represented:
    """All tuples of all sources: they need no proof, and no other operator evaluates a query with arguments
    of aggregates over several sources.
    """
    rows = distinct_query(query, ())
    parts = [part for conjunct in rows.conjuncts for part in flatten_and(conjunct.expr)]
    covers = (CountedCover(Cover((), most=0), (), ""),)
    return Represented(
        rows, tuple(SourceCovers(one.alias, tuple(_own(one.alias, parts)), covers) for one in query.sources)
    )


def _filters(alias: str, parts: Sequence[Expr], limits: Limits) -> tuple[Expr, ...]:
    return tuple(dict.fromkeys((*_own(alias, parts), *limits.conditions(alias))))


def _own(alias: str, parts: Sequence[Expr]) -> list[Expr]:
    """The conditions on a source alone."""
    return [part for part in parts if aliases(part) <= {alias}]
