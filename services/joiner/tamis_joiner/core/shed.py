"""Spans of event time of which edges shed retained tuples, and the alarms that may be incomplete over them.

An alarm is over a span where a shed tuple could have stood in for one of its tuples: one within the time
bounds of any other of its tuples, or within the omission interval of such a one, since a retained tuple
stands for those that were omitted beside it. Only what was told by then is known: a span that comes behind an
alarm doesn't mark it any more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tamis.evaluation.time_bounds import UNBOUNDED, closure
from tamis.expressions.vectors import Mask
from tamis.planning.plan import Definition
from tamis_joiner.core.frontiers import Frontiers

# Spans of a topic that are remembered apart. Beyond it the nearest two become one: rather too many alarms are
# marked than that state grows without bound.
MOST = 1_000

Span = tuple[int, int]  # first and last microsecond


class Shed:
    """The spans of each topic, ascending, none touching the next. `spans` is as `to_json` wrote it."""

    def __init__(self, spans: Mapping[str, Sequence[Sequence[int]]] | None = None) -> None:
        self._spans: dict[str, list[Span]] = {
            topic: [(first, last) for first, last in found] for topic, found in (spans or {}).items()
        }

    def add(self, topic: str, span: Span) -> None:
        """Of this span tuples were shed."""
        first, last = span
        apart: list[Span] = []
        for other in self._spans.get(topic, []):
            if other[1] + 1 < first or last + 1 < other[0]:
                apart.append(other)
            else:
                first, last = min(first, other[0]), max(last, other[1])
        spans = self._spans[topic] = sorted([*apart, (first, last)])
        if len(spans) > MOST:
            gaps = [after[0] - before[1] for before, after in pairwise(spans)]
            at = gaps.index(min(gaps))
            spans[at : at + 2] = [(spans[at][0], spans[at + 1][1])]

    def over(self, definition: Definition, times: NDArray[np.int64]) -> Mask:
        """Which combinations are over a span; `times` is of shape (inputs, combinations)."""
        found: Mask = np.zeros(times.shape[1], np.bool_)
        if not any(source.topic in self._spans for source in definition.inputs):
            return found
        most = closure(definition)
        if most is None:
            return found
        for i, source in enumerate(definition.inputs):
            if source.topic in self._spans:
                spans = np.array(self._spans[source.topic], np.int64)
                first = (times - most[:, i, None]).min(axis=0) - source.interval
                last = (times + most[i, :, None]).max(axis=0) + source.interval
                at = np.searchsorted(spans[:, 1], first)
                near = at < len(spans)
                near[near] = spans[at[near], 0] <= last[near]
                found |= near
        return found

    def trim(self, definitions: Sequence[Definition], frontiers: Frontiers) -> None:
        """Forget the spans that no alarm can be over any more."""
        if not self._spans:
            return
        least: dict[str, int] = {}
        for definition in definitions:
            most = closure(definition)
            if most is None:
                continue
            # An alarm that is still to come has a tuple at some frontier or behind it, its others lie within
            # the bounds of that one, and a shed one within the bounds of these.
            bounds = 2 * int(most.max()) if most.max() < UNBOUNDED else UNBOUNDED
            reach = bounds + max(source.interval for source in definition.inputs)
            first = min(frontiers.of(source.topic) for source in definition.inputs) - reach
            for source in definition.inputs:
                least[source.topic] = min(first, least.get(source.topic, first))
        for topic in list(self._spans):
            spans = [span for span in self._spans[topic] if topic in least and span[1] >= least[topic]]
            if spans:
                self._spans[topic] = spans
            else:
                del self._spans[topic]

    def to_json(self) -> Mapping[str, Sequence[Span]]:
        """Everything."""
        return self._spans
