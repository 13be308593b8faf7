"""Plans that are decided and not written yet: a large one is written for several changes at once.

A plan goes whole into every partition (decision 32). Written at every change of one of thousands of queries,
it would fill disks and keep everyone busy reading. What is decided is durable with the statements; a plan
that is never written is the same to the fleet as one that was decided just before a crash.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tamis.planning.plan_text import Written
from tamis_registry.core.change import Change, Final

# Bytes of plans a second, over all partitions, and the most seconds that a change waits for its plan.
RATE = 16_000_000
LONGEST = 5.0
# Bytes, over all partitions, of a plan that is written at once.
SMALL = 1_000_000


@dataclass
class Unwritten:
    """What a write would hold; version 0: nothing. `written`: when the last one ended, seconds of the
    monotonic clock.
    """

    version: int = 0
    plan: Written | None = None
    finals: list[Final] = field(default_factory=list)
    why: list[str] = field(default_factory=list)
    written: float = float("-inf")

    def take(self, change: Change) -> None:
        """The plan of a change takes the place of those before it; what goes with them is added up."""
        assert change.plan is not None
        self.version, self.plan = change.plan.version, change.written
        self.finals += change.finals
        self.why += change.why

    def due(self, now: float, partitions: int) -> bool:
        """Whether it is time to write the plan."""
        size = (self.plan.size if self.plan else 0) * partitions
        return size <= SMALL or now - self.written >= min(size / RATE, LONGEST)
