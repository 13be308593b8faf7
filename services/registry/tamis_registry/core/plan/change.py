"""Effects of a decision of the registry, as data.

They must be performed in this order, so that a crash in between does no harm:

1. `statements` and `silences` are written. After this a restart knows what was decided.
2. `topics` are created, before a plan names them.
3. `plan` is written into every partition of the plan topic, and `finals` into every partition of their
   topics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tamis.messaging.schemas.tuple_schema import ValueSchema
from tamis.plan.document import PlanDocument
from tamis.plan.model import Plan
from tamis.planning.incremental import Built
from tamis_registry.core.silences import Kept
from tamis_registry.core.state.model import State


@dataclass(frozen=True)
class Final:
    """A final record that the registry writes for a delisted shard (`final_in_band`)."""

    topic: str
    shard: str
    version: int
    schema: ValueSchema | None = None  # of the topic's values; None for JSON


@dataclass(frozen=True)
class Change:
    """One step from a state to the next.

    `built`: None if the fleet already uses the plan of `considered`, so that no plan has to be written.
    `written`: the plan's JSON. `anew`: streams whose time is restarted.
    """

    state: State
    statements: dict[bytes, bytes | None]
    topics: tuple[str, ...] = ()
    built: Built | None = None
    considered: Built | None = field(default=None, compare=False)
    written: PlanDocument | None = None  # the plan as it is written
    finals: tuple[Final, ...] = ()
    why: tuple[str, ...] = field(default=(), compare=False)
    anew: tuple[str, ...] = field(default=(), compare=False)  # streams whose time begins anew
    silences: Mapping[bytes, Kept | None] = field(default_factory=dict)  # by the keys of their records

    @property
    def plan(self) -> Plan | None:
        """The plan that is to be written."""
        return self.built.plan if self.built else None
