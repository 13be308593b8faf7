"""Checks of Kafka: reachability, settings of the brokers, and the fleet's topics."""

from __future__ import annotations

import orjson
from confluent_kafka.admin._resource import ResourceType

from tamis.doctor.places import Finding, Places
from tamis.errors import TamisError
from tamis.messaging.topic_reader import TopicReader
from tamis.messaging.topics import MAX_RECORD_BYTES, SPECS, STATEMENTS, TopicSpec

_SPECS = {spec.name: spec for spec in SPECS}
_PREFIXED = {spec.name.partition("<")[0]: spec for spec in SPECS if "<" in spec.name}


def reachable(places: Places) -> Finding:
    """An answer of Kafka."""
    try:
        brokers = places.cluster.brokers
    except TamisError as error:
        todo = error.hint or "start Kafka, or set TAMIS_KAFKA_BOOTSTRAP to its address"
        return Finding("failed" if places.kafka_named else "unchecked", f"{error.where}: {error.what}", todo)
    return Finding("ok", f"{len(brokers)} brokers answer at {places.kafka.bootstrap}")


def brokers(places: Places) -> Finding:
    """Settings of the brokers that a fleet depends on."""
    numbers = [str(number) for number in places.cluster.brokers]
    found = places.settings(ResourceType.BROKER, numbers)
    faults, doubts = [], []
    for number, settings in sorted(found.items()):
        if int(settings.get("socket.request.max.bytes", MAX_RECORD_BYTES)) < MAX_RECORD_BYTES:
            size = settings["socket.request.max.bytes"]
            faults.append(f"broker {number}: socket.request.max.bytes={size}, below {MAX_RECORD_BYTES}")
        if settings.get("auto.create.topics.enable") == "true":
            doubts.append(f"broker {number}: auto.create.topics.enable=true")
        if len(numbers) > 2 and settings.get("min.insync.replicas") == "1":
            doubts.append(f"broker {number}: min.insync.replicas=1")
    if faults or doubts:
        todo = (
            "set socket.request.max.bytes to 8 MiB or more, auto.create.topics.enable=false (else "
            "a wrong name becomes a topic), and min.insync.replicas=2 with three brokers or more"
        )
        return Finding("failed" if faults else "warning", "; ".join([*faults, *doubts]), todo)
    first = next(iter(found.values()), {})
    names = ("message.max.bytes", "auto.create.topics.enable", "min.insync.replicas")
    return Finding("ok", ", ".join(f"{name}={first.get(name)}" for name in names))


def _spec_of(name: str) -> TopicSpec | None:
    named = (spec for prefix, spec in _PREFIXED.items() if name.startswith(prefix))
    return _SPECS.get(name) or next(named, None)


def topics(places: Places) -> Finding:
    """The fleet's topics beside the partition count that the registry recorded, and their settings."""
    known = {
        name: (topic, spec)
        for name, topic in places.cluster.topics.items()
        if (spec := _spec_of(name)) is not None
    }
    if STATEMENTS not in known:
        return Finding("unchecked", "this Kafka has no topics of a fleet; the registry creates them")
    recorded = _recorded(places)
    settings = places.settings(ResourceType.TOPIC, sorted(known))
    faults, doubts = [], []
    for name, (topic, spec) in sorted(known.items()):
        count, wanted = len(topic.partitions), spec.partitions or recorded
        if wanted is not None and count != wanted:
            faults.append(f"{name} has {count} partitions instead of {wanted}")
        replicas = min((len(part.replicas) for part in topic.partitions.values()), default=1)
        found = settings[name]
        if int(found.get("min.insync.replicas", 1)) > replicas:
            least = found["min.insync.replicas"]
            faults.append(f"{name}: min.insync.replicas={least}, and {replicas} replicas")
        if int(found.get("max.message.bytes", MAX_RECORD_BYTES)) < MAX_RECORD_BYTES:
            faults.append(f"{name}: max.message.bytes={found['max.message.bytes']}, below {MAX_RECORD_BYTES}")
        policy = "compact" if spec.compacted else "delete"
        if policy not in found.get("cleanup.policy", policy):
            faults.append(f"{name}: cleanup.policy={found['cleanup.policy']} instead of {policy}")
        doubts += _short_retention(name, spec, found)
    if faults or doubts:
        return Finding(
            "failed" if faults else "warning",
            "; ".join([*faults, *doubts]),
            "docs/topics.md has the settings of each topic; docs/recover.md says how to restore a topic",
        )
    as_recorded = "" if recorded is None else f" with {recorded} partitions, as the registry recorded"
    return Finding("ok", f"{len(known)} topics{as_recorded}; sizes and retention are as documented")


def _short_retention(name: str, spec: TopicSpec, found: dict[str, str]) -> list[str]:
    if spec.compacted or spec.retention_ms is None:
        return []
    kept = int(found.get("retention.ms", spec.retention_ms))
    if kept in (-1, spec.retention_ms) or kept > spec.retention_ms:
        return []
    return [f"{name}: retention.ms={kept}, less than {spec.retention_ms}"]


def _recorded(places: Places) -> int | None:
    """The partition count in the registry's record of the fleet; None if there is none."""
    with TopicReader(places.kafka.client_config(), [STATEMENTS]) as reader:
        fleets = [record.value for record in reader.snapshot(5.0) if record.key == b"fleet" and record.value]
    count = orjson.loads(fleets[-1]).get("partitions") if fleets else None
    return count if isinstance(count, int) else None
