"""Records of plan versions that the group doesn't know yet: `protocol.md`, rule 7."""

from __future__ import annotations

from collections.abc import Mapping

from tamis_joiner.core.records.kafka_records import Records
from tamis_joiner.core.state.arrow_format import decode_records, encode_records
from tamis_joiner.core.state.state_map import StateMap


class PendingRecords:
    """Records that wait for a plan: one value of the state for each batch that had any. `index` is as
    `to_json` returned it; `kind` is the beginning of the names in the state.
    """

    def __init__(self, index: Mapping[str, int] | None = None, kind: str = "parked") -> None:
        self._kind = kind
        self._counts = dict(index or {})  # number of records by name in the state

    def __len__(self) -> int:
        return sum(self._counts.values())

    def add(self, records: list[Records], state: StateMap) -> None:
        """Store records; those of a topic in the order of their offsets."""
        number = 1 + max((int(name.rsplit("/", 1)[1]) for name in self._counts), default=0)
        name = f"{self._kind}/{number:08}"
        state.put(name, encode_records(records))
        self._counts[name] = sum(len(part.values) for part in records)

    def take_all(self, state: StateMap) -> list[Records]:
        """Remove and return all records, in the order in which they were added."""
        waiting = [records for name in self._counts for records in decode_records(state.get(name) or b"")]
        for name in self._counts:
            state.remove(name)
        self._counts = {}
        return waiting

    def to_json(self) -> dict[str, int]:
        """The index of the stored records."""
        return self._counts
