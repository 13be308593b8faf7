"""One shared topic of a stream, as one shard serves it: its entries, and the union of what they retain."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tamis.expressions.evaluate import evaluate
from tamis.expressions.nodes import Expr
from tamis.expressions.opaque import FunctionError
from tamis.expressions.vectors import Columns, Vector
from tamis.omission.stream import OmissionState
from tamis.omission.window_stream import WindowState
from tamis.planning.plan import Entry, TopicPlan
from tamis.telemetry.logs import get_logger
from tamis_edge.core.dispatch import Bools
from tamis_edge.core.keys import Int64s, KeyTable, MessageKeys
from tamis_edge.core.rows import Batch, Rows

_log = get_logger("edge.topic")

# Integers beyond it aren't exact as DOUBLE: two that differ could look equal to omission.
EXACT = 2**53


@dataclass(frozen=True, slots=True)
class _Run:
    state: OmissionState | WindowState
    keys: KeyTable


def _state(entry: Entry) -> OmissionState | WindowState:
    """What holds an entry's tuples, without brackets."""
    if entry.window is None:
        return OmissionState(entry.interval, entry.sides, entry.max_delay)
    return WindowState(entry.window.slide, entry.window.size, entry.sides, entry.max_delay)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which tuples of a batch a topic is concerned with: `whole`, those of which all go out at once, and for
    each entry with omission, in the topic's order, those that it has to decide.
    """

    whole: Bools
    deciding: Sequence[Bools]

    def any(self) -> Bools:
        """Those that the topic is concerned with at all."""
        out = self.whole.copy()
        for mask in self.deciding:
            out |= mask
        return out

    def only(self, rows: Bools) -> Wanted:
        """The same for some rows."""
        return Wanted(self.whole & rows, [mask & rows for mask in self.deciding])


class TopicRun:
    """Omission state of one topic. Ids are the shard's handles of tuples, int64 and ascending wherever they
    come in arrays.
    """

    _serials = itertools.count()

    def __init__(self, plan: TopicPlan, partitions: int) -> None:
        self.serial = next(self._serials)
        self.plan = plan
        self.keys = MessageKeys(partitions)
        self._runs: dict[Entry, _Run] = {}
        self._whole = np.empty(0, np.int64)
        self._filters: list[int] = []
        self._omission_keys: dict[tuple[str, ...], KeyTable] = {plan.partition_key: self.keys}

    def obey(self, plan: TopicPlan, filters: Mapping[Expr | None, int]) -> Int64s:
        """Take up the topic's new entries, without brackets, and end those that are gone; what the latter
        hold is to be published. `filters`: the rows of their filters in what `passes` gets.
        """
        deciding = [entry for entry in plan.entries if entry.interval > 0]
        kept = set(deciding)
        ended = [self._runs.pop(entry) for entry in list(self._runs) if entry not in kept]
        self.plan = plan
        # Of entries without omission only the union matters: none of them ever holds anything.
        whole = {entry.filter for entry in plan.entries if entry.interval == 0}
        self._whole = np.array(sorted(filters[filter_] for filter_ in whole), np.int64)
        for entry in deciding:
            if entry not in self._runs:
                table = self._omission_keys.setdefault(entry.omission_key, KeyTable())
                self._runs[entry] = _Run(_state(entry), table)
        self._filters = [filters[entry.filter] for entry in self._runs]
        used = {plan.partition_key, *(entry.omission_key for entry in deciding)}
        self._omission_keys = {key: table for key, table in self._omission_keys.items() if key in used}
        return self._noted([run.state.flush() for run in ended])

    def end(self) -> Int64s:
        """End all entries; what they hold is to be published."""
        held = [run.state.flush() for run in self._runs.values()]
        self._runs = {}
        return self._noted(held)

    def passes(self, batch: Batch, passing: Bools) -> Wanted:
        """The tuples that pass the filters of its entries. `passing`: by filter, where it holds.

        A tuple with NULL in the partition key joins nothing, so entries with omission, which serve joins, do
        without it. Without omission it may be the result of an alert over this stream alone.
        """
        keyed = np.ones(len(batch), np.bool_)
        for name in self.plan.partition_key:
            null = batch.columns[name].null
            if null is not None:
                keyed &= ~null
        whole = np.logical_or.reduce(passing[self._whole], axis=0)
        return Wanted(whole, [passing[row] & keyed for row in self._filters])

    def offer(self, ids: Int64s, batch: Batch, codes: Int64s, wanted: Wanted, now: int) -> Int64s:
        """Show tuples that aren't late to the entries that want them; returns those to be published whatever
        omission says. `codes`: of the partition key, where the topic is concerned.

        Some have no place in an order: their value is NULL, or not exact as DOUBLE.
        """
        at_once = [ids[wanted.whole]]
        columns = batch.view()
        for (entry, run), mask in zip(self._runs.items(), wanted.deciding, strict=True):
            if not mask.any():
                continue
            rows = np.flatnonzero(mask)
            values = np.zeros(len(batch), np.float64)
            if entry.value is not None:
                value = _value(entry.value, columns, len(batch))
                outside = np.zeros(len(batch), np.bool_) if value.null is None else value.null
                if value.data.dtype.kind == "i":
                    outside = outside | (value.data > EXACT) | (value.data < -EXACT)
                values = value.data.astype(np.float64)
                if outside.any():
                    at_once.append(ids[mask & outside])
                    rows = np.flatnonzero(mask & ~outside)
            if run.keys is self.keys:
                key_codes = codes[rows]
            else:
                key = [batch.columns[name].take(rows) for name in entry.omission_key]
                key_codes = run.keys.codes(key, len(rows))
            run.state.offer(key_codes, batch.times[rows], values[rows], ids[rows], now)
        return self._noted(at_once)

    def decide(self, watermark: int, now: int) -> Int64s:
        """Decide what can be decided; returns what is to be published, each tuple once.

        What one entry publishes can settle ties in another, so all are asked until none publishes.
        """
        published: list[Int64s] = []
        again = True
        while again:
            again = False
            for run in self._runs.values():
                ids = run.state.decide(watermark, now).published
                if len(ids):
                    published.append(ids)
                    for other in self._runs.values():
                        if other is not run:
                            other.state.note_published(ids)
                    again = len(self._runs) > 1
        return _union(published)

    def held(self) -> tuple[Int64s, Int64s]:
        """Ids and event times of the undecided tuples; one that several entries hold comes once, ids
        ascending.
        """
        held = [run.state.held() for run in self._runs.values()]
        if not held:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        ids, first = np.unique(np.concatenate([ids for ids, _ in held]), return_index=True)
        return ids, np.concatenate([times for _, times in held])[first]

    def forget_keys(self, rows: Rows) -> None:
        """Let go of keys of which neither an entry nor any of the shard's rows knows any more."""
        for table in self._omission_keys.values():
            if table.grown:
                live = [run.state.key_codes() for run in self._runs.values() if run.keys is table]
                table.forget(live + rows.codes(self.serial) if table is self.keys else live)

    def next_deadline(self) -> int | None:
        """When on the caller's clock `decide` has to be called even if nothing comes."""
        deadlines = [run.state.next_deadline() for run in self._runs.values()]
        return min((at for at in deadlines if at is not None), default=None)

    def size(self) -> int:
        """How many tuples all entries remember, counted once for each entry."""
        return sum(run.state.size() for run in self._runs.values())

    def _noted(self, groups: list[Int64s]) -> Int64s:
        ids = _union(groups)
        if len(ids):
            for run in self._runs.values():
                run.state.note_published(ids)
        return ids


def _value(expr: Expr, columns: Columns, count: int) -> Vector:
    """What omission compares; NULL, which keeps every tuple, where a function of Python fails."""
    try:
        return evaluate(expr, columns, count)
    except FunctionError as error:
        _log.error("a value can't be computed: every tuple is kept", error=str(error))
        return Vector(np.zeros(count), np.ones(count, np.bool_))


def _union(groups: list[Int64s]) -> Int64s:
    if not groups:
        return np.empty(0, np.int64)
    return groups[0] if len(groups) == 1 else np.unique(np.concatenate(groups))
