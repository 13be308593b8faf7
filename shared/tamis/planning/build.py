"""The plan of everything that a catalogue defines, built without a previous plan.

    built = build_plan(
        version, catalog,
        partitions=8,
        versions={"condensation": 3},      # alert -> the plan version that made its present definition;
                                           # an alert that is missing here is new, and gets `version`
        retiring=[Retiring(old_alert, 3, 7)],  # made by plan 3, replaced by plan 7, still running
        subscriptions=[Subscription("lease/…", "air", filter, 5)],  # readers outside the fleet
        topic_numbers={("air", ("station",)): (1,)},
        assigned={"condensation@3": {"a": 1}},   # reader -> the number of the topic that serves each source
        since={"edge-a/air": 1}, shard_streams={"edge-a/air": "air"},
    )
    built.plan            # the plan to write into every partition of tamis.plans
    built.topic_numbers   # the given numbers and the new ones: store them, and create their topics
    built.assigned        # the topics of readers that are new or have other topics than before: store them
    built.choices         # the reasons for new topics

Paused alerts are left out. When an alert is replaced, the new alert gets no version, and the old one stays in
`retiring` until it may end (protocol, rule 11). A refused alert must not be in the catalogue: the
registry asks `tamis.planning.verdict.accepted` before it accepts a statement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tamis.plan.model import Plan
from tamis.planning.derived_topics import DerivedNumber, may_serve_alerts
from tamis.planning.incremental import Built, plan_for
from tamis.planning.queries.definitions import definition_id
from tamis.planning.topic_readers import Reader
from tamis.query.model import AlertDef, Catalog
from tamis.sharing.topic_choice import TopicId, TopicKey
from tamis.sharing.topic_plans import Subscription


@dataclass(frozen=True)
class Retiring:
    """The old definition of a replaced alert, made by plan `version` and replaced by plan `successor`."""

    alert: AlertDef
    version: int
    successor: int


def build_plan(
    version: int,
    catalog: Catalog,
    *,
    partitions: int,
    versions: Mapping[str, int],
    topic_numbers: Mapping[TopicKey, tuple[int, ...]],
    assigned: Mapping[str, Mapping[str, TopicId]] | None = None,
    retiring: Sequence[Retiring] = (),
    subscriptions: Sequence[Subscription] = (),
    since: Mapping[str, int] | None = None,
    shard_streams: Mapping[str, str] | None = None,
) -> Built:
    """The plan `version` for everything in `catalog`; see the module's docstring.

    Raises NotAcceptedError if an alert or a derived stream of the catalogue is not accepted.
    """
    known = assigned or {}
    running = [(old.alert, old.version) for old in retiring]
    running += [
        (alert, versions.get(name, version))
        for name, alert in catalog.alerts.items()
        if name not in catalog.paused
    ]
    readers = [
        *(Reader(name := definition_id(a.name, made), a, made, known.get(name, {})) for a, made in running),
        *(Reader(one.id, one, one.version, known.get(one.id, {})) for one in subscriptions),
    ]
    return plan_for(
        version,
        catalog,
        readers,
        partitions=partitions,
        topic_numbers=topic_numbers,
        outside={},
        retiring={definition_id(old.alert.name, old.version): old.successor for old in retiring},
        since=since or {},
        shard_streams=shard_streams or {},
        derived_numbers={
            name: DerivedNumber(1) for name, one in catalog.derived.items() if may_serve_alerts(one, catalog)
        },
    )


def first_plan(catalog: Catalog, *, partitions: int = 1, shards: Mapping[str, str] | None = None) -> Plan:
    """The first plan of a fleet with everything in `catalog`; `shards`: the stream of each shard.

    Raises NotAcceptedError if an alert or a derived stream of the catalogue is not accepted.
    """
    listed = shards or {}
    built = build_plan(
        1,
        catalog,
        partitions=partitions,
        versions={},
        topic_numbers={},
        since=dict.fromkeys(listed, 1),
        shard_streams=listed,
    )
    return built.plan
