"""Tuples of joins in one output partition: in memory as columns by topic, in the state as time slices.

A batch begins with `begin_batch`, which removes from memory the tuples that weren't needed at the end of the
previous batch. So memory never has fewer tuples than the state had when the batch began.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from tamis.expressions.vectors import Mask
from tamis.operators.time_join.key_codes import KeyCodes
from tamis_joiner.core.compiled_plan import Topic
from tamis_joiner.core.frontiers import Frontiers
from tamis_joiner.core.records.envelopes import BEGINNING_OF_TIME
from tamis_joiner.core.records.tuple_columns import TupleColumns
from tamis_joiner.core.state import StateMap, decode_tuples, encode_tuples
from tamis_joiner.core.tuples.filter_bitmaps import FilterBitmaps, PassingTuples
from tamis_joiner.core.tuples.retention import NOTHING_RETIRES, needed
from tamis_joiner.core.tuples.stored_tuples import (
    StoredTuples,
    distinct,
    merge,
    no_tuples,
    with_key_codes,
    with_schema,
)

# Key codes are assigned anew once there are this many more codes than twice the tuples: most of their keys
# then have no tuples any more.
SPARE_CODES = 100_000

# By name of a slice: the token of its last write, and its size in bytes.
Index = Mapping[str, tuple[str, int]]


class TupleStore:
    """The stored tuples of each topic, sorted by (key, time). Those that the batch added are marked new."""

    def __init__(self) -> None:
        self.tuples: dict[str, StoredTuples] = {}
        self._topics: dict[str, Topic] = {}
        self._codes = KeyCodes()
        self._bitmaps: dict[str, FilterBitmaps] = {}
        self._passing: dict[str, PassingTuples] = {}
        self._needed: dict[str, Mask] = {}
        # By replaced definition: needed tuples that were sent before the plan that replaced it.
        self.waiting: dict[str, int] = {}
        self._slices: dict[str, tuple[str, int]] = {}
        self._trimmed_to: dict[str, int] = {}  # the frontiers at the last `begin_batch`
        self._changed: dict[str, set[int]] = {}  # numbers of the slices that this batch added tuples to

    # ---- before a batch

    @staticmethod
    def load(
        topics: dict[str, Topic],
        frontiers: Frontiers,
        slices: Index,
        state: StateMap,
        cached: TupleStore | None,
    ) -> TupleStore:
        """The store that the slices of the state describe.

        `cached` is a store of this process under the same plan. It may be from a failed attempt or from an
        earlier time. Slices that haven't been written since are taken from it.
        """
        self = TupleStore()
        self._topics = topics
        self._slices = {name: (token, size) for name, (token, size) in slices.items()}
        valid: set[str] = set()
        if cached is not None:
            self._codes = cached._codes
            valid = self._valid_slices(cached, frontiers)
        for name, topic in topics.items():
            parts: list[StoredTuples] = []
            of_topic = [s for s in self._slices if s.startswith(topic.prefix)]
            numbers = [int(s[len(topic.prefix) :]) for s in of_topic if s in valid]
            if numbers and cached is not None:
                stored = cached.tuples[name]
                kept = stored.pick(np.isin(stored.times // topic.width, numbers))
                parts.append(kept.as_old().without_slots())
            for slice_ in of_topic:
                if slice_ not in valid:
                    blob = state.get(slice_)
                    assert blob is not None  # the same commit wrote the index
                    decoded = decode_tuples(blob, topic.schema)
                    parts.append(with_key_codes(decoded, topic.key, self._codes, new=False))
            if parts:
                self.tuples[name] = merge(parts)
        self.mark_needed(frontiers)
        self.begin_batch(frontiers)
        return self

    def _valid_slices(self, cached: TupleStore, frontiers: Frontiers) -> set[str]:
        """Names of slices whose tuples are the same in `cached` as in the state.

        `cached` has the tuples of the write with the same token, without those that its own frontiers have
        removed since. If these frontiers are no further than the state's, the state's slices would have lost
        the same tuples.
        """
        if any(cached._trimmed_to.get(t, BEGINNING_OF_TIME) > frontiers.of(t) for t in self._topics):
            return set()
        return {name for name, write in self._slices.items() if cached._slices.get(name) == write}

    def begin_batch(self, frontiers: Frontiers) -> None:
        """Remove the tuples that weren't needed at the end of the last batch. No tuple is new any more."""
        self._changed = {}
        for name, mask in self._needed.items():
            if not mask.all():
                self.tuples[name] = self.tuples[name].pick(np.flatnonzero(mask))
            self.tuples[name] = self.tuples[name].as_old()
            if name in self._bitmaps:
                self.tuples[name] = self._bitmaps[name].release(self.tuples[name])
        self._trimmed_to = {name: frontiers.of(name) for name in self._topics}
        if len(self._codes) > SPARE_CODES + 2 * sum(map(len, self.tuples.values())):
            self._codes = KeyCodes()
            for name, stored in self.tuples.items():
                keys = [stored.columns[column] for column in self._topics[name].key]
                self.tuples[name] = merge([replace(stored, keys=self._codes.encode(keys, len(stored)))])

    # ---- a batch

    def obey(self, topics: dict[str, Topic], state: StateMap) -> None:
        """Use the topics of a new plan: remove the slices of topics that it doesn't have. If the length of a
        topic's slices has changed, divide its tuples again.
        """
        self._topics = topics
        prefixes = {topic.prefix for topic in topics.values()}
        for slice_ in list(self._slices):
            if slice_.rsplit("/", 1)[0] + "/" not in prefixes:
                state.remove(slice_)
                del self._slices[slice_]
        for name in list(self.tuples):
            if name not in topics:
                del self.tuples[name]
                self._bitmaps.pop(name, None)
                continue
            topic = topics[name]
            self.tuples[name] = with_schema(self.tuples[name], topic.schema)
            if not any(s.startswith(topic.prefix) for s in self._slices):
                self._changed.setdefault(name, set()).update(
                    distinct(self.tuples[name].times // topic.width).tolist()
                )

    def add(self, arrived: Iterable[tuple[str, TupleColumns]]) -> set[str]:
        """Add tuples by topic, in the order of their offsets. After the call only these are new. Returns the
        topics that got tuples.
        """
        found: set[str] = set()
        for name, tuples in arrived:
            topic = self._topics[name]
            new = with_key_codes(tuples, topic.key, self._codes, new=True)
            if not len(new):
                continue
            parts = [new]
            if name in self.tuples:  # the tuples of a topic may come in several parts: all of them stay new
                before = self.tuples[name]
                parts.insert(0, before if name in found else before.as_old())
            stored = self.tuples[name] = merge(parts)
            self._changed.setdefault(name, set()).update(
                distinct(stored.times[stored.new] // topic.width).tolist()
            )
            found.add(name)
        if found:
            for name in self.tuples.keys() - found:
                self.tuples[name] = self.tuples[name].as_old()
        return found

    def settle(self) -> None:
        """No tuple is new any more: all queries have been evaluated over the new ones."""
        for name, stored in self.tuples.items():
            if stored.new.any():
                self.tuples[name] = stored.as_old()

    def held(self, name: str) -> StoredTuples:
        """The stored tuples of a topic, none if no tuple has arrived yet."""
        return self.tuples[name] if name in self.tuples else no_tuples(self._topics[name].schema)

    def filters(self, name: str) -> PassingTuples:
        """The results of a topic's filters for its stored tuples."""
        stored, dispatch = self.tuples[name], self._topics[name].dispatch
        found, bitmaps = self._passing.get(name), self._bitmaps.get(name)
        if found is not None and found.tuples is stored and found.bitmaps.dispatch is dispatch:
            return found
        if bitmaps is None or bitmaps.dispatch is not dispatch or bitmaps.failed:
            # A function that failed may not fail again.
            bitmaps = self._bitmaps[name] = FilterBitmaps(dispatch)
            stored = stored.without_slots()
        stored = self.tuples[name] = bitmaps.evaluate(stored)
        found = self._passing[name] = PassingTuples(bitmaps, stored)
        return found

    # ---- after a batch

    def mark_needed(
        self, frontiers: Frontiers, retiring: Mapping[str, int] = NOTHING_RETIRES
    ) -> dict[str, Counter[str]]:
        """Mark the tuples that are needed from now on. Returns their number, by topic and definition.

        `retiring`: for each replaced definition, the version of the plan that replaced it.
        """
        counts = {}
        self._needed = {}
        self.waiting = dict.fromkeys(retiring, 0)
        for name in self.tuples:
            groups = self._topics[name].retention
            self._needed[name], by_definition, waiting = needed(
                self.filters(name), groups, frontiers, retiring
            )
            counts[name] = Counter(by_definition)
            for definition, count in waiting.items():
                self.waiting[definition] += count
        self._passing = {}
        return counts

    def write(self, state: StateMap, token: str) -> None:
        """Write the needed tuples of the slices that have changed; remove slices without needed tuples."""
        for name, stored in self.tuples.items():
            topic = self._topics[name]
            rows = np.flatnonzero(self._needed[name])
            numbers = stored.times[rows] // topic.width
            wanted = set(distinct(numbers).tolist())
            for slice_ in [s for s in self._slices if s.startswith(topic.prefix)]:
                if int(slice_[len(topic.prefix) :]) not in wanted:
                    state.remove(slice_)
                    del self._slices[slice_]
            for number in self._changed.get(name, set()) & wanted:
                blob = encode_tuples(stored.pick(rows[numbers == number]), topic.schema)
                state.put(f"{topic.prefix}{number}", blob)
                self._slices[f"{topic.prefix}{number}"] = (token, len(blob))

    def count(self, name: str) -> int:
        """The number of needed tuples of a topic."""
        return int(self._needed[name].sum()) if name in self._needed else 0

    def keys(self, name: str) -> int:
        """The number of keys of a topic's needed tuples. NULL counts as one."""
        if name not in self._needed:
            return 0
        keys = self.tuples[name].keys[self._needed[name]]  # equal ones are beside each other
        return int(np.count_nonzero(keys[1:] != keys[:-1])) + min(len(keys), 1)

    def bytes(self, name: str) -> int:
        """The size of a topic's slices."""
        prefix = self._topics[name].prefix
        return sum(size for slice_, (_, size) in self._slices.items() if slice_.startswith(prefix))

    def to_json(self) -> Index:
        """The index of the slices, for `load`."""
        return self._slices
