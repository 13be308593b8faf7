"""Records that other services write, as the registry takes them: one that can't be read is skipped."""

from __future__ import annotations

from tamis.errors import InputError
from tamis.messaging.heartbeats import read_heartbeat
from tamis.messaging.records import Observation, read_ack, read_frontier
from tamis.messaging.silences import Held, decode
from tamis.messaging.topic_reader import Record, UnreadableRecords
from tamis.messaging.topics import ACKS, FRONTIERS, HEARTBEATS, SILENCES, SKETCHES
from tamis.predicates.sketch import Sketch
from tamis.telemetry import Metrics, get_logger
from tamis_registry.core.registry import Registry
from tamis_registry.core.silences import held_opening

_log = get_logger("tamis.registry")


def read_observation(key: bytes | None, value: bytes) -> Observation:
    """The sample of a shard's readings, from its record. Raises ValueError for anything else."""
    found = Observation.from_bytes(value)
    if key != found.shard.encode():
        raise ValueError(f"it is of the shard {found.shard!r:.300}, and has another key")
    try:
        sketch = Sketch.from_bytes(found.sketch)
    except InputError as error:
        raise ValueError(str(error)) from error
    if any(isinstance(value, str) for seen in sketch.values.values() for value in seen):
        raise ValueError("only samples of numbers and booleans are reported")
    return found


class Reports:
    """Gives records of the fleet to the registry. A record that it can't use is counted, named and skipped:
    none of them keeps others from being taken.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._unreadable = UnreadableRecords("registry", metrics, _log)

    def take(self, registry: Registry, record: Record, now: int | None) -> None:
        """Take a record. `now` is None for one from before this process started."""
        try:
            if record.value is not None:
                _take(registry, record, record.value, now)
            elif record.topic == SILENCES:
                registry.take_held(record.key or b"", None)
        except ValueError as error:
            self._unreadable.report(record, error)
        except Exception as error:
            # A fault of ours, which one record brings to light, must not end the service for all others.
            _log.exception("a record has met an error in the registry", topic=record.topic)
            self._unreadable.report(record, repr(error))


def _take(registry: Registry, record: Record, value: bytes, now: int | None) -> None:
    """Raises ValueError for a record that can't be used."""
    key, topic = record.key, record.topic
    if topic == ACKS:
        registry.hear(read_ack(key, value), now)
    elif topic == FRONTIERS:
        registry.follow(read_frontier(key, value), now)
    elif topic == HEARTBEATS:
        registry.take_heartbeat(*read_heartbeat(key, value), now)
    elif topic == SKETCHES:
        registry.observe(read_observation(key, value))
    elif topic == SILENCES:
        kept = decode(key, value)
        if isinstance(kept, Held):
            registry.take_held(kept.record_key, held_opening(kept))
        else:
            registry.silences.take({kept.record_key: kept})
