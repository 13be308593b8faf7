"""Figures of alarms and of the alerts service."""

from __future__ import annotations

from tamis.evaluation.replay import replay
from tamis.messaging.topics import DAY_MS
from tamis.plan.model import Definition
from tamis.sizing.figures import Figure, weakest
from tamis.sizing.fleet import BUSY, Fleet
from tamis.sizing.kafka import overhead, stored
from tamis.sizing.load import SECOND
from tamis.sizing.records import alarm_bytes

# Of a million published tuples so many alarms, where nothing says more.
ALARM_SHARE = 1e-3
# A batch of the joiner takes so long at least.
BATCH_SECONDS = 0.2


def alarm_figures(fleet: Fleet) -> dict[str, Figure]:
    """Alarms a second, and their topic."""
    rate = _alarm_rate(fleet)
    sizes = [alarm_bytes(one, fleet.loads) for one in fleet.queries]
    size = max(sizes, key=lambda one: one.value)
    each = size.value + overhead(fleet, rate.value, 1 / BATCH_SECONDS)
    traffic = Figure(rate.value * each, "B/s", weakest(rate, size), "alarms x bytes of an alarm")
    kept = 7 * DAY_MS * 1_000
    return {"alarms": rate, "record": size, "traffic": traffic, "disk": stored(fleet, traffic, kept)}


def alerts_figures(fleet: Fleet) -> dict[str, Figure]:
    """Cores and memory of the alerts service."""
    rate = _alarm_rate(fleet)
    cpu = rate.value * fleet.costs["alerts_cpu_us_per_alarm"] / 1e6
    return {
        "cores": Figure(
            cpu / BUSY, "cores", weakest(rate), f"alarms x measured CPU time, {1 - BUSY:.0%} left free"
        ),
        "memory": fleet.memory("alerts"),
    }


def _alarm_rate(fleet: Fleet) -> Figure:
    """Alarms of all alerts a second."""
    if not fleet.queries:
        return Figure(0.0, "alarms/s", "computed", "there is no alert")
    if fleet.operation.alarms is not None:
        rate = fleet.operation.alarms
        return Figure(rate.count * SECOND / rate.per, "alarms/s", "given", "--alarms")
    measured = [_replayed(fleet, one) for one in fleet.plan.definitions]
    if measured and not fleet.plan.standing and all(one is not None for one in measured):
        total = sum(one for one in measured if one is not None)
        return Figure(total, "alarms/s", "measured", "alarms of the recordings")
    published = sum(one.value for one in fleet.published.values())
    return Figure(
        published * ALARM_SHARE,
        "alarms/s",
        "assumed",
        f"one alarm for {1 / ALARM_SHARE:.0f} published tuples",
    )


def _replayed(fleet: Fleet, definition: Definition) -> float | None:
    """The alarms a second that the recordings raise; None if a stream has no recording."""
    recordings = {}
    for one in definition.inputs:
        recording = fleet.loads[one.stream].recording
        if recording is None or not len(recording):
            return None
        recordings[one.stream] = recording
    times = [recordings[one.stream].columns[one.time].data for one in definition.inputs]
    span = (max(int(one.max()) for one in times) - min(int(one.min()) for one in times)) / SECOND
    scale = max(
        fleet.loads[name].rate.value * span / len(recording) for name, recording in recordings.items()
    )
    return len(replay(definition, fleet.plan.streams, recordings)) * scale / span if span else None
