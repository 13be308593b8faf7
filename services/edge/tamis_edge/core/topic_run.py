"""One shared topic of a stream at one shard: its entries, and the union of the tuples that they retain."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tamis.expressions.nodes import Expr
from tamis.identity_diff import identity_diff
from tamis.messaging.schemas.tuple_schema import ValueSchema
from tamis.omission.columns import Floats, Int64s
from tamis.omission.exact_ranks import ExactRanks
from tamis.operators.representatives.sent_tuples import Representatives
from tamis.operators.time_join.filter_dispatch import Bools
from tamis.operators.time_join.key_table import KeyTable
from tamis.operators.time_join.tuple_entries import Matches, Offer, OmissionRule, compared, matches
from tamis.plan.model import Entry, TopicPlan
from tamis.telemetry.logs import get_logger
from tamis_edge.core.records import MessageKeys
from tamis_edge.core.rows import Batch, Rows


class SavedCalls:
    """Tuples that pass the filter of an alert which calls functions for retained tuples only, until they are
    published or omitted. Ids ascend in every array.
    """

    def __init__(self) -> None:
        self._undecided: Int64s = np.empty(0, np.int64)

    def add(self, ids: Int64s) -> None:
        """Add tuples; their ids are greater than all before."""
        if len(ids):
            self._undecided = np.concatenate([self._undecided, ids])

    def published(self, ids: Int64s) -> None:
        """Some tuples were published; others than those added don't count."""
        if len(self._undecided) and len(ids):
            self._undecided = np.setdiff1d(self._undecided, ids, assume_unique=True)

    def decided(self, held: Int64s) -> int:
        """The number of tuples that were omitted since the last call. `held`: the undecided ones."""
        if not len(self._undecided):
            return 0
        before = len(self._undecided)
        self._undecided = np.intersect1d(self._undecided, held, assume_unique=True)
        return before - len(self._undecided)


_log = get_logger("edge.topic")

# The key of an entry is the entry's number, followed by the code of the key in this many bits.
CODE_BITS = 32

# A value, and whether its exact values are compared.
_Compared = tuple[Expr | None, bool]


@dataclass(frozen=True, slots=True)
class _RunningEntry:
    """An entry with omission. Its `number` is never given to another entry of the topic. `value` and `key`
    are the numbers of its value and its omission key.
    """

    rule: OmissionRule
    number: int
    value: int
    key: int


class _Group:
    """The omission state of all entries with the same rule. Each key of each entry is a separate key in it.
    `positions`: the positions of these entries among all entries.
    """

    def __init__(self, rule: OmissionRule) -> None:
        self.interval = rule.interval
        # A tuple before this event time can't replace any tuple that comes.
        self.alive = -(2**63)
        self.values = ExactRanks()
        self.positions: Int64s = np.empty(0, np.int64)
        self.state = rule.state()


