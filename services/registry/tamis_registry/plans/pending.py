"""Plans that are decided and not written yet. A large plan is written once for several changes.

Every partition gets the whole plan (decision 29). If a plan of thousands of queries were written at every
change, it would fill disks, and all services would be busy reading it. A decision is durable with its
statements. For the fleet, a plan that is never written is the same as a plan that was decided just before a
crash.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tamis.plan.document import PlanDocument
from tamis_registry.core.plan.change import Change, Final

# Bytes of plans a second, over all partitions, and the most seconds that a change waits for its plan.
RATE = 16_000_000
LONGEST = 5.0
# Bytes, over all partitions, of a plan that is written at once.
SMALL = 1_000_000


@dataclass
class PendingPlan:
    """The plan that waits to be written; version 0: none.

    `written`: the time at which the last write ended, seconds of the monotonic clock.
    """

    version: int = 0
    plan: PlanDocument | None = None
    finals: list[Final] = field(default_factory=list)
    why: list[str] = field(default_factory=list)
    written: float = float("-inf")

    def take(self, change: Change) -> None:
        """Replace the plan by the plan of a change. Final records and reasons of all changes are kept."""
        assert change.plan is not None
        self.version, self.plan = change.plan.version, change.written
        self.finals += change.finals
        self.why += change.why

    def due(self, now: float, partitions: int) -> bool:
        """True if it is time to write the plan."""
        size = (self.plan.size if self.plan else 0) * partitions
        return size <= SMALL or now - self.written >= min(size / RATE, LONGEST)
