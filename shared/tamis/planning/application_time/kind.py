"""Which queries are evaluated in application time."""

from __future__ import annotations

from tamis.planning.analysis import analyse
from tamis.planning.application_time.answer import answer
from tamis.planning.bounds import Memory
from tamis.planning.remembered import MOST, Remembered
from tamis.query.model import AlertDef, Catalog, DerivedDef, Query

_DECIDED = Remembered[Memory | None](MOST)


def open_ended(query: Query, catalog: Catalog) -> bool:
    """Is it a join over event time in which two tuples may lie apart as far as they like? The join by time
    would keep all tuples for ever.
    """
    if query.timeless or query.in_time or query.grouping is not None or query.window is not None:
        return False
    if len(query.sources) < 2:
        return False
    found = analyse(query, catalog)
    return not found.refused and found.contradiction is None and bool(found.closure.unconnected())


def decided(definition: AlertDef | DerivedDef, catalog: Catalog) -> Memory | None:
    """The verdict in application time on a join over event time that is open-ended; None for all others."""

    def decide() -> Memory | None:
        query = definition.query
        return answer(query, catalog) if open_ended(query, catalog) else None

    streams = [catalog.streams.get(source.stream) for source in definition.query.sources]
    return _DECIDED.get((definition, *streams), None, decide)


def runs_in_time(definition: AlertDef | DerivedDef, catalog: Catalog) -> bool:
    """Is it evaluated in application time? So are open-ended joins where that bounds their memory."""
    if definition.query.in_time:
        return True
    found = decided(definition, catalog)
    return found is not None and found.verdict == "bounded"
