"""The cores with a rule of the protocol broken, one at a time: what the schedules must catch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib import import_module
from typing import Any
from unittest.mock import patch

import numpy as np
from confluent_kafka import TopicPartition
from tests.model.kafka import Spool, cut_once
from tests.stream_records import progress_record

from tamis.omission.stream import OmissionState
from tamis.operators.cuts.chain import CutChain
from tamis.plan.model import Plan, StreamPlan
from tamis.planning import topic_readers
from tamis_edge.core import cursor, max_ahead
from tamis_edge.core.commit import Commit
from tamis_edge.core.cuts.partial_topics import PartialTopics
from tamis_edge.core.records import Record
from tamis_edge.core.rows import Batch
from tamis_edge.core.shard_run import ShardRun
from tamis_edge.core.topic_run import TopicRun
from tamis_edge.decode.decoder import Decoder
from tamis_edge.publishing.publisher import Publisher
from tamis_edge.publishing.spooling import Spooling
from tamis_edge.shards.worker import Serving, Worker
from tamis_edge.sources.kafka.topic import KafkaTopic
from tamis_joiner.core.frontiers import Frontiers
from tamis_joiner.core.records.envelopes import Envelopes, ProgressRecord
from tamis_joiner.core.running_query import RunningQuery

# As Any: what is replaced are names that they import.
model_edge: Any = import_module("tests.model.edge")
group: Any = import_module("tamis_joiner.core.group")
join_evaluation: Any = import_module("tamis_joiner.core.join_evaluation")
merge: Any = import_module("tamis_joiner.core.tuples.stored_tuples")
tuple_store: Any = import_module("tamis_joiner.core.tuples.tuple_store")
registry: Any = import_module("tamis_registry.core.registry")
retirement: Any = import_module("tamis_registry.core.plan.retirement")
membership: Any = import_module("tamis_registry.core.shards.membership")

Patches = list[tuple[Any, str, Any]]

_NOTHING = np.empty(0, np.int64), np.empty(0, np.int64)


def activation_at_once() -> Patches:
    """A shard says that it has obeyed the plan from the beginning of time (`shard_activates`)."""
    obey = ShardRun.obey

    def mutant(self: ShardRun, plan: Plan, now: int = 0) -> None:
        changed = plan.version != self.version
        obey(self, plan, now)
        if changed:
            self.activation = 0

    return [(ShardRun, "obey", mutant)]


def future_taken() -> Patches:
    """A reading is taken however far it is ahead of the clock (`max_ahead`)."""
    return [(max_ahead, "too_far", lambda times, now, most: np.zeros(len(times), np.bool_))]


def never_anew() -> Patches:
    """A stream that has run ahead of the clock goes on as it is (`begun_anew`)."""
    return [(registry, "restart_times", lambda *_: ())]


def watermark_kept() -> Patches:
    """A shard keeps its watermark as its stream begins anew (`begun_anew`)."""
    return [(ShardRun, "_begin_anew", lambda self, stream: self.high)]


def progress_ahead() -> Patches:
    """Progress is the watermark, sent at once and ahead of the tuples (`progress_behind`, `commit_first`)."""
    take = ShardRun.take

    def mutant(self: ShardRun, batch: Batch, now: int) -> None:
        take(self, batch, now)
        served = self._served
        undecided = {topic: _NOTHING for topic in served.held()}
        for (topic, partition), time in served.progress(undecided, self.watermark, 0).items():
            value = progress_record(self.shard, self.version, self.activation, time)
            self.out.appendleft(Record(self._outbox.token(), topic, partition, None, value, now // 1000))

    return [(ShardRun, "take", mutant)]


def commit_passes_held() -> Patches:
    """The commit is done with what is undecided."""
    commit = ShardRun.commit

    def mutant(self: ShardRun) -> Commit | None:
        made = commit(self)
        if made is None or self._pending is None:
            return made
        passed = replace(made, done=min(self._outbox.raw.unsafe.values(), default=self.next_offset))
        self._pending = replace(self._pending, commit=passed)
        return passed

    return [(ShardRun, "commit", mutant)]


def commit_passes_unsent() -> Patches:
    """The commit is done with what is decided, sent or not."""
    commit = ShardRun.commit

    def mutant(self: ShardRun) -> Commit | None:
        unsafe, self._outbox.raw.unsafe = self._outbox.raw.unsafe, {}
        try:
            return commit(self)
        finally:
            self._outbox.raw.unsafe = unsafe

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
    read = group.read_envelopes
    return [
        (group, "read_envelopes", lambda records, version, *rest, **more: read(records, 2**60, *rest, **more))
    ]


def first_version() -> Patches:
    """Of a tuple that comes twice the least version counts (`greatest_version`)."""

    class Least:
        """NumPy with another maximum."""

        def __getattr__(self, name: str) -> Any:
            return np.minimum if name == "maximum" else getattr(np, name)

    return [(merge, "np", Least())]


def trimmed_early() -> Patches:
    """State goes when a frontier has reached a tuple's last partner, not when it has passed it."""
    needed = tuple_store.needed

    class Further(Frontiers):
        """Frontiers one tick on."""

        def __init__(self, of: Callable[[str], int]) -> None:
            self.of = lambda topic: of(topic) + 1  # type: ignore[method-assign]

    def mutant(filters: Any, groups: Any, reached: Frontiers, *rest: Any) -> Any:
        return needed(filters, groups, Further(reached.of), *rest)

    return [(tuple_store, "needed", mutant)]


