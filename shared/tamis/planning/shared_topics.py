"""The topics of a plan, with what their readers need: of thousands a change costs what it touches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tamis.planning.crowds import TopicKey, Wish
from tamis.planning.entries import Entries, Reader
from tamis.planning.plan import TopicPlan
from tamis.planning.remembered import same_ends
from tamis.query.model import StreamDef


@dataclass(frozen=True, eq=False)
class Shared:
    """A shared topic, made of its readers and their wishes, which are in the same order. `columns`: how many
    readers need each; `counted`: how many are of standing queries.
    """

    plan: TopicPlan
    wishes: Sequence[Wish]
    readers: Sequence[Reader]
    entries: Entries
    columns: Counter[str]
    counted: int

    @staticmethod
    def unread(key: TopicKey) -> Shared:
        """A topic that nobody reads yet, without a name."""
        return Shared(TopicPlan("", key[1], (), ()), (), (), Entries(), Counter(), 0)

    def now(
        self, name: str, wishes: Sequence[Wish], reader: Callable[[Wish], Reader], stream: StreamDef
    ) -> Shared:
        """The topic with these wishes, of which most were there before."""
        first, last = same_ends(self.wishes, wishes)
        behind, ends = len(self.wishes) - last, len(wishes) - last
        gone, come = self.readers[first:behind], [reader(wish) for wish in wishes[first:ends]]
        columns, counted = self.columns.copy(), self.counted
        for one in gone:
            columns.subtract(one.source.columns)
            counted -= one.counted
        for one in come:
            columns.update(one.source.columns)
            counted += one.counted
        entries = self.entries.changed(
            [(wish.place, one) for wish, one in zip(self.wishes[first:behind], gone, strict=True)],
            [(wish.place, one) for wish, one in zip(wishes[first:ends], come, strict=True)],
        )
        plan = TopicPlan(
            name,
            self.plan.partition_key,
            tuple(column.name for column in stream.columns if columns[column.name]),
            entries.kept,
            counted=counted > 0,
        )
        readers = (*self.readers[:first], *come, *self.readers[behind:])
        return Shared(plan, wishes, readers, entries, columns, counted)
