"""The registry as a pure machine: what is said to it changes nothing until the change that it answers is
`done`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from tamis.errors import TamisError
from tamis.messaging.records import Ack, Frontier, Observation
from tamis.planning.build import Built
from tamis.planning.plan import Plan
from tamis.planning.plan_text import Written
from tamis.planning.seats import Asking
from tamis.query.model import AlertDef, DerivedDef, FunctionDef, SetPaused, Statement, StreamDef, TableDef
from tamis.query.parse import parse
from tamis_registry.core import estimates, membership, topics
from tamis_registry.core.carry import carry_out
from tamis_registry.core.change import Change, Final
from tamis_registry.core.leases import end, expired, take, understood
from tamis_registry.core.planner import Planner
from tamis_registry.core.retirement import still_needed
from tamis_registry.core.seen import Seen
from tamis_registry.core.state import Lease, State, Stored, difference
from tamis_registry.core.statements import Fold, Outcome, explain_text, tell, verdict
from tamis_registry.core.status import View


class Registry:
    """Statements, acknowledgements and frontiers in; `Change`s out. Times are microseconds of the wall clock.

    A change is performed by the caller and then told to `done`. Where performing it fails, nobody knows
    how much of it happened: this object is thrown away and another made from what the topics hold, as
    after a crash.
    """

    def __init__(self, planner: Planner, state: State, found: State | None, greatest: int, now: int) -> None:
        """`found` is what the topics hold of `state` (None at the fleet's first start), `greatest` the
        greatest plan version in any partition of the plan topic (`fresh_version`).
        """
        self._planner = planner
        self._found = found
        self.state = state
        self.state.version = max(state.version, greatest)
        self.state.catalog.reach = planner.reach
        self.seen = Seen(floor=now)
        self.plan = Plan(version=0, partitions=state.partitions)
        self.published = now
        self._made: set[str] = set()
        self._finals: set[Final] = set()
        self._built: Built | None = None
        self._written: Written | None = None
        self._parse_all()

    # ---- what the fleet says

    def hear(self, ack: Ack, now: int | None) -> None:
        """A shard's acknowledgement; `now` None for one from before this process started."""
        self.seen.hear(ack)
        if now is not None:
            self.seen.heard[ack.shard] = now

    def follow(self, frontier: Frontier) -> None:
        """The joiner's frontiers of one output partition."""
        self.seen.frontiers[frontier.partition] = frontier

    def observe(self, told: Observation) -> None:
        """What a shard's readings are like."""
        self.seen.observe(told)

    def listen_anew(self, now: int) -> None:
        """Nobody could be heard until now: no shard's silence counts from before."""
        self.seen.floor = now

    # ---- decisions

    def begin(self, now: int) -> Change:
        """The first change after a start: the plan again, under a new version, and all final records."""
        return self._change(self.state.draft(), now, ("start",), always=True)

    def apply(self, text: str, now: int, file: str | None = None) -> tuple[list[Outcome], Change]:
        """One SQL text, all of it or nothing; raises TamisError with the mistakes or the refusal, which call
        the text `file`.
        """
        return self.take(parse(text, self.state.catalog, carry_out, file), now)

    def take(self, statements: Sequence[Statement], now: int) -> tuple[list[Outcome], Change]:
        """Statements that are parsed already."""
        draft = self.state.draft()
        estimates.take_up(draft, self.seen)
        fold = Fold(draft, self._planner, draft.version + 1)
        outcomes = [fold.take(statement) for statement in statements]
        change = self._change(draft, now, tuple(o.statement for o in outcomes))
        for outcome in outcomes:
            if outcome.query is not None and change.considered is not None:
                tell(outcome.query, change.state, change.considered)
        return outcomes, change

    def subscribe(self, wanted: Lease, now: int) -> tuple[Lease, Change]:
        """A lease that is asked for, now or again."""
        draft = self.state.draft()
        lease, what = take(draft, wanted, draft.version + 1)
        self.seen.asked[wanted.id] = now
        if what == "new" and lease.subscription is not None:
            estimates.take_up(draft, self.seen)
            change = self._change(draft, now, (f"lease of {lease.stream}",))
            return change.state.leases[lease.id], change
        return lease, Change(draft, difference(self._found, draft) if what != "known" else {})

    def renew(self, wanted: Lease, now: int) -> Lease | None:
        """A lease that there is, asked for again for the same term: nothing has to be written."""
        known = self.state.leases.get(wanted.id)
        if known is None or known.seconds != wanted.seconds:
            return None
        self.seen.asked[known.id] = now
        return known

    def release(self, lease: str, now: int) -> tuple[Lease, Change]:
        """A lease that nobody wants any more ends at once. Raises MissingError where there is none."""
        draft = self.state.draft()
        ended = end(draft, lease)
        return ended, self._change(draft, now, (f"lease of {ended.stream} was given back",))

    def explain(self, text: str, file: str | None = None) -> list[dict[str, Any]]:
        """EXPLAIN's document of every query of a text; nothing changes."""
        draft = self.state.draft()
        estimates.take_up(draft, self.seen)
        queries = explain_text(text, draft.catalog, self._planner, draft.estimates, file)
        for query in queries:
            if not query["accepted"]:
                draft.catalog.alerts.pop(query["name"], None)
        n, known = draft.version + 1, self.state.catalog.alerts
        for name in known.keys() - draft.catalog.alerts.keys():
            draft.statements.pop(f"alert/{name}", None)
        for name, alert in draft.catalog.alerts.items():
            if alert is not known.get(name):
                draft.statements[f"alert/{name}"] = Stored("alert", name, alert.sql, 0, n, definition=alert)
        built = self._build(draft, n)
        for query in queries:
            tell(query, draft, built)
        return queries

    def tick(self, now: int) -> Change | None:
        """What is due by itself: an old definition that may end; else shards that have ended, fell silent
        or came.
        """
        draft, n, view = self.state.draft(), self.state.version + 1, self.view(now)
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
        left = membership.delist_ended(draft, self.seen, n)
        gone = membership.declare_gone(draft, self.seen, now, n)
        came = membership.list_waiting(draft, self.seen, now, n)
        if not (left or gone or came):
            return None
        return self._change(draft, now, tuple(_moves(self.state, draft)))

    def done(self, change: Change, now: int) -> None:
        """The change is performed: from now on it is so."""
        self.state = change.state
        self._found = change.state
        self._made.update(change.topics)
        self._finals.update(change.finals)
        if change.built is not None:
            self._built, self._written = change.built, change.written
            self.plan, self.published = change.built.plan, now

    def view(self, now: int) -> View:
        """All that a status is derived from."""
        return View(self.state, self.seen, self.plan, self.published, now)

    # ----

    def _change(self, draft: State, now: int, why: tuple[str, ...], always: bool = False) -> Change:
        n = draft.version + 1
        membership.list_waiting(draft, self.seen, now, n)
        built = self._build(draft, n)
        plan = built.plan
        if not always and replace(plan, version=self.plan.version) == self.plan:
            return Change(draft, difference(self._found, draft), considered=built, why=why)
        draft.version = n
        finals = topics.finals(draft, plan, self._finals, self.seen)
        needed = {t.name for s in plan.streams for t in s.topics} | {f.topic for f in finals}
        return Change(
            state=draft,
            statements=difference(self._found, draft),
            topics=tuple(sorted(needed - self._made)),
            built=built,
            considered=built,
            # Here, since a plan that is too large to be written must fail before anything is durable.
            written=Written(plan, self._written),
            finals=finals,
            why=why,
        )

    def _build(self, draft: State, n: int) -> Built:
        listed = {name: shard for name, shard in draft.shards.items() if shard.since is not None}

        def asking() -> list[Asking]:
            return [*draft.retiring.values(), *draft.statements.values(), *draft.leases.values()]

        built = self._planner.build(
            n,
            draft.catalog,
            asking(),
            partitions=draft.partitions,
            topic_numbers=topics.numbers(draft),
            outside={stream: known.outside for stream, known in draft.topics.items()},
            retiring={reader: old.successor for reader, old in draft.retiring.items() if old.definition},
            since={name: shard.since for name, shard in listed.items() if shard.since is not None},
            shard_streams={name: shard.stream for name, shard in listed.items()},
            estimates=draft.estimates,
            before=self._built,
        )
        topics.remember(draft, built)
        return built.known_as(asking()) if built.placed else built

    def _parse_all(self) -> None:
        """Definitions are stored as SQL and parsed at each start, in the order in which they were made."""
        catalog = self.state.catalog
        for stored in self.state.of_kind("function", "stream", "table", "derived", "alert"):
            key = f"{stored.kind}/{stored.name}"
            try:
                (made,) = parse(stored.sql, catalog, carry_out)
                assert isinstance(made, StreamDef | TableDef | DerivedDef | FunctionDef | AlertDef)
                if isinstance(made, AlertDef | DerivedDef):
                    verdict(self._planner, made, catalog)
                carry_out(catalog, made)
            except TamisError as error:
                self.state.statements[key] = replace(stored, refusal=str(error))
                continue
            if stored.paused:
                carry_out(catalog, SetPaused(stored.name, paused=True))
            self.state.statements[key] = replace(stored, definition=made)
        for key, lease in list(self.state.leases.items()):
            try:
                self.state.leases[key] = understood(lease, catalog)
            except TamisError:
                # Its stream has gone or has changed: whoever asks for it again is told so.
                del self.state.leases[key]
        for key, old in list(self.state.retiring.items()):
            without = catalog.copy()
            without.alerts.pop(old.alert, None)
            try:
                (made,) = parse(old.sql, without, carry_out)
                assert isinstance(made, AlertDef)
                verdict(self._planner, made, without)
            except TamisError:
                del self.state.retiring[key]
            else:
                self.state.retiring[key] = replace(old, definition=made)


def _moves(old: State, new: State) -> Iterable[str]:
    for name, shard in new.shards.items():
        before = old.shards.get(name)
        if before != shard:
            yield f"shard {name} listed" if shard.since is not None else f"shard {name} {shard.reason}"
