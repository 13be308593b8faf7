"""Estimate of what a fleet needs, from the plan of its queries, the loads of its streams and unit costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tamis.messaging.topics import ALARMS
from tamis.persistent.dicts import PersistentDict
from tamis.planning.backfill_streams import live
from tamis.planning.build import first_plan
from tamis.query.model import Catalog
from tamis.sizing.edge import edge_figures, stream_figures
from tamis.sizing.figures import Figure, UnitCosts
from tamis.sizing.fleet import Fleet, Operation, Part, Plans
from tamis.sizing.joiner import joiner_cores, joiner_figures, state_figures, synopsis_figures
from tamis.sizing.kafka import (
    alarm_figures,
    alerts_figures,
    kafka_figures,
    recommended_partitions,
    topic_figures,
)
from tamis.sizing.load import SECOND, StreamLoad, declared, readers

_LARGE = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


@dataclass(frozen=True)
class Sizing:
    """All parts, and what a reader has to know about them."""

    parts: tuple[Part, ...]
    notes: tuple[str, ...]
    machine: str


def estimate(
    catalog: Catalog, loads: Mapping[str, StreamLoad], operation: Operation, costs: UnitCosts
) -> Sizing:
    """The sizing of everything in `catalog`; `loads` has each stream that a query reads.

    Raises NotAcceptedError where a query of the catalogue is not accepted.
    """
    known = declared(catalog, loads)
    # Of an alert with `from`, the topics are counted as if the stream's other alerts shared them.
    known.alerts = PersistentDict((name, live(alert)) for name, alert in known.alerts.items())
    plan = first_plan(known)
    # The same queries where no reading is ahead of the clock, and where also no source is ever silent.
    # For how long a tuple is kept doesn't depend on the number of keys, but has no number without one.
    on_time = {name: replace(one, max_ahead=0, keys=one.keys or 1) for name, one in known.streams.items()}
    steady = {name: replace(one, max_stall=0) for name, one in on_time.items()}
    stalled, calm = (first_plan(replace(known, streams=streams)) for streams in (on_time, steady))
    return _sizing(Fleet(loads, operation, costs, Plans(plan, stalled, calm)))


def _sizing(fleet: Fleet) -> Sizing:
    """All parts, from the sources to the alarms."""
    streams = [Part("stream", stream_figures(load), name) for name, load in fleet.sources.items()]
    cores = joiner_cores(fleet)
    partitions = recommended_partitions(fleet, cores)
    states = [
        Part("state of topic", state_figures(fleet, stream, topic), topic.name)
        for stream, topic in fleet.topics
        if readers(fleet.plan, topic)
    ]
    standing = [
        Part("state of query", synopsis_figures(fleet, one), one.alert) for one in fleet.plan.standing
    ]
    topics = [
        Part("topic", topic_figures(fleet, stream, topic, int(partitions.value)), topic.name)
        for stream, topic in fleet.topics
    ]
    if fleet.queries:
        topics.append(Part("topic", alarm_figures(fleet), ALARMS))
    parts = [
        *streams,
        Part("edge", edge_figures(fleet)),
        *states,
        *standing,
        Part("joiner", joiner_figures(fleet, cores, [*states, *standing])),
        Part("registry", {"memory": fleet.memory("registry")}),
        Part("alerts", alerts_figures(fleet)),
        *topics,
        Part("Kafka", {"partitions": partitions, **kafka_figures(fleet, topics)}),
    ]
    for load in fleet.loads.values():
        _compare(fleet, load)
    return Sizing(tuple(parts), tuple(dict.fromkeys(fleet.notes)), fleet.costs.machine)


def _compare(fleet: Fleet, load: StreamLoad) -> None:
    """Note a given rate above the declared one: bounds hold only for what is declared."""
    rate, keys = load.stream.rate, load.keys
    if rate is None or keys is None or load.rate.basis == "declared":
        return
    most = keys.value * rate.count * SECOND / rate.per
    if load.rate.value > most:
        fleet.notes.append(
            f"stream {load.stream.shown_name}: {load.rate.value:g} readings/s are more than keys x rate"
            f" declare ({most:g}/s): the proven bounds don't hold for them"
        )


def document(sizing: Sizing) -> dict[str, Any]:
    """The JSON document: one object for each part, with its figures."""
    return {
        "parts": [
            {"part": part.title, "name": part.name}
            | {"figures": {name: figure.document() for name, figure in part.figures.items()}}
            for part in sizing.parts
        ],
        "notes": list(sizing.notes),
        "costs_measured_on": sizing.machine,
    }


def text(sizing: Sizing) -> str:
    """A table of name, number, basis and source for each part, with the notes below."""
    lines = []
    for part in sizing.parts:
        lines.append(" ".join(filter(None, (part.title, part.name))))
        for name, figure in part.figures.items():
            lines.append(f"  {name:<22}{number(figure):>16}  {figure.basis:<9} {figure.source}")
    lines += ["", *sizing.notes, f"CPU time, memory and overheads were measured on: {sizing.machine}"]
    return "\n".join(lines)


def number(figure: Figure) -> str:
    """The number of a figure with its unit.

    >>> number(Figure(19_860_000, "tuples", "proven", "")), number(Figure(0.123, "share", "given", ""))
    ('19.9 M tuples', '12.3 %')
    >>> number(Figure(2_048, "B", "given", "")), number(Figure(0.4, "cores", "given", ""))
    ('2.05 kB', '0.4 cores')
    """
    value, unit = figure.value, figure.unit
    if unit == "share":
        return f"{100 * value:.3g} %"
    if unit == "count":
        return f"{value:,.0f}"
    size, prefix = next(((size, prefix) for size, prefix in _LARGE if value >= size), (1.0, ""))
    shown = f"{value / size:.3g}" if value / size < 1000 else f"{value / size:.0f}"
    if unit.startswith("B"):
        return f"{shown} {prefix}{unit}"
    return f"{shown}{' ' + prefix if prefix else ''} {unit}"
