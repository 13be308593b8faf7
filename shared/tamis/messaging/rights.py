"""Rights of each service in Kafka; deploy/kafka and docs/security.md are checked against them.

Each is one ACL. A right to read, to write or to delete includes the right to describe, one to alter settings
the right to describe them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tamis.messaging.topics import (
    ACKS,
    ALARMS,
    DEAD_LETTERS,
    EPISODES,
    FRONTIERS,
    HEARTBEATS,
    PART_PREFIX,
    PLANS,
    SILENCES,
    SKETCHES,
    STATEMENTS,
    STREAM_PREFIX,
)

Resource = Literal["topic", "group", "transactional id"]
Operation = Literal["Read", "Write", "Create", "Describe", "Delete", "AlterConfigs"]

# Principals: the services, somebody who reads alarms (`tamis watch`), and somebody who operates the fleet.
PRINCIPALS = ("edge", "registry", "joiner", "alerts", "reader", "operator")

# The group that readers of whole topics name. They commit nothing, but the client looks for its coordinator.
READERS = "tamis-reader"
# Kafka lets one producer of this name write at a time: that is what makes the registry single.
TRANSACTIONAL_ID = "tamis-registry"
ALERTS_GROUP = "tamis-alerts"
SOURCE_GROUPS = "tamis-edge."
EPISODES_CHANGELOG = "tamis-alerts-episodes-changelog"


@dataclass(frozen=True)
class Right:
    """A principal may do an operation on a resource, or on all resources whose names begin with `name`.

    `only_for`: the right is needed only for this.
    """

    principal: str
    resource: Resource
    name: str
    operation: Operation
    why: str
    prefixed: bool = False
    only_for: str | None = None

    @property
    def what(self) -> str:
        """The right in messages.

        >>> Right("edge", "topic", "tamis.acks", "Write", "").what
        'Write on topic tamis.acks'
        """
        return f"{self.operation} on {self.resource} {self.name}{'*' if self.prefixed else ''}"


_PARTS = "parts of plans: without it, edges read whole plans"
_NOT_IN_FLEET = "Kafka sources"
_READINGS = "the console and the operations of the HTTP API that show readings"
_HEARTBEATS = "heartbeats: without it, nobody is told that the service hangs"
_SILENCES = "silences: without it, no episode is silenced"
_MARKS = "marks: without it, no alarm is marked as silenced"

RIGHTS: tuple[Right, ...] = (
    Right("edge", "topic", PLANS, "Read", "plans"),
    Right(
        *("edge", "topic", PART_PREFIX, "Read", "the part of a plan that it needs"),
        prefixed=True,
        only_for=_PARTS,
    ),
    Right("edge", "topic", STREAM_PREFIX, "Write", "retained tuples and progress", prefixed=True),
    Right("edge", "topic", ACKS, "Write", "which plan its shards obey"),
    Right("edge", "topic", SKETCHES, "Write", "samples of readings"),
    Right("edge", "topic", DEAD_LETTERS, "Write", "readings that can't be used"),
    Right("edge", "group", READERS, "Describe", "reading plans"),
    Right(
        *("edge", "group", SOURCE_GROUPS, "Read", "sharing partitions with other edges"),
        prefixed=True,
        only_for=_NOT_IN_FLEET,
    ),
    Right("registry", "topic", "tamis.", "Create", "all topics of the fleet", prefixed=True),
    Right("registry", "topic", "tamis.", "Describe", "which topics there are", prefixed=True),
    Right("registry", "topic", STATEMENTS, "Read", "its state"),
    Right("registry", "topic", STATEMENTS, "Write", "its state"),
    Right("registry", "topic", PLANS, "Read", "earlier plans"),
    Right("registry", "topic", PLANS, "Write", "plans"),
    Right(
        *("registry", "topic", PART_PREFIX, "Write", "the parts of plans that edges need"),
        prefixed=True,
        only_for=_PARTS,
    ),
    Right(
        "registry", "topic", STREAM_PREFIX, "Write", "final records of shards that are gone", prefixed=True
    ),
    Right("registry", "topic", ACKS, "Read", "which plans the shards obey"),
    Right("registry", "topic", FRONTIERS, "Read", "how far the joiner is"),
    Right("registry", "topic", SKETCHES, "Read", "samples of readings"),
    Right("registry", "topic", SILENCES, "Read", "silences and acknowledgements"),
    Right("registry", "topic", SILENCES, "Write", "silences and acknowledgements"),
    Right("registry", "topic", HEARTBEATS, "Read", "signs of life of joiner and alerts, and its sinks"),
    Right("registry", "topic", ALARMS, "Read", "newest alarms", only_for=_READINGS),
    Right("registry", "topic", EPISODES, "Read", "newest episodes", only_for=_READINGS),
    Right("registry", "topic", DEAD_LETTERS, "Read", "newest dead letters", only_for=_READINGS),
    Right(
        *("registry", "topic", STREAM_PREFIX, "Read", "newest retained readings"),
        prefixed=True,
        only_for=_READINGS,
    ),
    Right("registry", "group", READERS, "Describe", "reading its state"),
    Right("registry", "transactional id", TRANSACTIONAL_ID, "Write", "one registry writes at a time"),
    Right("joiner", "topic", PLANS, "Read", "plans"),
    Right("joiner", "topic", STREAM_PREFIX, "Read", "retained tuples", prefixed=True),
    Right("joiner", "topic", ALARMS, "Write", "alarms"),
    Right("joiner", "topic", FRONTIERS, "Read", "its metrics"),
    Right("joiner", "topic", FRONTIERS, "Write", "how far it is"),
    Right("joiner", "topic", HEARTBEATS, "Write", "that it is alive", only_for=_HEARTBEATS),
    Right("joiner", "topic", DEAD_LETTERS, "Write", "records that can't be used"),
    Right("joiner", "group", READERS, "Describe", "reading stream topics, plans and frontiers"),
    Right("alerts", "topic", ALARMS, "Read", "alarms"),
    Right("alerts", "topic", PLANS, "Read", "the rules of the alerts"),
    Right("alerts", "topic", FRONTIERS, "Read", "when an episode is over"),
    Right("alerts", "topic", EPISODES, "Read", "the queues of its sinks"),
    Right("alerts", "topic", EPISODES, "Write", "episodes"),
    Right("alerts", "topic", SILENCES, "Read", "which episodes are silenced", only_for=_SILENCES),
    Right("alerts", "topic", SILENCES, "Write", "openings that are held", only_for=_SILENCES),
    Right(
        *("alerts", "topic", HEARTBEATS, "Write", "that it is alive, and what waits for its sinks"),
        only_for=_HEARTBEATS,
    ),
    Right("alerts", "topic", DEAD_LETTERS, "Write", "notifications that a sink did not take"),
    Right("alerts", "topic", EPISODES_CHANGELOG, "Create", "the changelog of its state, which it creates"),
    Right("alerts", "topic", EPISODES_CHANGELOG, "Read", "its state after a restart"),
    Right("alerts", "topic", EPISODES_CHANGELOG, "Write", "its state"),
    Right("alerts", "group", ALERTS_GROUP, "Read", "its group and those of its sinks", prefixed=True),
    Right("alerts", "group", READERS, "Describe", "reading plans and frontiers"),
    Right("reader", "topic", ALARMS, "Read", "`tamis watch`"),
    Right("reader", "topic", EPISODES, "Read", "`tamis watch`"),
    Right("reader", "topic", STATEMENTS, "Read", "`tamis watch ALERT`: which alerts there are"),
    Right("reader", "topic", PLANS, "Read", "`tamis watch ALERT`: alerts that were dropped"),
    Right("reader", "topic", SILENCES, "Read", "`tamis watch`: what is silenced", only_for=_MARKS),
    Right("reader", "group", READERS, "Describe", "`tamis watch`"),
    Right("operator", "topic", "tamis", "Read", "looking into topics; `tamis redeliver`", prefixed=True),
    Right("operator", "topic", "tamis", "Delete", "deleting a topic of another fleet", prefixed=True),
    Right(
        "operator",
        "topic",
        "tamis",
        "AlterConfigs",
        "looking at settings such as the retention, and changing them",
        prefixed=True,
    ),
    Right(
        "operator",
        "group",
        "tamis-",
        "Read",
        "`tamis redeliver`; the lag and the offsets of groups",
        prefixed=True,
    ),
    Right("operator", "group", "tamis-", "Delete", "the group of a sink that is gone", prefixed=True),
)


def rights_of(principal: str) -> tuple[Right, ...]:
    """The rights of one principal."""
    return tuple(right for right in RIGHTS if right.principal == principal)
