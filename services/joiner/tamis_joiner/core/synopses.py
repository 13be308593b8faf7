"""The tuples that one output partition holds: in memory as columns by topic, in the state as time slices.

A batch settles first, that is it lets go what nothing needed at the end of the batch before; so what is in
memory is never less than what the store held when the batch began.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from tamis.evaluation.key_codes import KeyCodes
from tamis.expressions.vectors import Mask
from tamis_joiner.core.blobs import tuples_blob, tuples_of
from tamis_joiner.core.decode import NOTHING_YET, Fresh
from tamis_joiner.core.frontiers import Frontiers
from tamis_joiner.core.live import Live, coded, conform, merge
from tamis_joiner.core.passed import Passed
from tamis_joiner.core.retention import needed
from tamis_joiner.core.scheme import Topic
from tamis_joiner.core.state import StateMap

# Codes of keys that are long gone are let go once there are this many more than live tuples.
SPARE_CODES = 100_000

# Name of a slice: (token of the write, bytes).
Index = Mapping[str, tuple[str, int]]


class Synopses:
    """The live tuples of each topic, sorted by (key, time); what the batch brought is marked new."""

    def __init__(self) -> None:
        self.live: dict[str, Live] = {}
        self._topics: dict[str, Topic] = {}
        self._codes = KeyCodes()
        self._passed: dict[str, Passed] = {}
        self._needed: dict[str, Mask] = {}
        self._slices: dict[str, tuple[str, int]] = {}
        self._trimmed_to: dict[str, int] = {}  # the frontiers by which memory was last trimmed
        self._changed: dict[str, set[int]] = {}  # numbers of the slices that this batch put tuples into

    # ---- what was there before

    @staticmethod
    def load(
        topics: dict[str, Topic],
        frontiers: Frontiers,
        slices: Index,
        state: StateMap,
        memory: Synopses | None,
    ) -> Synopses:
        """What the slices hold. `memory` is what this process remembers from another attempt or time under
        the same plan: only slices that have not been written since are taken from there.
        """
        self = Synopses()
        self._topics = topics
        self._slices = {name: (token, size) for name, (token, size) in slices.items()}
        kept: set[str] = set()
        if memory is not None:
            self._codes = memory._codes
            kept = self._remembered(memory, frontiers)
        for name, topic in topics.items():
            parts: list[Live] = []
            mine = [s for s in self._slices if s.startswith(topic.prefix)]
            same = [int(s[len(topic.prefix) :]) for s in mine if s in kept]
            if same and memory is not None:
                live = memory.live[name]
                parts.append(live.pick(np.isin(live.times // topic.width, same)).old())
            for slice_ in mine:
                if slice_ not in kept:
                    blob = state.get(slice_)
                    assert blob is not None  # named by the same commit
                    parts.append(coded(tuples_of(blob, topic.schema), topic.key, self._codes, new=False))
            if parts:
                self.live[name] = merge(parts)
        self.mark_needed(frontiers)
        self.settle(frontiers)
        return self

    def _remembered(self, memory: Synopses, frontiers: Frontiers) -> set[str]:
        """Names of slices that `memory` holds just as the store does.

        Its tuples are those of the write with that token, less what was trimmed since by its frontiers. At
        frontiers no further than the store's, the store's would have been trimmed as well.
        """
        if any(memory._trimmed_to.get(t, NOTHING_YET) > frontiers.of(t) for t in self._topics):
            return set()
        return {name for name, write in self._slices.items() if memory._slices.get(name) == write}

    def settle(self, frontiers: Frontiers) -> None:
        """Begin a batch: let go what nothing needed at the end of the last one; nothing is new."""
        self._changed = {}
        for name, mask in self._needed.items():
            if not mask.all():
                self.live[name] = self.live[name].pick(mask)
            self.live[name] = self.live[name].old()
        self._trimmed_to = {name: frontiers.of(name) for name in self._topics}
        if len(self._codes) > SPARE_CODES + 2 * sum(map(len, self.live.values())):
            self._codes = KeyCodes()
            for name, live in self.live.items():
                keys = [live.columns[column] for column in self._topics[name].key]
                self.live[name] = merge([replace(live, keys=self._codes.encode(keys, len(live)))])

    # ---- what a batch brings

    def fit(self, topics: dict[str, Topic], state: StateMap) -> None:
        """After a new plan: drop the slices of topics that are gone, and cut anew where the width changed."""
        self._topics = topics
        prefixes = {topic.prefix for topic in topics.values()}
        for slice_ in list(self._slices):
            if slice_.rsplit("/", 1)[0] + "/" not in prefixes:
                state.remove(slice_)
                del self._slices[slice_]
        for name in list(self.live):
            if name not in topics:
                del self.live[name]
                continue
            topic = topics[name]
            self.live[name] = conform(self.live[name], topic.schema)
            if not any(s.startswith(topic.prefix) for s in self._slices):
                numbers = np.unique(self.live[name].times // topic.width)
                self._changed.setdefault(name, set()).update(numbers.tolist())

    def take(self, arrived: Iterable[tuple[str, Fresh]]) -> set[str]:
        """Put in tuples by topic, in the order of their offsets: they alone are new now. Returns the topics
        that got any.
        """
        found: set[str] = set()
        for name, tuples in arrived:
            topic = self._topics[name]
            new = coded(tuples, topic.key, self._codes, new=True)
            if not len(new):
                continue
            parts = [new]
            if name in self.live:  # new tuples of a topic may come in several parts: all of them stay new
                before = self.live[name]
                parts.insert(0, before if name in found else before.old())
            live = self.live[name] = merge(parts)
            numbers = np.unique(live.times[live.new] // topic.width)
            self._changed.setdefault(name, set()).update(numbers.tolist())
            found.add(name)
        if found:
            for name in self.live.keys() - found:
                self.live[name] = self.live[name].old()
        return found

    def passed(self, name: str) -> Passed:
        """Which live tuples of a topic pass the filters of its dispatch."""
        live, dispatch = self.live[name], self._topics[name].dispatch
        found = self._passed.get(name)
        if found is None or found.live is not live or found.dispatch is not dispatch:
            found = self._passed[name] = Passed(dispatch, live)
        return found

    # ---- what it leaves behind

    def mark_needed(self, frontiers: Frontiers) -> dict[str, Counter[str]]:
        """Note what is needed now; returns live tuples by topic and definition."""
        counts = {}
        self._needed = {}
        for name in self.live:
            self._needed[name], live = needed(self.passed(name), self._topics[name].uses, frontiers)
            counts[name] = Counter(live)
        self._passed = {}  # as large as what it tells of
        return counts

    def write(self, state: StateMap, token: str) -> None:
        """Write the slices that changed, less what is not needed, and remove those that nothing needs."""
        for name, live in self.live.items():
            topic = self._topics[name]
            numbers = live.times // topic.width
            wanted = set(np.unique(numbers[self._needed[name]]).tolist())
            for slice_ in [s for s in self._slices if s.startswith(topic.prefix)]:
                if int(slice_[len(topic.prefix) :]) not in wanted:
                    state.remove(slice_)
                    del self._slices[slice_]
            for number in self._changed.get(name, set()) & wanted:
                blob = tuples_blob(live.pick(self._needed[name] & (numbers == number)), topic.schema)
                state.put(f"{topic.prefix}{number}", blob)
                self._slices[f"{topic.prefix}{number}"] = (token, len(blob))

    def tuples(self, name: str) -> int:
        """How many tuples of a topic are needed."""
        return int(self._needed[name].sum()) if name in self._needed else 0

    def bytes(self, name: str) -> int:
        """How many bytes the slices of a topic are."""
        prefix = self._topics[name].prefix
        return sum(size for slice_, (_, size) in self._slices.items() if slice_.startswith(prefix))

    def to_json(self) -> Index:
        """The slices as `load` takes them."""
        return self._slices
