"""The topics of one stream that a shard serves, and the tuples on which their entries have not decided."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tamis.expressions.python_functions import missing
from tamis.messaging.records import END_OF_TIME
from tamis.messaging.schemas.tuple_schema import ValueSchema, value_schema
from tamis.omission.columns import Int64s
from tamis.operators.time_join.filter_dispatch import Bools, Dispatch
from tamis.operators.time_join.tuple_entries import Matches
from tamis.plan.model import Plan, StreamPlan, TopicPlan
from tamis.plan.omission import filters_before_calls
from tamis.telemetry.logs import get_logger
from tamis_edge.core.outbox import Counts, Progress
from tamis_edge.core.rows import Batch, Chunk, Rows
from tamis_edge.core.topic_run import TopicRun

_log = get_logger("edge.dispatch")

Publish = Callable[[TopicRun, Int64s], None]
Held = dict[TopicRun, tuple[Int64s, Int64s]]
"""The ids and event times of the undecided tuples, by topic."""


class Matched(NamedTuple):
    """The matches of a batch, topic by topic, with the tuples that match any of its entries. `codes`: of
    partition keys, by the serial number of the topic. `concerned`: the tuples that match in any topic.
    `passing`: those that pass each filter.
    """

    topics: list[tuple[TopicRun, Matches, Bools]]
    codes: dict[int, Int64s]
    concerned: Bools
    passing: Bools


class ServedTopics:
    """All topics of one stream at one shard."""

    def __init__(self, partitions: int) -> None:
        self.stream: StreamPlan | None = None
        self.partitions = partitions
        self.topics: dict[str, TopicRun] = {}
        # Also of the topics of the plan before, to which progress may still be sent.
        self.schemas: dict[str, ValueSchema | None] = {}
        self.rows = Rows()
        self._dispatch = Dispatch(())

    def serve(
        self,
        plan: Plan,
        stream: StreamPlan | None,
        publish: Publish,
        *,
        whole: bool = False,
        without_tuples: Collection[str] = (),
    ) -> None:
        """Give the topics the entries of a plan. `publish` is called with the tuples that ended entries held,
        while the stream is still the one of the previous plan. `whole`: nothing is omitted. No tuples are
        published to the topics `without_tuples`.
        """
        before = self.stream
        if before is not None and (
            stream is None or (before.columns, before.time) != (stream.columns, stream.time)
        ):
            # Another stream of the same name: its tuples have other columns than those that are held.
            for topic in self.topics.values():
                publish(topic, topic.end())
            self.topics, self.rows, self._dispatch = {}, Rows(), Dispatch(())
        plans = {} if stream is None else {topic.name: topic for topic in stream.topics}
        plans |= {name: replace(plans[name], entries=()) for name in without_tuples}
        self.schemas = {name: topic.schema for name, topic in self.topics.items()}
        if stream is not None:
            self.schemas |= {name: value_schema(stream, topic) for name, topic in plans.items()}
        if whole:
            plans = {name: _without_omission(topic) for name, topic in plans.items()}
        called = {} if whole else filters_before_calls(plan.definitions)
        filters = [entry.filter for topic in plans.values() for entry in topic.entries]
        called = {name: [one for one in some if not missing(one)] for name, some in called.items()}
        filters += [filter_ for name in plans for filter_ in called.get(name, ())]
        self._dispatch = Dispatch(filters, self._dispatch)
        since = None if stream is None else stream.representatives

        def obey(topic: TopicRun, new: TopicPlan) -> Int64s:
            before_calls = called.get(new.name, ())
            return topic.obey(new, self._dispatch.row, before_calls, representatives=since)

        for name, topic in list(self.topics.items()):
            new = plans.get(name)
            if new is None or new.partition_key != topic.plan.partition_key:
                publish(topic, topic.end())
                del self.topics[name]
            else:
                topic.schema = self.schemas[name]
                publish(topic, obey(topic, new))
        for name, new in plans.items():
            if name not in self.topics:
                topic = self.topics[name] = TopicRun(new, plan.partitions, self.schemas[name])
                obey(topic, new)
        self.stream, self.partitions = stream, plan.partitions

    def match(self, batch: Batch) -> Matched:
        """The tuples of a batch that concern the topics."""
        n = len(batch)
        concerned = np.zeros(n, np.bool_)
        codes: dict[int, Int64s] = {}
        found = []
        passing, failed = self._dispatch.over(batch.columns, n)
        for error in failed.values():
            _log.error("a filter can't be evaluated: every tuple passes", error=str(error))
        for topic in self.topics.values():
            matches = topic.matches(batch, passing, failed)
            any_entry = matches.any()
            rows = np.flatnonzero(any_entry)
            code = np.full(n, -1, np.int64)
            key = [batch.columns[name].take(rows) for name in topic.plan.partition_key]
            code[rows] = topic.keys.codes(key, len(rows))
            codes[topic.serial] = code
            concerned |= any_entry
            found.append((topic, matches, any_entry))
        return Matched(found, codes, concerned, passing)

    def keep(self, ids: Int64s, batch: Batch, matched: Matched, late: Bools) -> None:
        """Store the tuples that concern any topic. Those that are `late` will be published."""
        for topic, matches, _ in matched.topics:
            topic.note_calls(ids, matches, matched.passing, late)
        if matched.concerned.any():
            chunk = Chunk(ids, batch, matched.codes, np.zeros(len(batch), np.bool_))
            self.rows.append(chunk if matched.concerned.all() else chunk.take(matched.concerned))

    def held(self) -> Held:
        """The undecided tuples."""
        return {topic: topic.held() for topic in self.topics.values()}

    def forget_decided(self, held: Held, counts: Counts) -> Int64s:
        """Forget the decided tuples, and the keys that no other tuple has; returns the ids of the others, and
        counts the omitted ones. `held`: the undecided tuples.
        """
        undecided = np.unique(np.concatenate([np.empty(0, np.int64), *(ids for ids, _ in held.values())]))
        counts.omitted += self.rows.retain(undecided)
        counts.saved_calls += sum(topic.saved_calls.decided(ids) for topic, (ids, _) in held.items())
        for topic in self.topics.values():
            topic.forget_keys(self.rows)
        return undecided

    def offset(self, tuple_id: Int64s) -> int:
        """The source offset of one tuple, given as an array of its id."""
        chunk, rows = self.rows.find(tuple_id)[0]
        return int(chunk.batch.offsets[rows[0]])

    def progress(self, held: Held, watermark: int, place: int) -> Progress:
        """The least event time that can still be published, by topic and output partition. `place`: the
        position of the next tuple, used as the time of a stream that has no time.
        """
        if self.stream is not None and self.stream.time is None:
            return {(topic.plan.name, p): place for topic in held for p in range(self.partitions)}
        # The plan that is obeyed is news even where no event time is known.
        progress = {}
        for topic, (ids, times) in held.items():
            least = np.full(self.partitions, min(watermark, END_OF_TIME), np.int64)
            if len(ids):
                codes = [chunk.codes[topic.serial][rows] for chunk, rows in self.rows.find(ids)]
                np.minimum.at(least, topic.keys.partitions(np.concatenate(codes)), times)
            for partition, time in enumerate(least.tolist()):
                progress[topic.plan.name, partition] = time
        return progress


def _without_omission(topic: TopicPlan) -> TopicPlan:
    return replace(
        topic, entries=tuple(replace(entry, interval=0, representation=None) for entry in topic.entries)
    )