class TopicRun:
    """Omission state of one topic. Tuples have ids, which the shard gives them: int64, and ascending in every
    array.
    """

    _serials = itertools.count()

    def __init__(self, plan: TopicPlan, partitions: int, schema: ValueSchema | None = None) -> None:
        """`schema`: that of the topic's values; None for JSON."""
        self.serial = next(self._serials)
        self.schema = schema
        self.plan = replace(plan, entries=())
        self.keys = MessageKeys(partitions)
        self._next = 0
        self._runs: dict[Entry, _RunningEntry] = {}
        self._represented: dict[Entry, Representatives] = {}
        self._since: int | None = None  # `StreamPlan.representatives`
        self._groups: dict[OmissionRule, _Group] = {}
        self._values: dict[_Compared, int] = {}
        self._keys: dict[tuple[str, ...], int] = {}
        self._tables: dict[int, KeyTable] = {}
        self._before_calls: Int64s = np.empty(0, np.int64)
        self.saved_calls = SavedCalls()
        self._arrange(lambda _: 0)

    def obey(
        self,
        plan: TopicPlan,
        row: Callable[[Expr | None], int],
        before_calls: Sequence[Expr | None] = (),
        *,
        representatives: int | None = None,
    ) -> Int64s:
        """Use the topic's part of a plan; returns the tuples to publish.

        New entries start without brackets. Entries that the plan no longer has end, and the tuples that they
        held are published. `row`: the row of a filter in the argument of `matches`. `before_calls`: the
        filters of alerts that call functions for retained tuples only. `representatives`: as in `StreamPlan`.
        """
        before, now = self.plan.entries, plan.entries
        # Most of thousands of entries are the same objects as before.
        change = identity_diff(before, now)
        came = [entry for entry in change.added(now) if entry.interval > 0]
        still = set(came)
        gone = [entry for entry in change.removed(before) if entry.interval > 0 and entry not in still]
        ended = [self._runs.pop(entry) for entry in gone]
        for entry in came:
            if entry not in self._runs:
                self._begin(entry)
        left = Counter(run.rule for run in self._runs.values())
        published = [self._end(run, alone=not left[run.rule]) for run in ended]
        self._groups = {rule: group for rule, group in self._groups.items() if left[rule]}
        self.plan = plan
        self._represent(representatives)
        self._before_calls = np.array([row(filter_) for filter_ in before_calls], np.int64)
        self._arrange(row)
        return self._note_published(published)

    def _represent(self, since: int | None) -> None:
        """Begin the representatives of new entries; those of all entries if `since` is another one."""
        known = self._represented if since == self._since else {}
        self._since = since
        self._represented = {
            entry: known[entry] if entry in known else Representatives(entry.representation, self.plan.name)
            for entry in self.plan.entries
            if entry.representation is not None and since is not None
        }

    def _begin(self, entry: Entry) -> None:
        rule = OmissionRule.of(entry)
        self._groups.setdefault(rule, _Group(rule))
        value = self._values.setdefault((entry.value, entry.exact), self._next)
        key = self._keys.setdefault(entry.omission_key, self._next)
        if key not in self._tables:
            self._tables[key] = self.keys if entry.omission_key == self.plan.partition_key else KeyTable()
        self._runs[entry] = _RunningEntry(rule, self._next, value, key)
        self._next += 1

    def _end(self, run: _RunningEntry, *, alone: bool) -> Int64s:
        """End an entry. `alone`: no other entry with its rule is left."""
        state = self._groups[run.rule].state
        if alone:
            return np.unique(state.flush())
        return state.end(run.number << CODE_BITS, (run.number + 1) << CODE_BITS)

    def _arrange(self, row: Callable[[Expr | None], int]) -> None:
        """Put the numbers of all entries into columns."""
        runs = list(self._runs.values())
        # Entries without omission hold no tuples, so only their union matters.
        some = [entry for entry in self.plan.entries if entry.interval == 0]
        whole = {row(entry.filter) for entry in some if entry not in self._represented}
        self._whole = np.array(sorted(whole), np.int64)
        self._represented_rows = np.array([row(entry.filter) for entry in self._represented], np.int64)
        self._filters = np.array([row(entry.filter) for entry in self._runs], np.int64)
        self._null_keys = [entry.null_keys for entry in self._runs]
        self._numbers = np.array([run.number for run in runs], np.int64)
        self._value_of = np.array([run.value for run in runs], np.int64)
        self._key_of = np.array([run.key for run in runs], np.int64)
        values, keys = set(self._value_of.tolist()), set(self._key_of.tolist())
        self._values = {expr: number for expr, number in self._values.items() if number in values}
        self._keys = {names: number for names, number in self._keys.items() if number in keys}
        self._tables = {number: self._tables[number] for number in keys}
        places: dict[OmissionRule, list[int]] = {rule: [] for rule in self._groups}
        for at, run in enumerate(runs):
            places[run.rule].append(at)
        for rule, group in self._groups.items():
            group.positions = np.array(places[rule], np.int64)

    def release(self) -> Int64s:
        """Stop deciding on the held tuples and return them; the caller publishes them. The brackets stay."""
        return self._note_published([self.held()[0]])

    def end(self) -> Int64s:
        """End all entries and return the tuples that they held; the caller publishes them."""
        held = [np.unique(group.state.flush()) for group in self._groups.values()]
        self._runs, self._groups, self._represented = {}, {}, {}
        return self._note_published(held)

    def matches(self, batch: Batch, passing: Bools, failed: Collection[int] = ()) -> Matches:
        """The tuples that concern the entries. `passing`: the rows that pass each filter.

        `failed`: the filters that can't be evaluated, which all tuples pass. Their entries publish every
        tuple, since a tuple that doesn't really pass must not stand for one that does.
        """
        found = matches(
            self.plan.partition_key,
            batch.columns,
            passing[self._whole],
            passing[self._filters],
            self._null_keys,
        )
        represented = passing[self._represented_rows] if self._represented else None
        found = replace(found, represented=represented)
        if not failed:
            return found
        every, offered = found.published, found.offered
        if (unknown := np.isin(self._filters, list(failed))).any():
            every, offered = every | offered[unknown].any(axis=0), offered & ~unknown[:, None]
        if represented is not None and (unknown := np.isin(self._represented_rows, list(failed))).any():
            every = every | represented[unknown].any(axis=0)
            represented = represented & ~unknown[:, None]
        return Matches(every, offered, represented)

    def note_calls(self, ids: Int64s, matches: Matches, passing: Bools, late: Bools) -> None:
        """Note the tuples for which functions will be called unless they are omitted. Those that are `late`
        will be published.
        """
        if len(self._before_calls):
            self.saved_calls.add(ids[passing[self._before_calls].any(axis=0) & matches.any() & ~late])

    def offer(self, ids: Int64s, batch: Batch, codes: Int64s, matches: Matches, now: int) -> Int64s:
        """Offer tuples that aren't late to the entries that they match; returns those to publish at once.

        `codes`: the codes of the partition key, for tuples that concern the topic. A tuple whose value is
        NULL, or isn't an exact DOUBLE, has no place in the order of omission and is published at once.
        """
        at_once = [ids[matches.published]]
        if matches.represented is not None:
            for one, passing in zip(self._represented.values(), matches.represented, strict=True):
                at_once.append(ids[one.publish(batch.columns, np.flatnonzero(passing))])
        for group in self._groups.values():
            # One row for each match of a tuple and an entry, tuple by tuple.
            mine = (
                matches.offered
                if len(group.positions) == len(self._runs)
                else matches.offered[group.positions]
            )
            rows, which = np.nonzero(mine.T)
            if not len(rows):
                continue
            entries = group.positions[which]
            keys = (self._numbers[entries] << CODE_BITS) + self._codes(batch, codes, rows, entries)
            values, outside = self._compared(batch, rows, entries, keys, group)
            if outside.any():
                at_once.append(ids[rows[outside]])
                rows, keys, values = rows[~outside], keys[~outside], values[~outside]
            group.state.offer(keys, batch.times[rows], values, ids[rows], now)
        return self._note_published(at_once)

    def _compared(
        self, batch: Batch, rows: Int64s, entries: Int64s, keys: Int64s, group: _Group
    ) -> tuple[Floats, Bools]:
        """The numbers that omission compares, and the tuples that have no place in the order."""
        values, outside = np.zeros(len(rows), np.float64), np.zeros(len(rows), np.bool_)
        columns = batch.view()
        known = {number: expr for expr, number in self._values.items()}
        for number, at in _by_number(self._value_of[entries]):
            expr, exact = known[number]
            alive = np.full(len(at), group.alive, np.int64)
            offer = Offer(rows[at], keys[at], batch.times[rows[at]], alive)
            found = compared(expr, columns, len(batch), exact=exact, ranks=group.values, offer=offer)
            values[at], outside[at] = found.numbers, found.outside
            if found.error is not None:
                _log.error("a value can't be computed: every tuple is kept", error=str(found.error))
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
        """Decide on all tuples for which watermark and clock allow it; returns those to publish, each once.

        When one entry publishes a tuple, this can settle a tie in another entry. Therefore all entries are
        asked again until none of them publishes.
        """
        published: list[Int64s] = []
        again = True
        while again:
            again = False
            for group in self._groups.values():
                group.alive = max(group.alive, watermark - group.interval)
                group.values.forget(group.alive)
                ids = np.unique(group.state.decide(watermark, now).published)
                if len(ids):
                    published.append(ids)
                    self.saved_calls.published(ids)
                    for other in self._groups.values():
                        if other is not group or len(group.positions) > 1:
                            other.state.note_published(ids)
                    again = len(self._runs) > 1
        return _union(published)

    def held(self) -> tuple[Int64s, Int64s]:
        """Ids and event times of the undecided tuples, ascending by id. A tuple that several entries hold is
        listed once.
        """
        held = [group.state.held() for group in self._groups.values()]
        if not held:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        ids, first = np.unique(np.concatenate([ids for ids, _ in held]), return_index=True)
        return ids, np.concatenate([times for _, times in held])[first]

    def forget_keys(self, rows: Rows) -> None:
        """Forget the keys that no entry and no stored tuple uses any more."""
        for table in {id(one): one for one in (self.keys, *self._tables.values())}.values():
            if table.grown:
                numbers = [number for number, one in self._tables.items() if one is table]
                mine = self._numbers[np.isin(self._key_of, numbers)]
                known = [group.state.key_codes() for group in self._groups.values()]
                live = [keys[np.isin(keys >> CODE_BITS, mine)] & ((1 << CODE_BITS) - 1) for keys in known]
                table.forget(live + rows.codes(self.serial) if table is self.keys else live)

    def next_deadline(self) -> int | None:
        """The time on the caller's clock at which `decide` must be called, even if no tuple arrives."""
        deadlines = [group.state.next_deadline() for group in self._groups.values()]
        return min((at for at in deadlines if at is not None), default=None)

    def size(self) -> int:
        """The number of tuples that all entries remember; a tuple counts once for each entry."""
        represented = sum(map(len, self._represented.values()))
        return represented + sum(group.state.size() for group in self._groups.values())

    def _note_published(self, groups: list[Int64s]) -> Int64s:
        ids = _union(groups)
        self.saved_calls.published(ids)
        if len(ids):
            for group in self._groups.values():
                group.state.note_published(ids)
        return ids


def _by_number(numbers: Int64s) -> Iterator[tuple[int, Int64s]]:
    """Each distinct number and the positions at which it occurs."""
    if (numbers == numbers[:1]).all():
        yield from ((number, np.arange(len(numbers))) for number in numbers[:1].tolist())
        return
    order = np.argsort(numbers, kind="stable")
    found, first = np.unique(numbers[order], return_index=True)
    yield from zip(found.tolist(), np.split(order, first[1:]), strict=True)


def _union(groups: list[Int64s]) -> Int64s:
    if not groups:
        return np.empty(0, np.int64)
    return groups[0] if len(groups) == 1 else np.unique(np.concatenate(groups))
