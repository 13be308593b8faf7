"""Spans of event time in which edges shed retained tuples under overload (load shedding).

An alarm is over a span, and may be incomplete, if a shed tuple could have taken the place of one of its
tuples. For that, the shed tuple must be within the time bounds of another tuple of the alarm, or within the
omission interval of such a tuple, because a retained tuple stands for the omitted tuples around it. Only
spans that were reported before the alarm count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tamis.expressions.vectors import Mask
from tamis.operators.time_join.existence import row_inputs
from tamis.operators.time_join.time_bounds import UNBOUNDED, closure
from tamis.plan.model import Definition
from tamis_joiner.core.frontiers import Frontiers

# Spans of one topic in the state. With more, the two nearest spans become one: the state stays bounded, and
# too many alarms are marked rather than too few.
MAX_SPANS = 1_000

Span = tuple[int, int]  # first and last microsecond


class ShedSpans:
    """The spans of each topic, in ascending order and with gaps between them. `spans`: the result of
    `to_json`.
    """

    def __init__(self, spans: Mapping[str, Sequence[Sequence[int]]] | None = None) -> None:
        self._spans: dict[str, list[Span]] = {
            topic: [(first, last) for first, last in found] for topic, found in (spans or {}).items()
        }

    def add(self, topic: str, span: Span) -> None:
        """Add a span in which tuples of a topic were shed."""
        first, last = span
        apart: list[Span] = []
        for other in self._spans.get(topic, []):
            if other[1] + 1 < first or last + 1 < other[0]:
                apart.append(other)
            else:
                first, last = min(first, other[0]), max(last, other[1])
        spans = self._spans[topic] = sorted([*apart, (first, last)])
        if len(spans) > MAX_SPANS:
            gaps = [after[0] - before[1] for before, after in pairwise(spans)]
            at = gaps.index(min(gaps))
            spans[at : at + 2] = [(spans[at][0], spans[at + 1][1])]

    def overlapped(self, definition: Definition, times: NDArray[np.int64]) -> Mask:
        """A mask of the combinations that are over a span; `times` has the event times of the inputs of rows,
        of shape (inputs, combinations).
        """
        found: Mask = np.zeros(times.shape[1], np.bool_)
        if not any(source.topic in self._spans for source in definition.inputs):
            return found
        most = closure(definition)
        if most is None:
            return found
        rows = [definition.inputs.index(source) for source in row_inputs(definition)]
        for i, source in enumerate(definition.inputs):
            if source.topic in self._spans:
                spans = np.array(self._spans[source.topic], np.int64)
                first = (times - most[rows, i, None]).min(axis=0) - source.interval
                last = (times + most[i, rows, None]).max(axis=0) + source.interval
                at = np.searchsorted(spans[:, 1], first)
                near = at < len(spans)
                near[near] = spans[at[near], 0] <= last[near]
                found |= near
        return found

    def trim(self, definitions: Sequence[Definition], frontiers: Frontiers) -> None:
        """Remove the spans that can't affect a later alarm."""
        if not self._spans:
            return
        least: dict[str, int] = {}
        for definition in definitions:
            most = closure(definition)
            if most is None:
                continue
            # A later alarm has a tuple at or after some frontier. Its other tuples lie within the bounds of
            # that tuple, and a shed tuple within the bounds of these.
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
        """The spans by topic."""
        return self._spans
