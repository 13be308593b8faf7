"""The product with a rule of representatives broken, one at a time: the schedules must catch each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib import import_module
from typing import Any
from unittest.mock import patch

import numpy as np
from tests.model.mutations import commit_passes_unsent
from tests.model.representatives import office

from tamis.bounded.representatives.proof import NotRepresented, Represented
from tamis.operators import row_store
from tamis.operators.representatives import sent_tuples, synopsis
from tamis.operators.representatives.sent_tuples import Representatives
from tamis.operators.representatives.synopsis import Extremes
from tamis.plan.model import Entry, Representation
from tamis_edge.core.outbox import Outbox
from tamis_edge.core.topic_run import TopicRun
from tamis_joiner.core.running_query import RunningQuery

# As Any: what is replaced are names that it imports.
representation: Any = import_module("tamis.planning.link.representation")

Patches = list[tuple[Any, str, Any]]


def shed_covers() -> Patches:
    """Counted topics are shed: a tuple that isn't published covers others (`published_covers`)."""
    shed = Outbox._shed

    def mutant(self: Outbox, topic: TopicRun, *rest: Any) -> Any:
        plan, topic.plan = topic.plan, replace(topic.plan, counted=False)
        try:
            return shed(self, topic, *rest)
        finally:
            topic.plan = plan

    return [(Outbox, "_shed", mutant)]


def kept_for_new_queries() -> Patches:
    """An entry that begins to serve a new query keeps its representatives (`fresh_representatives`)."""
    represent = TopicRun._represent

    def mutant(self: TopicRun, since: int | None) -> None:
        known = (
            {_same(entry): one for entry, one in self._represented.items()} if since == self._since else {}
        )
        represent(self, since)
        self._represented = {entry: known.get(_same(entry), one) for entry, one in self._represented.items()}

    return [(TopicRun, "_represent", mutant)]


def _same(entry: Entry) -> Entry:
    return replace(entry, serves=0)


def repeats_dropped() -> Patches:
    """The joiner drops tuples whose places it has passed, as for queries that count (`repeats_taken`)."""
    return [(RunningQuery, "_repeatable", False)]


def commits_before_covers() -> Patches:
    """A commit doesn't wait until the covering tuples are safe (`covers_first`)."""
    return commit_passes_unsent()


def kept_after_loss() -> Patches:
    """Representatives are kept though the joiner has lost its state (`begins_with_joiner`)."""
    represent = TopicRun._represent

    def mutant(self: TopicRun, since: int | None) -> None:
        if since is not None:
            self._since = since
        represent(self, since)

    return [(TopicRun, "_represent", mutant)]


def other_side() -> Patches:
    """Edges keep the least value where the greatest is needed, and the other way round (`same_order`)."""
    begin = Representatives.__init__

    def mutant(self: Representatives, found: Representation, *more: Any) -> None:
        covers = tuple(replace(cover, least=not cover.least) for cover in found.covers)
        begin(self, replace(found, covers=covers), *more)

    return [(Representatives, "__init__", mutant)]


def rounded() -> Patches:
    """Edges compare DOUBLE values rounded to whole numbers (`same_order`)."""
    publish, as_numbers = Representatives.publish, row_store.as_numbers

    def coarse(vector: Any, codes: Any) -> Any:
        if vector.data.dtype == np.float64:
            vector = replace(vector, data=np.floor(vector.data))
        return as_numbers(vector, codes)

    def mutant(self: Representatives, *args: Any) -> Any:
        with patch.object(synopsis, "as_numbers", coarse):
            return publish(self, *args)

    return [(Representatives, "publish", mutant)]


def one_for_unequal() -> Patches:
    """Of conditions `!=` edges keep one tuple of each group (`all_sides`)."""
    return [(sent_tuples, "synopsis_of", Extremes)]


def first_occurrence() -> Patches:
    """The second occurrence of a stream in a self-join has no covers (`every_occurrence`)."""
    represented: Callable[..., Represented | NotRepresented] = representation.represented

    def mutant(*args: Any) -> Represented | NotRepresented:
        found = represented(*args)
        if isinstance(found, NotRepresented):
            return found
        stream_of = {source.alias: source.stream for source in args[0].sources}
        first = {stream_of[one.alias]: one for one in reversed(found.sources)}
        return replace(found, sources=tuple(first.values()))

    return [(representation, "represented", mutant)]


def nothing_beyond_most() -> Patches:
    """A shard with more keys than declared publishes none of their tuples (`more_keys`)."""
    publish = Representatives.publish

    def mutant(self: Representatives, *args: Any) -> Any:
        before = len(self)
        found = publish(self, *args)
        full = self._synopses is None and before
        return found[:0] if full else found

    return [(Representatives, "publish", mutant)]


# By rule, what breaks it.
RULES: dict[str, tuple[Callable[[], Patches], ...]] = {
    "published_covers": (shed_covers,),
    "fresh_representatives": (kept_for_new_queries,),
    "repeats_taken": (repeats_dropped,),
    "covers_first": (commits_before_covers,),
    "begins_with_joiner": (kept_after_loss,),
    "same_order": (other_side, rounded),
    "all_sides": (one_for_unequal,),
    "every_occurrence": (first_occurrence,),
    "more_keys": (nothing_beyond_most,),
}
MUTATIONS = {made.__name__: made for some in RULES.values() for made in some}


@contextmanager
def broken(name: str | None) -> Iterator[None]:
    """The product with a mutation; as it is for None."""
    with ExitStack() as stack:
        if name == "first_occurrence":
            stack.enter_context(patch.object(office, "_PROVEN", {}))  # it changes proofs
        for target, attribute, mutant in MUTATIONS[name]() if name else ():
            stack.enter_context(patch.object(target, attribute, mutant))
        yield
