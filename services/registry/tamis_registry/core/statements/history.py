"""Checks of alerts that also read readings from before they were created (WITH from = …).

Such an alert has one definition for all of its life. Another one would read the history again, and raise the
same alarms a second time.
"""

from __future__ import annotations

from tamis.errors import NotAcceptedError
from tamis.query.model import AlertDef, SetPaused
from tamis_registry.core.shards.backfill import without_history
from tamis_registry.core.shards.fleet_reports import FleetReports
from tamis_registry.core.state.model import State
from tamis_registry.core.statements.catalog_changes import Conflict, same


def check_history(made: AlertDef, state: State, seen: FleetReports) -> None:
    """Check that edges can read the sources of a new alert's streams again. Raises NotAcceptedError."""
    known = state.catalog.alerts.get(made.name)
    if made.options.from_ is None or (known is not None and same(known, made)):
        return
    for stream in dict.fromkeys(source.stream for source in made.query.sources):
        if shards := without_history(stream, state, seen):
            raise NotAcceptedError(
                f"from: {', '.join(shards[:3])} of stream {stream} can't be read again: readings of HTTP and "
                "MQTT are deleted once they are used",
                where=f"{made.position}: alert {made.name}",
                hint="leave from out, or send the readings to a Kafka topic that edges read",
            )


def check_replaced(known: AlertDef, made: AlertDef) -> None:
    """Check that an alert that reads history isn't replaced, nor another one by it. Raises Conflict."""
    if same(known, made) or (known.options.from_ is None and made.options.from_ is None):
        return
    raise Conflict(
        f"alert '{made.name}' can't be replaced: with from, its definition reads the history of its streams, "
        "and would raise the same alarms again",
        made.position,
        f"choose another name, or write DROP ALERT {made.name} first",
    )


def check_paused(known: AlertDef, wish: SetPaused) -> None:
    """Check that an alert that reads history isn't paused. Raises Conflict."""
    if known.options.from_ is None or not wish.paused:
        return
    raise Conflict(
        f"alert '{known.name}' can't be paused: with from, it would read the history of its streams again "
        "when it is resumed",
        wish.position,
        f"write DROP ALERT {known.name}",
    )


def cannot_change(alert: str) -> tuple[str, str]:
    """The reason why a stream or function that an alert with `from` reads can't change, and what to do."""
    return (
        f"alert '{alert}' would need a new definition, which would read the history of its streams again",
        f"write DROP ALERT {alert} first",
    )
