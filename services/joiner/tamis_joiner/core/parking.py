"""Records of plan versions that are not known yet wait in the state: `protocol.md`, rule 7."""

from __future__ import annotations

from collections.abc import Mapping

from tamis_joiner.core.blobs import records_blob, records_of
from tamis_joiner.core.decode import Records
from tamis_joiner.core.state import StateMap


class Parking:
    """What waits, one blob a batch that parked something. `index` is as `to_json` wrote it."""

    def __init__(self, index: Mapping[str, int] | None = None) -> None:
        self._records = dict(index or {})  # name: how many

    def __len__(self) -> int:
        return sum(self._records.values())

    def park(self, records: list[Records], state: StateMap) -> None:
        """Let records wait; those of a topic in the order of their offsets."""
        number = 1 + max((int(name.rsplit("/", 1)[1]) for name in self._records), default=0)
        name = f"parked/{number:08}"
        state.put(name, records_blob(records))
        self._records[name] = sum(len(some.values) for some in records)

    def release(self, state: StateMap) -> list[Records]:
        """All that waits, in the order in which it was parked; nothing waits any more."""
        waiting = [records for name in self._records for records in records_of(state.get(name) or b"")]
        for name in self._records:
            state.remove(name)
        self._records = {}
        return waiting

    def to_json(self) -> dict[str, int]:
        """The index."""
        return self._records
