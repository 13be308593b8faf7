"""What a decision of the registry does to the world, as data, in the one order that a crash can't harm.

1. `statements` are written: from here on a restart knows what was decided.
2. `topics` are created, before a plan names them.
3. `plan` is written into every partition of the plan topic, and `finals` into every partition of their
topics.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tamis.planning.build import Built
from tamis.planning.plan import Plan
from tamis.planning.plan_text import Written
from tamis_registry.core.state import State


@dataclass(frozen=True)
class Final:
    """A final record that the registry writes for a delisted shard (`final_in_band`)."""

    topic: str
    shard: str
    version: int


@dataclass(frozen=True)
class Change:
    """One step from a state to the next. `built` None: the fleet need not know of what was `considered`,
    since it obeys that already.
    """

    state: State
    statements: dict[bytes, bytes | None]
    topics: tuple[str, ...] = ()
    built: Built | None = None
    considered: Built | None = field(default=None, compare=False)
    written: Written | None = None  # the plan as it is written
    finals: tuple[Final, ...] = ()
    why: tuple[str, ...] = field(default=(), compare=False)

    @property
    def plan(self) -> Plan | None:
        """The plan that is to be written."""
        return self.built.plan if self.built else None