def listed_by_any_record() -> Patches:
    """Progress from before a shard was listed counts (`final_versioned`)."""
    take = Frontiers.take

    def mutant(
        self: Frontiers, topic: str, mark: ProgressRecord, partners: Mapping[str, frozenset[str]]
    ) -> None:
        take(self, topic, replace(mark, version=2**60), partners)

    return [(Frontiers, "take", mutant)]


def gone_stand_still() -> Patches:
    """A stream without shards keeps its frontier (`gone_follows`)."""
    advance = Frontiers.advance
    return [(Frontiers, "advance", lambda self, partners: advance(self, {}))]


def first_at_once() -> Patches:
    """A stream that has never had a shard follows its partners at once (`first_waits`)."""
    return [(Frontiers, "unbegun", lambda self, topic: False)]


def marks_before_tuples() -> Patches:
    """A batch takes progress before the tuples that came with it, and trims by it."""
    take = group.Group._take

    def mutant(self: Any, found: Any, state: Any, out: Any) -> None:
        for envelopes in found:
            for mark in envelopes.progress:
                self._frontiers.take(envelopes.records.topic, mark, self._partners)
        self._frontiers.advance(self._partners)
        self._store.mark_needed(self._frontiers)
        for name, mask in self._store._needed.items():
            self._store.tuples[name] = self._store.tuples[name].pick(mask)
        rest: list[Envelopes] = [replace(envelopes, progress=[]) for envelopes in found]
        take(self, rest, state, out)

    return [(group.Group, "_take", mutant)]


def replaced_at_once() -> Patches:
    """The old definition ends as soon as its successor is there (`make_before_break`)."""
    return [(registry, "still_needed", lambda *_: None)]


def ended_at_acknowledgement() -> Patches:
    """The old definition ends when all shards have acknowledged its successor (`all_told`, `none_waits`)."""
    needed = registry.still_needed

    def mutant(definition: Any, successor: int, state: Any, seen: Any) -> str | None:
        why = needed(definition, successor, state, seen)
        return why if why and why.startswith("shard") else None

    return [(registry, "still_needed", mutant)]


def counted_on() -> Patches:
    """The old definition counts every combination until it ends (`least_version`)."""
    joined = join_evaluation.combinations

    def mutant(*some: Any, until: int | None = None) -> Any:
        return joined(*some)

    return [(join_evaluation, "combinations", mutant)]


def held_on() -> Patches:
    """A shard goes on deciding what it holds as it takes up a successor's plan (`publish_held`)."""
    return [(TopicRun, "release", lambda self: _NOTHING[0]), *settled_later()]


def settled_later() -> Patches:
    """A shard commits to a successor's plan before all that it read is safe (`settled_first`)."""

    def settling(self: ShardRun) -> bool:
        counted = any(topic.plan.counted for topic in self._served.topics.values())
        return counted and self.durable.version != self.version

    return [(ShardRun, "settling", property(settling))]


def replayed_as_new() -> Patches:
    """What a restart reads again counts under the plan that it takes up (`replay_version`)."""
    return [(cursor, "end_of_reread", lambda *_: 0)]


def untold_ended() -> Patches:
    """The old definition doesn't wait for progress under its successor's plan (`all_told`)."""
    return [(Frontiers, "obeyed", lambda self, topic: None)]


def waiting_forgotten() -> Patches:
    """The old definition doesn't wait for tuples that may find a partner (`none_waits`)."""
    return [(retirement, "_waiting", lambda *_: None)]


def silent_forgotten() -> Patches:
    """A query that counts doesn't wait for shards that fell silent (`back_first`)."""
    return [(retirement, "_away", lambda *_: None)]


def back_at_restart() -> Patches:
    """A shard that was declared gone is listed again when its edge restarts (`back_with_reading`)."""
    return [(membership, "_given_up", lambda draft, known: False)]


