"""The explanation of the option `from` of an alert: what edges read again, and what it costs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tamis.query.model import AlertDef, Catalog, DerivedDef

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def history_in_words(definition: AlertDef | DerivedDef, catalog: Catalog) -> str:
    """Sentences on the reading of history; empty without the option `from`."""
    since = definition.options.from_ if isinstance(definition, AlertDef) else None
    if since is None:
        return ""
    names = dict.fromkeys(one.stream for one in definition.query.sources if one.stream in catalog.streams)
    streams = " and ".join(names)
    left_out = ""
    if since != "earliest":
        at = (_EPOCH + timedelta(microseconds=since)).isoformat()
        left_out = f". Readings from before {at} are left out"
    return (
        f"edges read the sources of {streams} once more for this alert alone, from the beginning of what "
        f"Kafka topics and recordings still have, and then go on with new readings{left_out}. The tuples are "
        "sent in topics that no other alert shares. While an edge reads the history, a source that is more "
        "than max_stall ahead of another one waits for it. Sources of different edges can be further apart, "
        "and the joiner keeps the tuples between"
    )
