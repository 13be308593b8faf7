"""The cores with a rule of the protocol broken, one at a time: what the schedules must catch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib import import_module
from typing import Any
from unittest.mock import patch

import numpy as np
from tests.model.kafka import Spool

from tamis.messaging.records import NOTHING_LEFT, progress_record
from tamis.omission.stream import OmissionState
from tamis.planning.plan import Plan
from tamis_edge.core.commit import Commit
from tamis_edge.core.records import Record
from tamis_edge.core.rows import Batch
from tamis_edge.core.shard_run import ShardRun
from tamis_edge.publisher import Publisher
from tamis_edge.worker import Worker
from tamis_joiner.core import live
from tamis_joiner.core.decode import Envelopes, Mark
from tamis_joiner.core.frontiers import Frontiers
from tamis_joiner.core.standing import Running

# As Any: what is replaced are names that they import.
group: Any = import_module("tamis_joiner.core.group")
synopses: Any = import_module("tamis_joiner.core.synopses")
registry: Any = import_module("tamis_registry.core.registry")
retirement: Any = import_module("tamis_registry.core.retirement")

Patches = list[tuple[Any, str, Any]]

_NOTHING = np.empty(0, np.int64), np.empty(0, np.int64)


def activation_at_once() -> Patches:
    """A shard says that it has obeyed the plan from the beginning of time (`shard_activates`)."""
    obey = ShardRun.obey

    def mutant(self: ShardRun, plan: Plan) -> None:
        changed = plan.version != self.version
        obey(self, plan)
        if changed:
            self.activation = 0

    return [(ShardRun, "obey", mutant)]


def progress_ahead() -> Patches:
    """Progress is the watermark, sent at once and ahead of the tuples (`progress_behind`, `commit_first`)."""
    take = ShardRun.take

    def mutant(self: ShardRun, batch: Batch, now: int) -> None:
        take(self, batch, now)
        for (topic, partition), time in self._progress({topic: _NOTHING for topic in self._held()}).items():
            value = progress_record(self.shard, self.version, self.activation, time)
            self.out.appendleft(Record(self._token(), topic, partition, None, value, now // 1000))

    return [(ShardRun, "take", mutant)]


def commit_passes_held() -> Patches:
    """The commit is done with what is undecided."""
    commit = ShardRun.commit

    def mutant(self: ShardRun) -> Commit | None:
        made = commit(self)
        if made is None or self._making is None:
            return made
        passed = replace(made, done=min(self._unsafe.values(), default=self.next_offset))
        self._making = replace(self._making, commit=passed)
        return passed

    return [(ShardRun, "commit", mutant)]


def commit_passes_unsent() -> Patches:
    """The commit is done with what is decided, sent or not."""
    commit = ShardRun.commit

    def mutant(self: ShardRun) -> Commit | None:
        unsafe, self._unsafe = self._unsafe, {}
        try:
            return commit(self)
        finally:
            self._unsafe = unsafe

    return [(ShardRun, "commit", mutant)]


def high_forgotten() -> Patches:
    """A restart doesn't know the greatest event time that was read (`durable_high`)."""
    begin = ShardRun.__init__

    def mutant(self: ShardRun, shard: str, stream: str, commit: Commit, *rest: Any, **named: Any) -> None:
        begin(self, shard, stream, replace(commit, high=-1), *rest, **named)

    return [(ShardRun, "__init__", mutant)]


def forgotten_at_end() -> Patches:
    """An entry that ends forgets what it holds (`flush_ended`)."""

    ended = OmissionState.end

    def flush(self: OmissionState) -> Any:
        self._clear()
        return self.held_ids()

    def end(self: OmissionState, first: int, behind: int) -> Any:
        return ended(self, first, behind)[:0]

    return [(OmissionState, "flush", flush), (OmissionState, "end", end)]


def any_plan() -> Patches:
    """A shard is taken up with an older plan than its commit's (`takeover_plan`)."""
    committed = Worker._take_up

    def mutant(self: Worker, plan: Plan, now: int) -> None:
        found = self.source.committed()
        if found is None or plan.version >= found[0].version:
            committed(self, plan, now)
            return
        old = replace(found[0], version=0)
        with patch.object(self.source, "committed", lambda: (old, False)):
            committed(self, plan, now)

    return [(Worker, "_take_up", mutant)]


def spooled_is_done() -> Patches:
    """What a shard that can move has spooled counts as done (`spool_uncommitted`)."""
    send = Publisher.send
    return [(Publisher, "send", lambda self, sender, movable: send(self, sender, False))]


def nothing_parked() -> Patches:
    """The joiner takes records of plans that it doesn't know yet (`park`)."""
    read = group.read
    return [(group, "read", lambda records, version, *rest: read(records, 2**60, *rest))]


def first_version() -> Patches:
    """Of a tuple that comes twice the least version counts (`greatest_version`)."""

    class Least:
        """NumPy with another maximum."""

        def __getattr__(self, name: str) -> Any:
            return np.minimum if name == "maximum" else getattr(np, name)

    return [(live, "np", Least())]


