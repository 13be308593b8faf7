"""Steps of a start: check and repair the content of Kafka, and give old reports to the registry."""

from __future__ import annotations

from tamis.errors import InputError
from tamis.messaging.topic_reader import Record
from tamis.messaging.topics import ACKS, FRONTIERS, HEARTBEATS, SILENCES, SKETCHES
from tamis.plan.json_form import decode_plan
from tamis.plan.model import partial_topics
from tamis.telemetry import Metrics, get_logger
from tamis_registry.core.registry import Registry
from tamis_registry.core.state.model import State
from tamis_registry.kafka.reports import Reports
from tamis_registry.kafka.store import Recovered, Store
from tamis_registry.plans import History
from tamis_registry.settings import DEFAULT_PARTITIONS

_log = get_logger("tamis.registry")


def fleet_partitions(before: State | None, configured: int | None) -> int:
    """The partition count of the fleet. Raises InputError if another one is configured."""
    if before is None:
        return configured or DEFAULT_PARTITIONS
    if configured not in (None, before.partitions):
        raise InputError(
            f"the fleet has {before.partitions} partitions, but TAMIS_PARTITIONS is {configured}",
            where="TAMIS_PARTITIONS",
            hint=f"set it to {before.partitions}, or leave it out; with another count, keys would go to other"
            " partitions",
        )
    return before.partitions


def remove_unreadable_plans(store: Store, found: Recovered, metrics: Metrics) -> None:
    """Log and remove records of the plan topic that are not plans.

    Readers of plans skip them, and the plan of this start gets a greater version.
    """
    for one in found.unreadable:
        metrics.inc("tamis_dead_letters_total", service="registry", reason="undecodable")
        _log.error(
            "a plan can't be read; it is skipped, and the plan is written again",
            topic=one.record.topic,
            partition=one.record.partition,
            offset=one.record.offset,
            error=one.why,
        )
    store.remove(found.unreadable)


def repair_statements(store: Store, found: Recovered, metrics: Metrics) -> None:
    """Log records of the topic of statements that no release has written, write their earlier records again,
    and remove those that have none.
    """
    for key, one in found.damaged.items():
        metrics.inc("tamis_dead_letters_total", service="registry", reason="undecodable")
        _log.error(
            "a record of the statements is damaged and is skipped",
            key=key[:200].decode(errors="replace"),
            partition=one.record.partition,
            offset=one.record.offset,
            earlier_record_counts=key in found.statements,
            error=one.why,
            hint="look at what is defined now, and apply the statement again if it is missing",
        )
    if found.damaged:
        store.write_statements({key: found.statements.get(key) for key in found.damaged})


def statements_lost(before: State | None, plans: History) -> bool:
    """True if the newest plan has streams and the statements have none, though no later plan was decided.

    Then `tamis.statements` was deleted. The plan of the statements that are left would end all alerts, and
    edges would take the readings that they hold for readings of unknown streams.
    """
    document = plans.get(plans.greatest)
    if document is None or (
        before is not None and (before.version != plans.greatest or before.of_kind("stream"))
    ):
        return False
    try:
        return bool(decode_plan(document).streams)
    except InputError:
        return False  # of another release, which has to be replaced


def newest_partials(plans: History) -> frozenset[str]:
    """The topics of the newest plan that have partial aggregates."""
    document = plans.get(plans.greatest)
    try:
        return frozenset() if document is None else partial_topics(decode_plan(document))
    except InputError:
        return frozenset()  # of another release, which has to be replaced


def recover_reports(registry: Registry, found: Recovered, reports: Reports) -> None:
    """Give the registry the reports that the fleet sent before this process started, and the silences."""
    for topic, table in (
        (ACKS, found.acks),
        (FRONTIERS, found.frontiers),
        (SILENCES, found.silences),
        (HEARTBEATS, found.heartbeats),
        (SKETCHES, found.sketches),
    ):
        for key, value in table.items():
            reports.take(registry, Record(topic, 0, 0, key, value), None)
