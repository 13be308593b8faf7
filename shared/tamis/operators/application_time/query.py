"""Queries in application time: their SELECTs, alternatives, and the entries that each keeps.

Tuples wait until the watermarks of all streams have passed them, and are then taken in order of time.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import orjson

from tamis.declarations.file_access import FileAccess
from tamis.difference_bounds import Bound
from tamis.expressions.evaluate import evaluate, holds
from tamis.expressions.nodes import Expr, aliases
from tamis.expressions.vectors import Vector
from tamis.operators.application_time.arrivals import TimedQuery
from tamis.operators.application_time.evaluator import Condition, Evaluator
from tamis.operators.application_time.store import Entry, Shown
from tamis.operators.application_time.usable_rows import UsableRows, with_tables
from tamis.operators.contract import Batch, Rows
from tamis.operators.kept_columns import KeptColumns, Values, kept_columns
from tamis.operators.row_store import DistinctRows
from tamis.operators.state import number_from_text, number_to_text, pack_state, unpack_state
from tamis.operators.tables import table_rows
from tamis.operators.tuple_values import Numbers, numbers, passing
from tamis.plan import nodes
from tamis.recordings.typed import Recording

Nodes = list[Bound | None]  # the values of a tuple at the nodes of an alternative

_NEVER = -(1 << 63)
# Time, number, stream, the values that each SELECT keeps, and which takers it belongs to.
Waiting = tuple[int, int, str, tuple[Values, ...], list[int]]
Taker = tuple[int, int, int]  # a SELECT, its alternative, the occurrence
Found = tuple[int, dict[str, Values], int]  # a SELECT, tuples by alias, and how often they make a row


class Branch:
    """One alternative of a SELECT, with its evaluator. `rows`: those of tables by occurrence."""

    def __init__(
        self,
        node: nodes.Alternative,
        matching: nodes.Matching,
        joined: tuple[TimedQuery, Mapping[int, UsableRows]],
        relations: Mapping[str, Recording],
        kept: KeptColumns,
    ) -> None:
        timed, rows_of = joined
        self.query, self.kept = timed.query, kept
        self.conditions = node.conditions
        self.stands = dict(node.stands)
        self._codes = matching.numbers
        query = self.query
        joins = [Condition(self._occurrences(expr), self._hold(expr)) for expr in matching.joins]
        self.evaluator = Evaluator(timed, joins)
        for occurrence, rows in rows_of.items():
            relation = relations[query.streams[occurrence]]
            shown = kept.values(query.streams[occurrence], relation.columns, len(relation))
            for at, place in enumerate(rows.places):
                values: list[Bound | None] = [None] * query.size
                for number, own in rows.values.items():
                    values[number] = own[at]
                self.evaluator.add_relation_row(occurrence, values, shown[place])

    def values(self, occurrence: int, batch: Batch, rows: int) -> list[Nodes]:
        """The values of tuples at the nodes of an occurrence."""
        columns: list[Numbers | None] = [None] * self.query.size
        for node in self.query.own(occurrence):
            columns[node] = numbers(batch[self.query.nodes[node - 1].column], self._codes)
        return [[None if c is None else c[row] for c in columns] for row in range(rows)]

    def of_kept(self, occurrence: int, kept: Values) -> Nodes:
        """The values of a tuple that is kept."""
        (found,) = self.values(occurrence, self.kept.vectors(self.query.streams[occurrence], [kept]), 1)
        return found

    def dumped(self) -> list[Any]:
        """All entries, as JSON: for each part its combinations."""
        return [
            [list(members), [[[one.shown[x] for x in members], number_to_text(one.count)] for one in store]]
            for members, store in self.evaluator.stores.items()
        ]

    def restore(self, dumped: Sequence[Any]) -> None:
        """Restore all entries."""
        for own, combinations in dumped:
            members = tuple(own)
            for shown, count in combinations:
                every: list[Shown] = [None] * len(self.query.streams)
                values: list[Bound | None] = [None] * self.query.size
                for occurrence, one in zip(members, shown, strict=True):
                    every[occurrence] = tuple(one)
                    found = self.of_kept(occurrence, tuple(one))
                    for node in self.query.own(occurrence):
                        values[node] = found[node]
                self.evaluator.restore(members, Entry(values, every, int(number_from_text(count))))

    def _occurrences(self, expr: Expr) -> frozenset[int]:
        return frozenset(self.query.aliases.index(self.stands.get(alias, alias)) for alias in aliases(expr))

    def _hold(self, expr: Expr) -> Any:
        def hold(shown: Sequence[Shown]) -> bool:
            columns = {}
            for alias in aliases(expr):
                occurrence = self.query.aliases.index(self.stands.get(alias, alias))
                one = whole(shown[occurrence])
                vectors = self.kept.vectors(self.query.streams[occurrence], [one])
                columns.update({(alias, name): vector for name, vector in vectors.items()})
            return bool(holds(expr, columns, 1)[0])

        return hold


class Select:
    """One SELECT of the query."""

    def __init__(
        self,
        node: nodes.TimedMatching,
        times: Mapping[str, str],
        relations: Mapping[str, Recording],
    ) -> None:
        self.node = node
        self.source = dict(node.sources)
        self.kept = kept_columns(node.kept)
        self._relations = {name: relations[name] for name in self.source.values() if name in relations}
        codes = node.matching.numbers
        arrivals: dict[str, tuple[str | None, None]] = {
            name: (time or None, None) for name, time in times.items()
        }
        self.branches = []
        for one in node.matching.alternatives:
            closure = one.conjunction.closure()
            assert closure is not None, "an alternative doesn't contradict itself"
            joined = with_tables(
                one.conjunction, closure, one.conditions, codes=codes, arrivals=arrivals, relations=relations
            )
            if joined is not None:
                self.branches.append(Branch(one, node.matching, joined, relations, self.kept))

    def columns(self, found: Mapping[str, Sequence[Values]], count: int) -> list[Vector]:
        """The columns of SELECT, for rows that consist of these tuples."""
        made = {
            (alias, name): vector
            for alias, kept in found.items()
            for name, vector in self.kept.vectors(self.source[alias], kept).items()
        }
        return [evaluate(expr, made, count) for _, expr in self.node.select]

    def form(self) -> list[Any]:
        """The form that a state must fit; the rows of static relations are part of it."""
        rows = {
            name: hashlib.sha256(
                orjson.dumps(self.kept.values(name, relation.columns, len(relation)))
            ).hexdigest()
            for name, relation in self._relations.items()
        }
        return [len(self.branches), dict(sorted(self.kept.names.items())), rows]


def whole(shown: Shown) -> Values:
    """The values of the tuples of a row, which has one tuple of every source."""
    assert shown is not None, "a row has a tuple of every source"
    return shown  # type: ignore[return-value]


class ApplicationTimeQuery:
    """A query in application time. `late` counts the tuples that came after the watermarks of all streams had
    passed them, and so are in no row.
    """

    def __init__(self, node: nodes.ApplicationTime, file_access: FileAccess) -> None:
        """Raises as `table_rows`."""
        self._node = node
        self._given = DistinctRows() if node.distinct else None
        self._time = dict(node.streams)
        relations = {table.name: table_rows(table, file_access) for table in node.tables}
        self._selects = [Select(member, self._time, relations) for member in node.members]
        self._own = [DistinctRows() if one.distinct and not node.distinct else None for one in node.members]
        self.streams = frozenset(self._time)
        self._takers: dict[str, list[Taker]] = {name: [] for name in self.streams}
        for number, select in enumerate(self._selects):
            for at, branch in enumerate(select.branches):
                for occurrence, name in enumerate(branch.query.streams):
                    if name in self.streams:
                        self._takers[name].append((number, at, occurrence))
        self._watermarks = {name: _NEVER for name, time in self._time.items() if time}
        self._clock = _NEVER
        self._waiting: list[Waiting] = []
        self._nodes: dict[int, list[Nodes]] = {}  # of what waits, by its number, as each taker has it
        self._came = 0
        self.late = 0

    def take(self, stream: str, batch: Batch, rows: int) -> Rows:
        """Keep tuples with event time until the watermarks pass them; those behind the watermarks of all
        streams are late and dropped. Tuples without event time are taken at once; returns the rows that they
        complete.
        """
        if stream not in self.streams or not rows:
            return self._rows([], [])
        takers = self._takers[stream]
        belongs = [self._passing(taker, batch, rows) for taker in takers]
        values = [
            select.kept.values(stream, batch, rows) if stream in select.kept.names else []
            for select in self._selects
        ]
        numbered = [self._branch(taker).values(taker[2], batch, rows) for taker in takers]
        time = self._time[stream]
        if not time:
            combinations: list[Any] = []
            completed: list[int] = []
            for row in range(rows):
                for at, taker in enumerate(takers):
                    if belongs[at][row]:
                        made = list(self._push(taker, numbered[at][row], values[taker[0]][row]))
                        combinations += made
                        completed += [row] * len(made)
            return self._rows(combinations, completed)
        times = batch[time].data
        behind = times < self._clock
        if behind.any():
            self.late += int(np.count_nonzero(behind & np.any(belongs, axis=0)))
            belongs = [own & ~behind for own in belongs]
        for row in range(rows):
            of = [at for at in range(len(takers)) if belongs[at][row]]
            if of:
                self._came += 1
                kept = tuple(own[row] if own else () for own in values)
                self._nodes[self._came] = [numbered[at][row] for at in of]
                heapq.heappush(self._waiting, (int(times[row]), self._came, stream, kept, of))
        return self._rows([], [])

    def advance(self, stream: str, watermark: int) -> Rows:
        """Take the waiting tuples that the watermarks of all streams have passed, in order of event time;
        returns the rows that they complete, with the event times of the tuples that completed them.
        """
        if stream not in self._watermarks or watermark <= self._watermarks[stream]:
            return self._rows([], [])
        self._watermarks[stream] = watermark
        clock = min(self._watermarks.values())
        combinations: list[Found] = []
        times: list[int] = []
        while self._waiting and self._waiting[0][0] < clock:
            time, came, name, values, of = heapq.heappop(self._waiting)
            self._advance(time)
            for at, own in zip(of, self._nodes.pop(came), strict=True):
                taker = self._takers[name][at]
                combinations += self._push(taker, own, values[taker[0]])
            times += [time] * (len(combinations) - len(times))
        self._advance(clock)
        return self._rows(combinations, [-1] * len(combinations), times)

    def entries(self) -> int:
        """The number of entries of all alternatives, waiting tuples, and rows that DISTINCT remembers."""
        given = sum(len(one.rows) for one in (self._given, *self._own) if one is not None)
        return given + len(self._waiting) + sum(one.evaluator.entries for one in self._branches())

    def dump(self) -> bytes:
        """The watermarks, waiting tuples, entries and rows that DISTINCT remembers, as JSON."""
        kept = {
            "clock": self._clock,
            "watermarks": self._watermarks,
            "came": self._came,
            "late": self.late,
            "waiting": sorted(self._waiting),
            "entries": [one.dumped() for one in self._branches()],
            "given": [None if one is None else one.dumped() for one in (self._given, *self._own)],
        }
        return pack_state(self._form(), kept)

    def load(self, state: bytes) -> None:
        """Restore a dumped state. Raises RefusedError for the state of another query or version."""
        kept = unpack_state(state, self._form())
        self._watermarks, self._came, self.late = dict(kept["watermarks"]), kept["came"], kept["late"]
        self._advance(kept["clock"])
        self._waiting = [
            (time, came, stream, tuple(tuple(own) for own in values), of)
            for time, came, stream, values, of in kept["waiting"]
        ]
        for _, came, stream, values, of in self._waiting:
            takers = [self._takers[stream][at] for at in of]
            self._nodes[came] = [self._branch(one).of_kept(one[2], values[one[0]]) for one in takers]
        for branch, dumped in zip(self._branches(), kept["entries"], strict=True):
            branch.restore(dumped)
        for given, rows in zip((self._given, *self._own), kept["given"], strict=True):
            if given is not None:
                given.restore(rows)

    def _form(self) -> list[object]:
        return ["in time", self._given is not None, *(select.form() for select in self._selects)]

    def _branches(self) -> Iterator[Branch]:
        for select in self._selects:
            yield from select.branches

    def _advance(self, time: int) -> None:
        if time > self._clock:
            self._clock = time
            for branch in self._branches():
                branch.evaluator.advance(time)

    def _branch(self, taker: Taker) -> Branch:
        return self._selects[taker[0]].branches[taker[1]]

    def _passing(self, taker: Taker, batch: Batch, rows: int) -> np.ndarray:
        branch = self._branch(taker)
        return passing(branch.conditions[taker[2]], branch.query.aliases[taker[2]], batch, rows)

    def _push(self, taker: Taker, values: Nodes, kept: Values) -> Iterator[Found]:
        """Take one tuple at one occurrence. For each combination that it completes, returns the SELECT, the
        tuples by alias, and the number of times that the row occurs.
        """
        branch, number = self._branch(taker), taker[0]
        for shown, count in branch.evaluator.push(taker[2], values, kept):
            chosen = dict(zip(branch.query.aliases, map(whole, shown), strict=True))
            for gone, stays in branch.stands.items():
                chosen[gone] = chosen[stays]
            yield number, chosen, count

    def _rows(
        self, found: Sequence[Found], completed: Sequence[int], times: Sequence[int] | None = None
    ) -> Rows:
        names = [name for name, _ in self._node.members[0].select]
        parts: list[list[Vector]] = []
        places: list[np.ndarray] = []
        for number, select in enumerate(self._selects):
            by_alias: dict[str, list[Values]] = {alias: [] for alias in select.source}
            own: list[int] = []
            for place, (of, chosen, count) in enumerate(found):
                if of == number:
                    often = 1 if select.node.distinct else count
                    own.extend([place] * often)
                    for alias, kept in by_alias.items():
                        kept.extend([chosen[alias]] * often)
            at = np.array(own, np.int64)
            made = select.columns(by_alias, len(at))
            given = self._own[number]
            if given is not None:
                new = given.new(made)
                made, at = [vector.take(new) for vector in made], at[new]
            parts.append(made)
            places.append(at)
        order = np.argsort(np.concatenate(places), kind="stable")
        columns = {
            name: Vector.concat([part[i] for part in parts]).take(order) for i, name in enumerate(names)
        }
        at = np.concatenate(places)[order]
        rows = Rows(
            columns,
            np.array(completed, np.int64)[at],
            None if times is None else np.array(times, np.int64)[at],
        )
        return rows if self._given is None else rows.take(self._given.new(list(rows.columns.values())))
