"""The registry as a pure state machine: a decision changes nothing until its change is reported `done`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from tamis.declarations.streams import StreamDef
from tamis.errors import UnavailableError
from tamis.identity_cache import IdentityCache
from tamis.messaging.heartbeats import Heartbeat
from tamis.messaging.records import Ack, Frontier, Observation
from tamis.plan.document import PlanDocument
from tamis.plan.model import Plan, partial_topics
from tamis.planning.incremental import Built
from tamis.query.model import AlertDef, Catalog, Redefine, Statement
from tamis_registry.core.leases import end, expired, take
from tamis_registry.core.plan import shared_topics
from tamis_registry.core.plan.change import Change, Final
from tamis_registry.core.plan.draft_plan import check_stream, plan_draft, take_up, with_schemas
from tamis_registry.core.plan.planner import Planner, knowing
from tamis_registry.core.plan.retirement import still_needed
from tamis_registry.core.shards import membership
from tamis_registry.core.shards.backfill import check_history, forget_unread
from tamis_registry.core.shards.fleet_reports import FleetReports, NextReports
from tamis_registry.core.shards.time_restart import restart_times
from tamis_registry.core.silences import HeldOpening, HeldOpenings, Kept, Silences
from tamis_registry.core.snapshot import Snapshot
from tamis_registry.core.state.model import Lease, State, definitions
from tamis_registry.core.state.records import difference
from tamis_registry.core.statements.application import TextApplication
from tamis_registry.core.statements.outcomes import Outcome, reasons
from tamis_registry.core.statements.reading import (
    OutdatedError,
    Read,
    parsed,
    same_definitions,
)
from tamis_registry.core.statements.recovery import parse_all
from tamis_registry.core.status import View


class Registry:
    """The state machine: it takes statements, acknowledgements and frontiers, and returns `Change`s. Times
    are microseconds of the wall clock.

    The caller performs a change and then reports it as `done`. If that fails, nobody knows how much of it was
    done. The caller then drops this object and makes another one from the content of the topics, as after a
    crash.
    """

    def __init__(
        self,
        planner: Planner,
        state: State,
        found: State | None,
        greatest: int,
        now: int,
        *,
        partials: Collection[str] = (),
    ) -> None:
        """Start from the state that the topics hold.

        `found`: the state as the topics hold it (None at the first start of the fleet); `greatest`: the
        greatest plan version in any partition of the plan topic (`fresh_version`). `partials`: the
        topics of the newest plan that have partial aggregates.
        """
        self._planner = planner
        self._found = found
        self.state = state
        self.state.version = max(state.version, greatest)
        self.state.catalog.file_access = planner.file_access
        self.seen = FleetReports(floor=now)
        self.plan = Plan(version=0, partitions=state.partitions)
        self.published = now
        self._made: set[str] = set()
        self._finals: set[Final] = set()
        self._built: Built | None = None
        self._written: PlanDocument | None = None
        self._partials: Collection[str] | None = partials or None
        self._unproven = IdentityCache[bool]()
        self._next_reports = NextReports()
        self.silences = Silences()
        self.held = HeldOpenings()
        parse_all(state, planner)

    # ---- what the fleet says

    def hear(self, ack: Ack, now: int | None) -> None:
        """Take the acknowledgement of a shard, or the sign of life of an edge without shards. `now` is None
        for one from before this process started. Raises ValueError for one that can't be true, and for a
        shard too many.
        """
        if not ack.is_of_edge:
            known = self.state.shards.get(ack.shard)
            if known is not None and known.stream != ack.stream:
                raise ValueError(f"the shard is one of stream {known.stream!r}, not of {ack.stream!r:.100}")
            self.seen.hear(ack)
        elif now is not None:
            self.seen.hear_edge(ack)
        if now is not None:
            self.seen.heard[ack.shard] = now

    def follow(self, frontier: Frontier, now: int | None = None) -> None:
        """Take the joiner's frontiers of one output partition. `now` is None for a record from before this
        process started.
        """
        self.seen.follow(frontier, now)

    def take_heartbeat(self, key: str, heartbeat: Heartbeat, now: int | None) -> None:
        """Take the heartbeat of the joiner or of a worker of the alerts service. `now` as in `follow`."""
        self.seen.take_heartbeat(key, heartbeat, now)

    def take_held(self, key: bytes, opening: HeldOpening | None) -> None:
        """Take the record of an opening that the alerts service holds back; None: it is held no more."""
        self.held.take(key, opening)

    def observe(self, told: Observation) -> None:
        """Take the sample of a shard's readings. Raises ValueError if there are too many."""
        self.seen.observe(told)

    def listen_anew(self, now: int) -> None:
        """Count silence from now on, because nobody could be heard until now."""
        self.seen.floor = now

    # ---- decisions

    def begin(self, now: int, *, keep_plan: bool = False) -> Change:
        """The first change after a start: the same plan under a new version, and all final records.

        `keep_plan`: the fleet keeps the plan that it has, because the statements of this plan are lost.
        """
        if keep_plan:
            draft = self.state.draft()
            return Change(draft, difference(self._found, draft))
        return self._change(self.state.draft(), now, ("the registry started",), always=True)

    def apply(
        self, text: str, now: int, file: str | None = None, *, keep: bool = False
    ) -> tuple[list[Outcome], Change]:
        """Apply one SQL text, all of it or nothing.

        `keep`: existing definitions stay as they are, and only missing ones are created. Raises TamisError
        with the mistakes or the refusal; their positions are in the text `file`.
        """
        return self.take(parsed(text, self.state.catalog, file, keep=keep), now, keep=keep)

    def apply_read(
        self, text: Read, by: Catalog, now: int, *, keep: bool = False
    ) -> tuple[list[Outcome], Change]:
        """Apply a text that another process has read with the catalogue `by`.

        Raises OutdatedError if the definitions have changed since.
        """
        if not same_definitions(by, self.state.catalog):
            raise OutdatedError
        text = text.within(self.state.catalog)
        return self.take(text.statements, now, keep=keep, planner=knowing(self._planner, text.known))

    def take(
        self,
        statements: Sequence[Statement],
        now: int,
        *,
        keep: bool = False,
        planner: Planner | None = None,
    ) -> tuple[list[Outcome], Change]:
        """Apply parsed statements; `planner` decides them in place of the registry's own planner."""
        draft = self.state.draft()
        take_up(draft, self.seen)
        before = self.state.catalog if keep else None
        fold = TextApplication(draft, planner or self._planner, draft.version + 1, self._built, before)
        for statement in statements:
            made = statement.made if isinstance(statement, Redefine) else statement
            if isinstance(made, StreamDef):
                check_stream(made, self._planner.register)
            elif isinstance(made, AlertDef):
                check_history(made, draft, self.seen)
        outcomes = [fold.take(statement) for statement in statements]
        change = self._change(draft, now, reasons(statements, outcomes))
        if change.considered is not None:
            served = change.state, change.considered
            outcomes = [
                replace(one, query=replace(one.query, served=served)) if one.query is not None else one
                for one in outcomes
            ]
        return outcomes, change

    def subscribe(self, wanted: Lease, now: int) -> tuple[Lease, Change]:
        """Make or renew a lease."""
        draft = self.state.draft()
        lease, what = take(draft, wanted, draft.version + 1)
        self.seen.asked[wanted.id] = now
        if what == "new" and lease.subscription is not None:
            take_up(draft, self.seen)
            change = self._change(draft, now, (f"lease of {lease.stream}",))
            return change.state.leases[lease.id], change
        return lease, Change(draft, difference(self._found, draft) if what != "known" else {})

    def renew(self, wanted: Lease, now: int) -> Lease | None:
        """Renew a lease for the same term, which needs no record; None if there is no such lease."""
        known = self.state.leases.get(wanted.id)
        if known is None or known.seconds != wanted.seconds:
            return None
        self.seen.asked[known.id] = now
        return known

    def release(self, lease: str, now: int) -> tuple[Lease, Change]:
        """End a lease at once. Raises MissingError if there is no such lease."""
        draft = self.state.draft()
        ended = end(draft, lease)
        return ended, self._change(draft, now, (f"lease of {ended.stream} was given back",))

    def keep(self, kept: Kept) -> tuple[Kept, Change]:
        """Keep a silence or an acknowledgement. Raises InputError and RefusedError as `Silences.added`."""
        return kept, Change(self.state, {}, silences=self.silences.added(kept))

    def forget(self, key: bytes) -> tuple[None, Change]:
        """Remove a silence or an acknowledgement. Raises MissingError."""
        return None, Change(self.state, {}, silences=self.silences.removed(key))

    def forget_shard(self, name: str, now: int) -> tuple[str, Change]:
        """Give up a shard. Raises MissingError, or RefusedError if it may be in use."""
        draft, known = self.state.draft(), self.state.shards.get(name)
        shard = membership.forget(draft, self.seen, name, now, draft.version + 1)
        if known is None or known.since is None:
            return shard.name, Change(draft, difference(self._found, draft))
        return shard.name, self._change(draft, now, ())

    def snapshot(self) -> Snapshot:
        """A copy of the state, for questions that change nothing. The registry can continue meanwhile."""
        draft = self.state.draft()
        take_up(draft, self.seen)
        return Snapshot(self._planner, draft, self._built)

    def explain(self, text: str, file: str | None = None) -> list[dict[str, Any]]:
        """EXPLAIN's document of every query of a text; the state doesn't change."""
        return self.snapshot().explain(text, file)

    def tick(self, now: int) -> Change | None:
        """The next change that is due without a statement; None if nothing is due.

        The order: plan versions that only the fleet knows, old definitions that may end, expired leases,
        streams ahead of the clock, shards that ended, fell silent or are new, and last a plan that is written
        again for the joiner.
        """
        draft, n, view = self.state.draft(), self.state.version + 1, self.view(now)
        if (obeyed := self.seen.greatest_plan()) > draft.version:
            # Kafka has lost its topics. Edges and joiner ignore plans below the one that they obey.
            draft.version = obeyed
            lost = f"the fleet obeys plan {obeyed}, which is newer than all plans in Kafka"
            return self._change(draft, now, (lost,), always=True)
        ended = [
            key
            for key, old in draft.retiring.items()
            if not (definition := view.definition(old.alert, old.version))
            or still_needed(definition, old.successor, draft, self.seen) is None
        ]
        if ended:
            for key in ended:
                del draft.retiring[key]
            return self._change(draft, now, tuple(f"{key} has ended" for key in ended))
        over = expired(draft, self.seen, now)
        if over:
            for lease in over:
                del draft.leases[lease.id]
                self.seen.asked.pop(lease.id, None)
            return self._change(draft, now, tuple(f"lease of {lease.stream} has expired" for lease in over))
        anew = restart_times(draft, self.seen, now, n)
        if anew:
            why = tuple(f"the time of stream {name} is ahead of the clock, and begins anew" for name in anew)
            try:
                return replace(self._change(draft, now, why), anew=anew)
            except UnavailableError:
                # The schema registry doesn't answer, which new topics need. Shards must not wait for it.
                draft = self.state.draft()
        left = membership.delist_ended(draft, self.seen, n)
        gone = membership.declare_gone(draft, self.seen, now, n)
        came = membership.list_waiting(draft, self.seen, now, n)
        if not (left or gone or came):
            waits = self._built is not None and self._built.waits_for_partials
            if waits and self._aggregated(draft) is not None:
                return self._change(draft, now, ("all services can exchange partial aggregates",))
            if self._representatives_begin(draft):
                return self._change(
                    draft, now, ("the joiner's state has begun: edges begin their representatives",)
                )
            if done := self.silences.over(now):
                return Change(self.state, {}, silences=done)
            return self._written_again(now)
        return self._change(draft, now, ())

    def _written_again(self, now: int) -> Change | None:
        """The plan as it is, if the joiner waits for any record to come."""
        if self._built is None or not self._next_reports.take_overdue(self.seen.frontiers.values(), now):
            return None
        why = ("the joiner has a frontier record that comes with its next batch",)
        return Change(self.state, {}, built=self._built, written=self._written, why=why)

    def done(self, change: Change, now: int) -> None:
        """Adopt a change that was performed."""
        self.state = change.state
        self._found = change.state
        self._made.update(change.topics)
        self.silences.take(change.silences)
        self._finals.update(change.finals)
        if change.built is not None:
            self._built, self._written = change.built, change.written
            self.plan, self.published = change.built.plan, now
            self._unproven.retain(chain(self.plan.definitions, self.plan.standing))
        self.state.catalog.results.retain(definitions(self.state))

    def view(self, now: int) -> View:
        """All data from which a status is derived."""
        return View(self.state, self.seen, self.plan, self.published, now, self._unproven)

    # ----

    def _aggregated(self, draft: State) -> Collection[str] | None:
        """The topics that have partial aggregates now; None until all services can exchange them. From then
        on they can: a plan that had them always has them.
        """
        if self._built is not None and self._built.partials:
            self._partials = partial_topics(self.plan)
        elif self._partials is None:
            self._partials = frozenset() if self.seen.takes_partials(_listed(draft)) else None
        return self._partials

    def _began(self, draft: State) -> int | None:
        """When the joiner last lost state, or began, as `StreamPlan.representatives` says it. None until all
        services can read plans with it, and all partitions of the joiner have said so.
        """
        if not self.seen.takes_representatives(_listed(draft)):
            return None
        found = self.seen.joiner_began(self.state.partitions)
        if found is not None:
            return found
        said = (one.representatives for one in self.plan.streams if one.representatives is not None)
        return next(said, None)

    def _representatives_begin(self, draft: State) -> bool:
        """True if the plan says another time than the joiner."""
        if self._built is None or not self._built.represented:
            return False
        began, represented = self._began(draft), self._built.represented
        return any(one.representatives != began for one in self.plan.streams if one.name in represented)

    def _change(self, draft: State, now: int, why: tuple[str, ...], always: bool = False) -> Change:
        n = draft.version + 1
        forget_unread(draft)
        membership.list_waiting(draft, self.seen, now, n)
        partials, began = self._aggregated(draft), self._began(draft)
        built = plan_draft(self._planner, draft, n, self._built, partials=partials, representatives=began)
        built = with_schemas(built, draft, self._planner.register)
        plan = built.plan
        if not always and replace(plan, version=self.plan.version) == self.plan:
            return Change(draft, difference(self._found, draft), considered=built, why=why)
        draft.version = n
        finals = shared_topics.finals(draft, plan, self._finals, self.seen)
        needed = {t.name for s in plan.streams for t in s.topics} | {f.topic for f in finals}
        return Change(
            state=draft,
            statements=difference(self._found, draft),
            topics=tuple(sorted(needed - self._made)),
            built=built,
            considered=built,
            # Here, since a plan that is too large to be written must fail before anything is durable.
            written=PlanDocument(plan, self._written),
            finals=finals,
            why=(*why, *_moves(self.state, draft)),
        )


def _listed(draft: State) -> Iterator[str]:
    return (name for name, shard in draft.shards.items() if shard.since is not None)


_MOVED = {
    "ended": "has ended",
    "silent": "is declared gone",
    "given_up": "was given up",
    "dropped": "has no stream any more",
}


def _moves(old: State, new: State) -> Iterator[str]:
    """The shards that came or went."""
    for name, shard in new.shards.items():
        before = old.shards.get(name)
        if before is not shard and before != shard:
            yield f"shard {name} came" if shard.since is not None else f"shard {name} {_MOVED[shard.reason]}"