def stale_version() -> Patches:
    """A registry that starts doesn't look for greater versions in the plan topic (`fresh_version`)."""
    begin = registry.Registry.__init__

    def mutant(self: Any, planner: Any, state: Any, *rest: Any, **named: Any) -> None:
        found, greatest, now = rest
        state.version = 0
        begin(self, planner, state, found, greatest // 2, now, **named)

    return [(registry.Registry, "__init__", mutant)]


def no_final() -> Patches:
    """Who is declared gone leaves by the plan alone (`final_in_band`)."""
    return [(registry.shared_topics, "finals", lambda *_: ())]


def doubles_counted() -> Patches:
    """What comes again after a restart is counted again (`places_taken`)."""
    return [(RunningQuery, "_not_taken", lambda self, topic, at, tuples: at)]


def read_before_commit() -> Patches:
    """A shard reads what is counted under a plan before that is committed (`settled_first`)."""
    return [(ShardRun, "settling", False)]


def counted_from_before() -> Patches:
    """A definition counts tuples of plans before its own (`own_versions`)."""
    return [(RunningQuery, "_of_own_version", lambda self, versions: np.ones(len(versions), np.bool_))]


def spooled_goes_ahead() -> Patches:
    """What an edge has spooled goes out after its crash, ahead of what comes again (`spool_given_up`)."""
    return [(Spool, "delete_from", lambda self, shard, done, number: None)]


def seeks_while_fetching() -> Patches:
    """A source seeks to where it is whenever nothing has come for a second (`ends_asked_apart`)."""

    def mutant(self: KafkaTopic) -> None:
        for shard in self._shards.values():
            waits = shard.started and not shard.paused and not shard.at_end and not shard.buffer
            if waits and self._clock() - shard.heard > 1.0:
                shard.heard = self._clock()
                self._consumer.seek(TopicPartition(shard.topic, shard.partition, shard.next or 0))

    return [(KafkaTopic, "_ask_for_ends", mutant)]


def fetched_again() -> Patches:
    """A shard that isn't listed lets go of what came for it, and of what is on its way (`fetch_kept`)."""

    def start(self: Worker, offset: int, decoder: Decoder) -> None:
        self._stop()
        self.source.start(offset, decoder)

    def drop(self: Worker, _: Serving) -> None:
        self._stop()

    return [(Worker, "_start", start), (Worker, "_drop", drop)]


def taken_though_the_disk_is_full() -> Patches:
    """What a full disk refuses has left its shard already (`refused_stays`)."""
    append = Spooling.append

    def mutant(self: Spooling, sender: Any) -> None:
        before = self.error
        append(self, sender)
        if self.error is not None and self.error is not before:
            for record in sender.out:
                if sender.carries_tuple(record.token):
                    sender.safe(record.token)
                else:
                    sender.retract(record.token)
            sender.out.clear()

    return [(Spooling, "append", mutant)]


def ends_on_a_full_disk() -> Patches:
    """An edge ends where its disk refuses to delete what Kafka has (`deleted_later`)."""

    def mutant(self: Spooling) -> None:
        if self._delivered:
            self._spool.delivered(self._delivered)
            self._delivered = []

    return [(Spooling, "delete_delivered", mutant)]


def domains_forgotten() -> Patches:
    """An old definition takes readings that only the altered stream accepts (`former_domains`)."""
    return [(topic_readers, "former_domains", lambda *_: None)]


def columns_forgotten() -> Patches:
    """Readings that a restart reads again are checked as the altered stream says (`former_columns`)."""
    return [(StreamPlan, "columns_under", lambda self, version: self.columns)]


def older_cut() -> Patches:
    """A shard takes up a plan with the streams of the plan before, as if its part had come late."""
    before: dict[str, Plan] = {}

    def mutant(document: bytes, stream: str) -> Plan:
        plan = cut_once(document, stream)
        known = before.get(stream, plan)
        before[stream] = plan
        return replace(plan, streams=known.streams) if known.version < plan.version else plan

    return [(model_edge, "cut_once", mutant)]


def open_panes_done() -> Patches:
    """The readings of open panes count as done."""
    return [(CutChain, "done", lambda self, next_offset: next_offset)]


def changed_with_open_panes() -> Patches:
    """Changed queries are taken up before all readings of those before are sent."""
    return [(PartialTopics, "ready", lambda self, plan, next_offset: True)]


MUTATIONS: dict[str, Callable[[], Patches]] = {
    make.__name__: make
    for make in (
        activation_at_once,
        future_taken,
        never_anew,
        watermark_kept,
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
        first_at_once,
        marks_before_tuples,
        replaced_at_once,
        ended_at_acknowledgement,
        counted_on,
        held_on,
        settled_later,
        replayed_as_new,
        untold_ended,
        waiting_forgotten,
        silent_forgotten,
        back_at_restart,
        stale_version,
        no_final,
        doubles_counted,
        read_before_commit,
        counted_from_before,
        spooled_goes_ahead,
        seeks_while_fetching,
        fetched_again,
        taken_though_the_disk_is_full,
        ends_on_a_full_disk,
        domains_forgotten,
        columns_forgotten,
        older_cut,
        open_panes_done,
        changed_with_open_panes,
    )
}


@contextmanager
def broken(name: str) -> Iterator[None]:
    """The cores with this rule broken."""
    with ExitStack() as stack:
        for where, attribute, mutant in MUTATIONS[name]():
            stack.enter_context(patch.object(where, attribute, mutant))
        yield
