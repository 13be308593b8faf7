"""Output of a batch, and the counters that a batch increases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tamis.messaging.dead_letters import DeadLetter
from tamis_joiner.core.alarms.alarm_record import KeyValue


@dataclass
class Output:
    """Output of a batch: alarms as (key, value) of Kafka records, the value of a frontier record, and dead
    letters.
    """

    alarms: list[KeyValue] = field(default_factory=list)
    frontier: bytes | None = None
    dead_letters: list[DeadLetter] = field(default_factory=list)


@dataclass
class Counters:
    """Counters since the beginning of the state.

    `alarms` is by alert and `dead` by reason. `late` counts late tuples that were joined. `missed` counts, by
    alert, tuples that arrived too late for a standing query.
    """

    alarms: Counter[str] = field(default_factory=Counter)
    dead: Counter[str] = field(default_factory=Counter)
    late: int = 0
    missed: Counter[str] = field(default_factory=Counter)

    def to_json(self) -> dict[str, Any]:
        """The counters, for `from_json`."""
        return {
            "alarms": dict(self.alarms),
            "dead": dict(self.dead),
            "late": self.late,
            "missed": dict(self.missed),
        }

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Counters:
        """The counters that `to_json` returned."""
        return Counters(
            Counter(document["alarms"]),
            Counter(document["dead"]),
            document["late"],
            Counter(document.get("missed", {})),  # state of an older version has none
        )
