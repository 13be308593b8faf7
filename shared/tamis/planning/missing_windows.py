"""The windows that aggregates over a stream with event time may lack.

Without windows they have all readings since the alert was created. Their groups may then need unlimited
memory, and their author may have forgotten the windows.
"""

from __future__ import annotations

from tamis.expressions.sql_text import identifier, interval
from tamis.query.model import Catalog, Query, TimelessGroupBy

_MINUTE = 60_000_000


def windows_instead(query: Query, catalog: Catalog) -> str | None:
    """The SQL of windows for aggregates over a stream with event time, which are bounded by time; None for
    other queries, and for aggregates over windows.
    """
    if not isinstance(query, TimelessGroupBy):
        return None
    source = query.sources[0]
    stream = catalog.streams[source.stream]
    if stream.time is None:
        return None
    # The columns of a derived stream may have other names.
    named = "stream, time" if source.via else f"{identifier(stream.shown_name)}, {identifier(stream.time)}"
    return f"FROM TUMBLE({named}, {interval(_MINUTE)}) and GROUP BY window_start"
