"""One shared topic of a stream, as one shard serves it: its entries, and the union of what they retain."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from tamis.evaluation.dispatch import Bools
from tamis.expressions.evaluate import evaluate
from tamis.expressions.nodes import Expr
from tamis.expressions.opaque import FunctionError
from tamis.expressions.vectors import Columns, Vector
from tamis.omission.columns import Floats, Sides
from tamis.omission.stream import OmissionState
from tamis.omission.window_stream import WindowState
from tamis.planning.plan import Entry, TopicPlan
from tamis.planning.remembered import same_ends
from tamis.query.model import Window
from tamis.telemetry.logs import get_logger
from tamis_edge.core.keys import Int64s, KeyTable, MessageKeys
from tamis_edge.core.rows import Batch, Rows

_log = get_logger("edge.topic")

# Integers beyond it aren't exact as DOUBLE: two that differ could look equal to omission.
EXACT = 2**53


# A key of an entry: the entry's number, and behind it in so many bits the code of the key.
CODE_BITS = 32

# Interval, sides, greatest delay and window of an entry: those that agree in them are decided together.
Rule = tuple[int, Sides, int | None, Window | None]


@dataclass(frozen=True, slots=True)
class _Run:
    """An entry with omission. No other entry in the topic's life has its `number`; `value` and `key` are the
    numbers of its value and its omission key.
    """

    rule: Rule
    number: int
    value: int
    key: int


class _Together:
    """What holds the tuples of all entries of one rule: each key of each entry is a key of its own. `places`:
    of its entries among all.
    """

    def __init__(self, rule: Rule) -> None:
        interval, sides, max_delay, window = rule
        self.places: Int64s = np.empty(0, np.int64)
        self.state: OmissionState | WindowState
        if window is None:
            self.state = OmissionState(interval, sides, max_delay)
        else:
            self.state = WindowState(window.slide, window.size, sides, max_delay)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which tuples of a batch a topic is concerned with: `whole`, those of which all go out at once, and for
    each entry with omission those that it has to decide, of shape (entries, n).
    """

    whole: Bools
    deciding: Bools

    def any(self) -> Bools:
        """Those that the topic is concerned with at all."""
        found: Bools = self.whole | self.deciding.any(axis=0)
        return found

    def only(self, rows: Bools) -> Wanted:
        """The same for some rows."""
        return Wanted(self.whole & rows, self.deciding & rows)


