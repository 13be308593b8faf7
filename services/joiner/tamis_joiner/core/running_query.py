"""One standing query of an output partition, with its synopses and its progress."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tamis.declarations.backfill import raw_name
from tamis.declarations.file_access import FileAccess
from tamis.errors import InputError, TamisError
from tamis.expressions.evaluate import holds
from tamis.operators.build import operator
from tamis.operators.contract import CountsLate, Rows, TakesPanes
from tamis.operators.time_join.filter_dispatch import Dispatch, FilterResults
from tamis.plan.model import Input, StandingQuery
from tamis.plan.nodes import ApplicationTime, Groups, gives_rows_once
from tamis.plan.wire import HINT
from tamis_joiner.core.query_progress import QueryProgress, TakenCuts
from tamis_joiner.core.records.cut_records import ArrivedCut
from tamis_joiner.core.records.envelopes import BEGINNING_OF_TIME, ProgressRecord
from tamis_joiner.core.records.tuple_columns import TupleColumns

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
# Rows, with the event times and the arrivals of the tuples that completed them.
Found = tuple[Rows, Ints, Ints | None] | None

# What operators raise whose node doesn't fit together: it names a column, source or place that isn't there.
_DAMAGE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, AssertionError, StopIteration)


@dataclass(frozen=True)
class ArrivedTuples:
    """Tuples of one topic in the order of their offsets. `dispatch`: the compiled filters of the standing
    queries that read the topic.
    """

    topic: str
    tuples: TupleColumns
    dispatch: Dispatch

    def passing(self, source: Input) -> Bools:
        """A mask of the tuples that pass the filter of an input. Raises FunctionError if a function that
        the filter calls has failed.
        """
        row = self.dispatch.find(source.filter)
        if row is None:
            # A running query keeps its first filter, which a later release may write in another form.
            count = len(self.tuples.times)
            columns = {("", name): column for name, column in self.tuples.columns.items()}
            return np.ones(count, np.bool_) if source.filter is None else holds(source.filter, columns, count)
        if row in self._held.failed:
            raise self._held.failed[row]
        found: Bools = self._held.found[row]
        return found

    @cached_property
    def _held(self) -> FilterResults:
        return self.dispatch.over(self.tuples.columns, len(self.tuples.times))


@contextmanager
def _node_of(query: StandingQuery) -> Iterator[None]:
    """Raises InputError for a node that doesn't fit together: a plan was damaged, or is of another release.
    It must stop its query alone.
    """
    try:
        yield
    except TamisError:
        raise
    except _DAMAGE as error:
        what = f"its operators don't fit together: {type(error).__name__}: {error}"
        raise InputError(what, where=f"{query.alert}@{query.version} of the plan", hint=HINT) from error


class RunningQuery:
    """A standing query with its synopses and its progress."""

    def __init__(self, query: StandingQuery, progress: QueryProgress, file_access: FileAccess) -> None:
        """Raises TamisError if the query can't be evaluated here."""
        self.query = query
        self.progress = progress
        # The version of the plan that replaced the query: tuples of that plan belong to its successor.
        self.until: int | None = None
        self.changed = True
        self.saved: bytes | None = None
        self._file_access = file_access
        self._build()

    def _build(self) -> None:
        with _node_of(self.query):
            self._evaluator = operator(self.query.node, self._file_access)
        self._late_counter = self._evaluator if isinstance(self._evaluator, CountsLate) else None

    @property
    def entries(self) -> int:
        """The number of live entries of the synopses."""
        return self._evaluator.entries()

    @property
    def size(self) -> int:
        """The size of the last dump in bytes."""
        return len(self.saved or b"")

    @property
    def late(self) -> int:
        """The number of tuples that arrived too late for at least one of the windows or rows to which they
        belong.
        """
        return self._late_counter.late if self._late_counter else 0

    def load(self, blob: bytes | None) -> None:
        """Continue from a dump; None leaves the query at its beginning."""
        if blob is not None:
            with _node_of(self.query):
                self._evaluator.load(blob)
            self.saved, self.changed = blob, False

    def dump(self) -> bytes:
        """The synopses as bytes, for `load`."""
        self.saved, self.changed = self._evaluator.dump(), False
        return self.saved

    def restore(self) -> None:
        """Go back to the last dump after an error. The tuples taken since then are not counted."""
        self._build()
        self.load(self.saved)

    def take(self, source: Input, arrived: ArrivedTuples) -> Found:
        """Take the tuples of one topic; return the rows that they complete."""
        # The filter comes first: tuples that a topic carries for other queries have positions in another
        # order.
        keep = arrived.passing(source)
        if not keep.any():
            return None
        tuples = arrived.tuples
        keep = keep & self._of_own_version(tuples.versions) & (tuples.positions >= 0)
        when = tuples.times if source.time else tuples.arrived
        for shard, cuts in self.progress.cuts.get(source.topic, {}).items():
            keep &= (tuples.shards != shard) | ~cuts.have(tuples.positions)
        at = np.flatnonzero(keep)
        if not self._repeatable:
            at = self._not_taken(source.topic, at, tuples)
        if len(at) == 0:
            return None
        self.changed = True
        self.progress.latest = max(self.progress.latest, int(when[at].max()))
        batch = {name: column.take(at) for name, column in tuples.columns.items()}
        with _node_of(self.query):
            rows = self._evaluator.take(raw_name(source.stream), batch, len(at))
        completed = at[rows.completed]
        return rows, when[completed], tuples.arrived[completed]

    @cached_property
    def _repeatable(self) -> bool:
        """True if edges may publish representatives of the inputs. Repeated tuples don't change the rows, and
        must be taken: each published tuple stands for others, also if the state knows only later ones.
        """
        node = self.query.node
        timed = isinstance(node, ApplicationTime)
        return gives_rows_once(node) and not timed and self.query.bound is not None

    def take_cut(self, cut: ArrivedCut) -> Found:
        """Take partial aggregates of a topic's tuples, unless they were taken before."""
        record, rows = cut.record, cut.rows
        if not self._of_own_version(np.array([record.version]))[0]:
            return None
        shards = self.progress.cuts.setdefault(cut.topic, {})
        known = shards.get(record.shard)
        taken = TakenCuts.of(record) if known is None else known.then(record)
        if known is not None and not known.fits(record):
            self.progress.disordered += 1
        if taken is None:
            return None
        shards[record.shard] = taken
        self.changed = True
        with _node_of(self.query):
            if not isinstance(self._evaluator, TakesPanes):
                raise InputError("the query can't take partial aggregates", where=cut.topic)
            self._evaluator.take_panes(rows, cut.grouping)
        return None

    def advance(self, source: Input, frontier: int) -> Found:
        """Advance a topic to its frontier; return the rows that this completes."""
        # Groups don't read the watermark. Nothing that they keep changes, so it needn't be written again.
        timed = source.time and not isinstance(self.query.node, Groups)
        if not timed or frontier <= self.progress.advanced.get(source.topic, BEGINNING_OF_TIME):
            return None
        self.progress.advanced[source.topic] = frontier
        self.changed = True
        with _node_of(self.query):
            rows = self._evaluator.advance(raw_name(source.stream), frontier)
        # The frontier of a stream that has ended is the end of time: its last rows get its last event time.
        latest = min(frontier, self.progress.latest)
        times = np.full(len(rows), latest) if rows.times is None else rows.times
        return rows, times, None

    def take_progress(self, topic: str, record: ProgressRecord) -> None:
        """Note up to which position all tuples of a shard have arrived."""
        if record.position is not None and self._of_own_version(np.array([record.version]))[0]:
            taken = self.progress.taken.setdefault(topic, {})
            taken[record.shard] = max(taken.get(record.shard, -1), record.position - 1)

    def _of_own_version(self, versions: Ints) -> Bools:
        found: Bools = versions >= self.query.version
        return found if self.until is None else found & (versions < self.until)

    def _not_taken(self, topic: str, at: Ints, tuples: TupleColumns) -> Ints:
        """The rows of `at` that weren't taken before; they count as taken from now on."""
        taken = self.progress.taken.setdefault(topic, {})
        keep = np.zeros(len(at), np.bool_)
        shards = tuples.shards[at]
        for shard in dict.fromkeys(shards.tolist()):
            of_shard = np.flatnonzero(shards == shard)
            positions = tuples.positions[at[of_shard]]
            reached = np.maximum.accumulate(np.append(taken.get(shard, -1), positions))
            keep[of_shard] = positions > reached[:-1]
            taken[shard] = int(reached[-1])
        return at[keep]