def trimmed_early() -> Patches:
    """State goes when a frontier has reached a tuple's last partner, not when it has passed it."""
    needed = synopses.needed

    class Further(Frontiers):
        """Frontiers one tick on."""

        def __init__(self, of: Callable[[str], int]) -> None:
            self.of = lambda topic: of(topic) + 1  # type: ignore[method-assign]

    return [(synopses, "needed", lambda tuples, uses, reached: needed(tuples, uses, Further(reached.of)))]


def listed_by_any_record() -> Patches:
    """Progress from before a shard was listed counts (`final_versioned`)."""
    take = Frontiers.take

    def mutant(self: Frontiers, topic: str, mark: Mark, partners: Mapping[str, frozenset[str]]) -> None:
        take(self, topic, replace(mark, version=2**60), partners)

    return [(Frontiers, "take", mutant)]


def gone_stand_still() -> Patches:
    """A stream without shards keeps its frontier (`gone_follows`)."""
    advance = Frontiers.advance
    return [(Frontiers, "advance", lambda self, partners: advance(self, {}))]


def marks_before_tuples() -> Patches:
    """A batch takes progress before the tuples that came with it, and trims by it."""
    take = group.Group._take

    def mutant(self: Any, found: Any, state: Any, out: Any) -> None:
        for envelopes in found:
            for mark in envelopes.marks:
                self._frontiers.take(envelopes.records.topic, mark, self._partners)
        self._frontiers.advance(self._partners)
        self._synopses.mark_needed(self._frontiers)
        for name, mask in self._synopses._needed.items():
            self._synopses.live[name] = self._synopses.live[name].pick(mask)
        rest: list[Envelopes] = [replace(envelopes, marks=[]) for envelopes in found]
        take(self, rest, state, out)

    return [(group.Group, "_take", mutant)]


def replaced_at_once() -> Patches:
    """The old definition ends as soon as its successor is there (`make_before_break`)."""
    return [(registry, "still_needed", lambda *_: None)]


def ended_at_acknowledgement() -> Patches:
    """The old definition ends when all shards have acknowledged its successor (`contract_frontier`)."""
    needed = registry.still_needed

    def mutant(definition: Any, successor: int, state: Any, seen: Any) -> str | None:
        why = needed(definition, successor, state, seen)
        return why if why and why.startswith("shard") else None

    return [(registry, "still_needed", mutant)]


def gone_forgotten() -> Patches:
    """What shards that are gone have sent doesn't keep an old definition (`gone_counts`)."""
    return [(Frontiers, "left", lambda self, topic: NOTHING_LEFT)]


def silent_forgotten() -> Patches:
    """A query that counts doesn't wait for shards that fell silent (`back_first`)."""
    return [(retirement, "_away", lambda *_: None)]


def stale_version() -> Patches:
    """A registry that starts doesn't look for greater versions in the plan topic (`fresh_version`)."""
    begin = registry.Registry.__init__

    def mutant(self: Any, planner: Any, state: Any, *rest: Any) -> None:
        found, greatest, now = rest
        state.version = 0
        begin(self, planner, state, found, greatest // 2, now)

    return [(registry.Registry, "__init__", mutant)]


def no_final() -> Patches:
    """Who is declared gone leaves by the plan alone (`final_in_band`)."""
    return [(registry.topics, "finals", lambda *_: ())]


def doubles_counted() -> Patches:
    """What comes again after a restart is counted again (`places_taken`)."""
    return [(Running, "_fresh", lambda self, topic, at, tuples: at)]


def read_before_commit() -> Patches:
    """A shard reads what is counted under a plan before that is committed (`settled_first`)."""
    return [(ShardRun, "settling", False)]


def counted_from_before() -> Patches:
    """A definition counts tuples of plans before its own (`own_versions`)."""
    return [(Running, "_own", lambda self, versions: np.ones(len(versions), np.bool_))]


def spooled_goes_ahead() -> Patches:
    """What an edge has spooled goes out after its crash, ahead of what comes again (`spool_given_up`)."""
    return [(Spool, "give_up", lambda self, shard, done: None)]


MUTATIONS: dict[str, Callable[[], Patches]] = {
    make.__name__: make
    for make in (
        activation_at_once,
        progress_ahead,
        commit_passes_held,
        commit_passes_unsent,
        high_forgotten,
        forgotten_at_end,
        any_plan,
        spooled_is_done,
        nothing_parked,
        first_version,
        trimmed_early,
        listed_by_any_record,
        gone_stand_still,
        marks_before_tuples,
        replaced_at_once,
        ended_at_acknowledgement,
        gone_forgotten,
        silent_forgotten,
        stale_version,
        no_final,
        doubles_counted,
        read_before_commit,
        counted_from_before,
        spooled_goes_ahead,
    )
}


@contextmanager
def broken(name: str) -> Iterator[None]:
    """The cores with this rule broken."""
    with ExitStack() as stack:
        for where, attribute, mutant in MUTATIONS[name]():
            stack.enter_context(patch.object(where, attribute, mutant))
        yield
