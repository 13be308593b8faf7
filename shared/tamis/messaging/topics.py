"""Kafka topics of the fleet: names, keys, schemas and retention; docs/topics.md is checked against them."""

from __future__ import annotations

import re
from dataclasses import dataclass

STREAM_PREFIX = "tamis.stream."
PLANS = "tamis.plans"
PART_PREFIX = "tamis.plan-parts."
PLAN_KEY = b"plan"  # the key of plans and of their parts
STATEMENTS = "tamis.statements"
ACKS = "tamis.acks"
SKETCHES = "tamis.sketches"
ALARMS = "tamis.alarms"
FRONTIERS = "tamis.frontiers"
EPISODES = "tamis.episodes"
SILENCES = "tamis.silences"
HEARTBEATS = "tamis.heartbeats"
DEAD_LETTERS = "tamis.dead-letters"

# The joiner's subscription: it finds new stream topics by the pattern, and reads plans in the same way as
# data. Topics for consumers outside the fleet have a 0 before their number, which the pattern excludes.
JOINER_PATTERN = r"tamis\.(stream\.[^.]+\.[1-9][0-9]*|plans)"

# Backfill streams have hyphens in their names (`tamis.declarations.backfill`).
_STREAM = re.compile(r"^tamis\.stream\.(?P<stream>[A-Za-z_][A-Za-z0-9_-]*)\.(?P<number>0?[1-9][0-9]*)$")

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")

DAY_MS = 24 * 3600 * 1000

# The limit of every record and every topic. Kafka's default of 1 MiB is too small: a tuple is sent with its
# key, an alarm contains the tuples of its streams, a plan lists every shard and query, and a reading that
# is too large must still fit into a dead letter.
MAX_RECORD_BYTES = 8 * 1024 * 1024

# Settings of every topic. By default a broker refuses records whose timestamp is more than an hour ahead of
# its clock (since Kafka 4), because programs that take another unit of time would disturb the retention. The
# timestamps here are those of machines' clocks. One that is ahead, or was set back since the record was made,
# must not lose the record. The topic keeps it longer by as much.
COMMON_CONFIG = {
    "max.message.bytes": str(MAX_RECORD_BYTES),
    "message.timestamp.after.max.ms": str(2**63 - 1),
}


@dataclass(frozen=True)
class TopicSpec:
    """Settings with which a topic is created. `partitions` None: the partition count of the fleet."""

    name: str
    partitions: int | None
    compacted: bool
    retention_ms: int | None
    key: str
    value: str


# Compaction would delete plan versions that a lagging joiner still has to read in turn (`every_plan`). So the
# registry sets `min.compaction.lag.ms` to the retention given here: plans stay uncompacted for a week.
SPECS: tuple[TopicSpec, ...] = (
    TopicSpec(
        STREAM_PREFIX + "<stream>.<n>",
        None,
        False,
        DAY_MS,
        "the partition key's values",
        "a retained tuple, a progress or a final record",
    ),
    TopicSpec(PLANS, None, True, 7 * DAY_MS, '"plan"', "one plan version, the same in every partition"),
    TopicSpec(
        PART_PREFIX + "<stream>",
        1,
        True,
        None,
        '"plan"',
        "the part of one plan version that concerns the stream, and where the plan ends in `tamis.plans`",
    ),
    TopicSpec(STATEMENTS, 1, True, None, "kind and name", "one statement in force, or the fleet's settings"),
    TopicSpec(
        ACKS,
        1,
        True,
        None,
        "shard",
        "the plan version that the shard obeys, its activation, its state, for how long its source has been "
        "silent, its readings by decision and its watermark, and which sources of its edge fail; an edge "
        "without shards has a record of its own",
    ),
    TopicSpec(
        SKETCHES,
        1,
        True,
        None,
        "shard",
        "the distribution of its numeric and boolean columns: one sample for each column, "
        "the columns shuffled independently",
    ),
    TopicSpec(ALARMS, None, False, 7 * DAY_MS, "alert and key", "one alarm"),
    TopicSpec(
        FRONTIERS, 1, True, None, "output partition", "the joiner's frontiers and live state of one partition"
    ),
    TopicSpec(EPISODES, None, False, 7 * DAY_MS, "alert and key", "an episode opened, went on or closed"),
    TopicSpec(
        SILENCES,
        1,
        True,
        None,
        "kind and identity",
        "a silence, an acknowledgement of an episode, or an opening that is held back from a sink",
    ),
    TopicSpec(
        HEARTBEATS,
        1,
        True,
        None,
        "service",
        "a sign of life of the joiner or of a worker of the alerts service, with the notifications that wait "
        "for each sink of the worker",
    ),
    TopicSpec(DEAD_LETTERS, 1, False, 7 * DAY_MS, "none", "the original bytes; the reason is in the headers"),
)


def stream_topic(stream: str, number: int) -> str:
    """The name of a stream's `number`-th shared topic.

    >>> stream_topic("air", 1)
    'tamis.stream.air.1'
    """
    return f"{STREAM_PREFIX}{stream}.{number}"


def number_of(topic: str) -> int:
    """The number of a topic that `stream_topic` named.

    >>> number_of("tamis.stream.air.12")
    12
    """
    return int(topic.rpartition(".")[2])


def outside_topic(stream: str, number: int) -> str:
    """The name of a topic that only consumers outside the fleet read.

    >>> outside_topic("air", 2)
    'tamis.stream.air.02'
    """
    return f"{STREAM_PREFIX}{stream}.0{number}"


def part_topic(stream: str) -> str:
    """The name of the topic with a stream's parts of plans.

    >>> part_topic("air")
    'tamis.plan-parts.air'
    """
    return PART_PREFIX + stream


def is_stream_name(text: str) -> bool:
    """True if a stream can have this name: an SQL identifier that fits into the name of a topic.

    >>> is_stream_name("air_2"), is_stream_name("air 2"), is_stream_name("")
    (True, False, False)
    """
    return _NAME.fullmatch(text) is not None


def stream_of(topic: str) -> str | None:
    """The stream of a stream topic; None for any other topic.

    >>> stream_of("tamis.stream.air.2"), stream_of("tamis.stream.air.02"), stream_of("tamis.plans")
    ('air', 'air', None)
    """
    match = _STREAM.match(topic)
    return match["stream"] if match else None
