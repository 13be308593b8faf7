"""Interface to planning. The planner is passed in, so that tests can run the core with another planner."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from tamis.messaging.schemas.wire_format import Kind
from tamis.planning.derived_topics import DerivedNumber
from tamis.planning.incremental import Built
from tamis.planning.proof_results import WorkedOut
from tamis.planning.topic_readers import ReaderSource
from tamis.query.file_access import NO_ACCESS, FileAccess
from tamis.query.model import AlertDef, Catalog, DerivedDef
from tamis.sharing.selectivity import StreamStatistics
from tamis.sharing.topic_choice import TopicKey


class Build(Protocol):
    """`tamis.planning.incremental.plan_for`."""

    def __call__(
        self,
        version: int,
        catalog: Catalog,
        sources: Sequence[ReaderSource],
        *,
        partitions: int,
        topic_numbers: Mapping[TopicKey, tuple[int, ...]],
        outside: Mapping[str, frozenset[int]],
        retiring: Mapping[str, int],
        since: Mapping[str, int],
        shard_streams: Mapping[str, str],
        statistics: Mapping[str, StreamStatistics],
        derived_numbers: Mapping[str, DerivedNumber],
        before: Built | None,
    ) -> Built: ...


def _forget(made: AlertDef | DerivedDef, catalog: Catalog, found: WorkedOut) -> None:
    """Does nothing: for planners without proofs."""


@dataclass(frozen=True)
class Planner:
    """The planning functions that the registry uses.

    `explain` makes a query's part of EXPLAIN's document; with statistics, the document has the estimated
    shares of streams. `build` makes a plan. Both may raise TamisError. `file_access`: the files that tables
    may name. `learn` stores the results that another process has computed for a query. `register`
    registers the schema of a topic and returns its number; None without a schema registry.
    """

    explain: Callable[[AlertDef | DerivedDef, Catalog, Mapping[str, StreamStatistics] | None], dict[str, Any]]
    build: Build
    file_access: FileAccess = NO_ACCESS
    learn: Callable[[AlertDef | DerivedDef, Catalog, WorkedOut], None] = _forget
    register: Callable[[str, Kind, str], int] | None = None


def knowing(planner: Planner, known: Mapping[int, WorkedOut]) -> Planner:
    """A planner that uses known results for some queries, which are given by the identity of their
    definitions.
    """

    def explain(
        made: AlertDef | DerivedDef, catalog: Catalog, readings: Mapping[str, StreamStatistics] | None
    ) -> dict[str, Any]:
        found = known.get(id(made))
        if found is not None:
            planner.learn(made, catalog, found)
        return planner.explain(made, catalog, readings)

    return replace(planner, explain=explain)
