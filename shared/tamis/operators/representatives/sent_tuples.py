"""Representatives at one shard: a tuple that passes an entry is published if no other stands for it.

A tuple that isn't published is covered, in every row of the query, by tuples of this shard that were
published before it. So the rows of the joiner are those over all tuples, after each tuple (docs/bounded.md,
"Representatives at edges"). Tuples of these topics are never shed: one that isn't published covers nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from tamis.expressions.nodes import columns
from tamis.expressions.vectors import Columns, Vector
from tamis.omission.columns import Int64s
from tamis.operators.representatives.of_cover import synopsis_of
from tamis.operators.representatives.synopsis import Synopsis, meeting
from tamis.plan.model import Representation
from tamis.plan.nodes import Cover
from tamis.telemetry.logs import get_logger

_log = get_logger("edge.representatives")


class Representatives:
    """Synopses of the tuples that one entry has published. They begin empty."""

    def __init__(self, representation: Representation, topic: str = "") -> None:
        """`topic`: for the log."""
        self._representation, self._topic = representation, topic
        self._synopses: list[tuple[Cover, Synopsis]] | None = [
            (cover, synopsis_of(cover, ())) for cover in representation.covers
        ]

    def __len__(self) -> int:
        return sum(len(synopsis) for _, synopsis in self._synopses or ())

    def publish(self, tuples: Mapping[str, Vector], passing: Int64s) -> Int64s:
        """The rows of tuples to publish of those that pass the entry's filter, which come in this order."""
        if self._synopses is None or not len(passing):
            return passing
        read: Columns = {("", name): tuples[name].take(passing) for name in self._read}
        published = np.zeros(len(passing), np.bool_)
        for cover, synopsis in self._synopses:
            at = np.flatnonzero(meeting(cover.conditions, read, len(passing)))
            own = {name: vector.take(at) for name, vector in read.items()}
            published[at[synopsis.change(own, len(at))]] = True
            synopsis.keep(())
        if len(self) > self._representation.most:
            # The joiner's bound is passed, too, and its metrics say so.
            self._synopses = None
            most = self._representation.most
            what = "the stream has more keys than it declares: every tuple is published"
            _log.error(what, topic=self._topic, most=most)
        return passing[published]

    @cached_property
    def _read(self) -> tuple[str, ...]:
        return tuple(
            dict.fromkeys(
                column.name
                for cover in self._representation.covers
                for expr in (*cover.equal, cover.value, *cover.unequal, *cover.conditions)
                if expr is not None
                for column in columns(expr)
            )
        )
