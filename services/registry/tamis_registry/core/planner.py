"""What the registry asks of planning; passed in, so that the core can be tried under any planner."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tamis.planning.build import Built, TopicKey
from tamis.planning.seats import Asking
from tamis.planning.traffic import Estimate
from tamis.query.model import AlertDef, Catalog, DerivedDef
from tamis.query.reach import NOWHERE, Reach


class Build(Protocol):
    """`tamis.planning.build.plan_for`."""

    def __call__(
        self,
        version: int,
        catalog: Catalog,
        asking: Sequence[Asking],
        *,
        partitions: int,
        topic_numbers: Mapping[TopicKey, tuple[int, ...]],
        outside: Mapping[str, frozenset[int]],
        retiring: Mapping[str, int],
        since: Mapping[str, int],
        shard_streams: Mapping[str, str],
        estimates: Mapping[str, Estimate],
        before: Built | None,
    ) -> Built: ...


@dataclass(frozen=True)
class Planner:
    """`explain` makes a query's part of EXPLAIN's document, with shares of streams estimated by what is known
    of their readings, or without where None is. `build` makes a plan. Both may raise TamisError. `reach`:
    which files tables may name.
    """

    explain: Callable[[AlertDef | DerivedDef, Catalog, Mapping[str, Estimate] | None], dict[str, Any]]
    build: Build
    reach: Reach = NOWHERE
