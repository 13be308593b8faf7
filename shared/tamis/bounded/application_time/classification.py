"""Classification: joins over event time that are evaluated in application time."""

from __future__ import annotations

from tamis.analysis.conjuncts import analyse, time_distances
from tamis.bounded.application_time.verdict import memory_verdict
from tamis.bounded.memory import Memory
from tamis.query.model import AlertDef, Catalog, DerivedDef, Query


def open_ended(query: Query, catalog: Catalog) -> bool:
    """True for a join over event time in which the times of two tuples may be any distance apart. The join by
    time would keep all tuples forever.
    """
    if (
        query.timeless
        or query.in_time
        or query.grouping is not None
        or query.window is not None
        or query.asof
    ):
        return False
    if len(query.sources) < 2 or query.exists or query.absences:
        return False
    if not time_distances(query, catalog).unconnected():
        return False
    found = analyse(query, catalog)
    return not found.refused and found.contradiction is None


def decided(definition: AlertDef | DerivedDef, catalog: Catalog) -> Memory | None:
    """The verdict in application time on an open-ended join over event time; None for all other queries."""

    catalog = catalog.reading(definition)

    def decide() -> Memory | None:
        query = definition.query
        return memory_verdict(query, catalog) if open_ended(query, catalog) else None

    found: Memory | None = catalog.results.get(_key(definition, catalog), "application time", decide)
    return found


def learn(definition: AlertDef | DerivedDef, catalog: Catalog, found: Memory | None) -> None:
    """Remember a verdict that another process has made."""
    catalog.results.put(_key(definition, catalog), "application time", found)


def known(definition: AlertDef | DerivedDef, catalog: Catalog) -> tuple[Memory | None] | None:
    """The remembered verdict, in a tuple; None if there is none yet."""
    return catalog.results.find(_key(definition, catalog), "application time")


def _key(definition: AlertDef | DerivedDef, catalog: Catalog) -> tuple[object, ...]:
    streams = catalog.reading(definition).streams
    return definition, *(streams.get(source.stream) for source in definition.query.sources)


def runs_in_time(definition: AlertDef | DerivedDef, catalog: Catalog) -> bool:
    """True if the query is evaluated in application time. This includes an open-ended join if application
    time bounds its memory.
    """
    if definition.query.in_time:
        return True
    found = decided(definition, catalog)
    return found is not None and found.verdict == "bounded"
