"""Checks of the Kafka topics that edges read: for how long they keep readings."""

from __future__ import annotations

from confluent_kafka.admin._resource import ResourceType

from tamis.doctor.places import Finding, Places, listed
from tamis.operators.windows.cut_policy import FULL_EVERY

# With partial aggregates, a restart reads again the readings of up to so long.
_NEEDED_MS = FULL_EVERY // 1000


def kept(places: Places) -> Finding:
    """The retention of the topics of sources."""
    edges = places.registry.request("GET", "/v1/edges")
    named = {_topic(shard["shard"]) for edge in edges for shard in edge["shards"]}
    names = sorted(named & places.cluster.topics.keys())
    if not names:
        return Finding("unchecked", "no edge reads a topic of this Kafka")
    doubts = []
    for name, settings in places.settings(ResourceType.TOPIC, names).items():
        most = int(settings.get("retention.ms", -1))
        if "compact" in settings.get("cleanup.policy", "delete"):
            doubts.append(
                f"{name}: cleanup.policy={settings['cleanup.policy']} drops readings of the same key"
            )
        elif 0 <= most < _NEEDED_MS:
            doubts.append(f"{name}: retention.ms={most}, less than {_NEEDED_MS}")
    if doubts:
        todo = (
            "an edge that restarts, or a shard that moves, reads again what it hadn't sent: of aggregates of"
            " windows up to 10 minutes, and what came in an outage (docs/cuts.md)"
        )
        return Finding("warning", listed(doubts), todo)
    return Finding("ok", f"{len(names)} topics of sources keep readings for 10 minutes or more")


def _topic(shard: str) -> str:
    """The topic of a shard `<stream>:<topic>/<partition>` of a Kafka source; of others something else.

    >>> _topic("air:raw.air/3")
    'raw.air'
    """
    topic, _, partition = shard.partition(":")[2].rpartition("/")
    return topic if partition.isdigit() else ""