class TopicRun:
    """Omission state of one topic. Ids are the shard's handles of tuples, int64 and ascending wherever they
    come in arrays.
    """

    _serials = itertools.count()

    def __init__(self, plan: TopicPlan, partitions: int) -> None:
        self.serial = next(self._serials)
        self.plan = replace(plan, entries=())
        self.keys = MessageKeys(partitions)
        self._next = 0
        self._runs: dict[Entry, _Run] = {}
        self._together: dict[Rule, _Together] = {}
        self._values: dict[Expr | None, int] = {}
        self._keys: dict[tuple[str, ...], int] = {}
        self._tables: dict[int, KeyTable] = {}
        self._arrange(lambda _: 0)

    def obey(self, plan: TopicPlan, row: Callable[[Expr | None], int]) -> Int64s:
        """Take up the topic's new entries, without brackets, and end those that are gone; what the latter
        hold is to be published. `row`: where a filter's tuples are in what `passes` gets.
        """
        before, now = self.plan.entries, plan.entries
        # Of thousands of entries most are the same objects.
        first, last = same_ends(before, now)
        came = [entry for entry in now[first : len(now) - last] if entry.interval > 0]
        still = set(came)
        gone = [
            entry for entry in before[first : len(before) - last] if entry.interval > 0 and entry not in still
        ]
        ended = [self._runs.pop(entry) for entry in gone]
        for entry in came:
            if entry not in self._runs:
                self._begin(entry)
        left = Counter(run.rule for run in self._runs.values())
        published = [self._end(run, alone=not left[run.rule]) for run in ended]
        self._together = {rule: group for rule, group in self._together.items() if left[rule]}
        self.plan = plan
        self._arrange(row)
        return self._noted(published)

    def _begin(self, entry: Entry) -> None:
        rule = entry.interval, entry.sides, entry.max_delay, entry.window
        self._together.setdefault(rule, _Together(rule))
        value = self._values.setdefault(entry.value, self._next)
        key = self._keys.setdefault(entry.omission_key, self._next)
        if key not in self._tables:
            self._tables[key] = self.keys if entry.omission_key == self.plan.partition_key else KeyTable()
        self._runs[entry] = _Run(rule, self._next, value, key)
        self._next += 1

    def _end(self, run: _Run, *, alone: bool) -> Int64s:
        """End an entry. `alone`: no other of its rule is left."""
        state = self._together[run.rule].state
        if alone:
            return np.unique(state.flush())
        return state.end(run.number << CODE_BITS, (run.number + 1) << CODE_BITS)

    def _arrange(self, row: Callable[[Expr | None], int]) -> None:
        """Put what is asked of all entries into columns."""
        runs = list(self._runs.values())
        # Of entries without omission only the union matters: none of them ever holds anything.
        whole = {row(entry.filter) for entry in self.plan.entries if entry.interval == 0}
        self._whole = np.array(sorted(whole), np.int64)
        self._filters = np.array([row(entry.filter) for entry in self._runs], np.int64)
        self._numbers = np.array([run.number for run in runs], np.int64)
        self._value_of = np.array([run.value for run in runs], np.int64)
        self._key_of = np.array([run.key for run in runs], np.int64)
        values, keys = set(self._value_of.tolist()), set(self._key_of.tolist())
        self._values = {expr: number for expr, number in self._values.items() if number in values}
        self._keys = {names: number for names, number in self._keys.items() if number in keys}
        self._tables = {number: self._tables[number] for number in keys}
        places: dict[Rule, list[int]] = {rule: [] for rule in self._together}
        for at, run in enumerate(runs):
            places[run.rule].append(at)
        for rule, group in self._together.items():
            group.places = np.array(places[rule], np.int64)

    def end(self) -> Int64s:
        """End all entries; what they hold is to be published."""
        held = [np.unique(group.state.flush()) for group in self._together.values()]
        self._runs, self._together = {}, {}
        return self._noted(held)

    def passes(self, batch: Batch, passing: Bools) -> Wanted:
        """The tuples that pass the filters of its entries. `passing`: by filter, where it holds.

        A tuple with NULL in the partition key joins nothing, so entries with omission, which serve joins, do
        without it. Without omission it may be the result of an alert over this stream alone.
        """
        whole = np.logical_or.reduce(passing[self._whole], axis=0)
        deciding = passing[self._filters]
        for name in self.plan.partition_key:
            null = batch.columns[name].null
            if null is not None:
                deciding &= ~null
        return Wanted(whole, deciding)

    def offer(self, ids: Int64s, batch: Batch, codes: Int64s, wanted: Wanted, now: int) -> Int64s:
        """Show tuples that aren't late to the entries that want them; returns those to be published whatever
        omission says. `codes`: of the partition key, where the topic is concerned.

        Some have no place in an order: their value is NULL, or not exact as DOUBLE.
        """
        at_once = [ids[wanted.whole]]
        for group in self._together.values():
            # One row for each entry that wants a tuple, tuple by tuple.
            mine = wanted.deciding if len(group.places) == len(self._runs) else wanted.deciding[group.places]
            rows, which = np.nonzero(mine.T)
            if not len(rows):
                continue
            entries = group.places[which]
            values, outside = self._compared(batch, rows, entries)
            if outside.any():
                at_once.append(ids[rows[outside]])
                rows, entries, values = rows[~outside], entries[~outside], values[~outside]
            keys = (self._numbers[entries] << CODE_BITS) + self._codes(batch, codes, rows, entries)
            group.state.offer(keys, batch.times[rows], values, ids[rows], now)
        return self._noted(at_once)

    def _compared(self, batch: Batch, rows: Int64s, entries: Int64s) -> tuple[Floats, Bools]:
        """What omission compares, and which of it has no place in an order."""
        values, outside = np.zeros(len(rows), np.float64), np.zeros(len(rows), np.bool_)
        columns = batch.view()
        known = {number: expr for expr, number in self._values.items()}
        for number, at in _by_number(self._value_of[entries]):
            expr = known[number]
            if expr is not None:
                value = _value(expr, columns, len(batch)).take(rows[at])
                beyond = np.zeros(len(at), np.bool_) if value.null is None else value.null
                if value.data.dtype.kind == "i":
                    beyond = beyond | (value.data > EXACT) | (value.data < -EXACT)
                values[at], outside[at] = value.data, beyond
        return values, outside

    def _codes(self, batch: Batch, codes: Int64s, rows: Int64s, entries: Int64s) -> Int64s:
        """The codes of omission keys."""
        found = np.empty(len(rows), np.int64)
        known = {number: names for names, number in self._keys.items()}
        for number, at in _by_number(self._key_of[entries]):
            table = self._tables[number]
            if table is self.keys:
                found[at] = codes[rows[at]]
            else:
                some, back = np.unique(rows[at], return_inverse=True)
                key = [batch.columns[name].take(some) for name in known[number]]
                found[at] = table.codes(key, len(some))[back]
        return found

    def decide(self, watermark: int, now: int) -> Int64s:
        """Decide what can be decided; returns what is to be published, each tuple once.

        What one entry publishes can settle ties in another, so all are asked until none publishes.
        """
        published: list[Int64s] = []
        again = True
        while again:
            again = False
            for group in self._together.values():
                ids = np.unique(group.state.decide(watermark, now).published)
                if len(ids):
                    published.append(ids)
                    for other in self._together.values():
                        if other is not group or len(group.places) > 1:
                            other.state.note_published(ids)
                    again = len(self._runs) > 1
        return _union(published)

    def held(self) -> tuple[Int64s, Int64s]:
        """Ids and event times of the undecided tuples; one that several entries hold comes once, ids
        ascending.
        """
        held = [group.state.held() for group in self._together.values()]
        if not held:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        ids, first = np.unique(np.concatenate([ids for ids, _ in held]), return_index=True)
        return ids, np.concatenate([times for _, times in held])[first]

    def forget_keys(self, rows: Rows) -> None:
        """Let go of keys of which neither an entry nor any of the shard's rows knows any more."""
        for table in {id(one): one for one in (self.keys, *self._tables.values())}.values():
            if table.grown:
                numbers = [number for number, one in self._tables.items() if one is table]
                mine = self._numbers[np.isin(self._key_of, numbers)]
                known = [group.state.key_codes() for group in self._together.values()]
                live = [keys[np.isin(keys >> CODE_BITS, mine)] & ((1 << CODE_BITS) - 1) for keys in known]
                table.forget(live + rows.codes(self.serial) if table is self.keys else live)

    def next_deadline(self) -> int | None:
        """When on the caller's clock `decide` has to be called even if nothing comes."""
        deadlines = [group.state.next_deadline() for group in self._together.values()]
        return min((at for at in deadlines if at is not None), default=None)

    def size(self) -> int:
        """How many tuples all entries remember, counted once for each entry."""
        return sum(group.state.size() for group in self._together.values())

    def _noted(self, groups: list[Int64s]) -> Int64s:
        ids = _union(groups)
        if len(ids):
            for group in self._together.values():
                group.state.note_published(ids)
        return ids


def _by_number(numbers: Int64s) -> Iterator[tuple[int, Int64s]]:
    """Each number, and where it stands."""
    if (numbers == numbers[:1]).all():
        yield from ((number, np.arange(len(numbers))) for number in numbers[:1].tolist())
        return
    order = np.argsort(numbers, kind="stable")
    found, first = np.unique(numbers[order], return_index=True)
    yield from zip(found.tolist(), np.split(order, first[1:]), strict=True)


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
