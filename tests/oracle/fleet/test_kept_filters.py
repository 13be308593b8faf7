"""Results of filters that the joiner keeps between batches, against those of a joiner that keeps nothing."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import orjson
import pytest
from tests.fixtures.dict_state import DictState
from tests.oracle.fleet.test_joiner_group import definition, stream_plan, topic_of, tuple_record
from tests.oracle.random_cases import SEED, also_long
from tests.stream_records import progress_record

from tamis.expressions.nodes import Call, Column, Expr, Literal, Type
from tamis.expressions.vectors import Vector
from tamis.messaging.records import Frontier
from tamis.messaging.topics import PLANS
from tamis.operators.time_join.filter_dispatch import Dispatch, FilterResults
from tamis.plan.json_form import encode_plan
from tamis.plan.model import Definition, Plan
from tamis_joiner.core.group import Group
from tamis_joiner.core.records.envelopes import Records
from tamis_joiner.core.tuples import filter_bitmaps

SECOND = 1_000_000
STREAMS = ("a", "b")
HIGHEST = 9  # values are whole numbers from 0
Batch = tuple[list[Records], list[Records]]


class Workload:
    """Batches of plans, tuples and progress of two streams; one of the streams stalls at times."""

    def __init__(self, r: random.Random, batches: int) -> None:
        self.r, self._count = r, batches
        self._least: dict[tuple[str, int, str], int | None] = {}  # by alert, version and alias
        self._offsets = itertools.count()
        self._definitions: list[Definition] = []
        self._time, self._version = 0, 0
        self._reached = dict.fromkeys(STREAMS, 0)

    def __iter__(self) -> Iterator[Batch]:
        stalled: tuple[str, ...] = ()
        for number in range(self._count):
            plans = [self._records(PLANS, [self._plan()])] if number % 7 == 0 else []
            if number % 5 == 0:
                stalled = self.r.choice(((), (), STREAMS[:1], STREAMS[1:]))
            records = []
            for stream in STREAMS:
                values = [] if stream in stalled else self._values(stream)
                if values:
                    records.append(self._records(topic_of(stream), values))
            self._time += self.r.choice((0, 1, 1, 3)) * SECOND
            if plans or records:
                yield plans, records

    def passes(self, alert: str, version: int, alias: str, value: float | None) -> bool:
        """Whether a value passes the filter of an input."""
        least = self._least[alert, version, alias]
        return least is None or (value is not None and value >= least)

    def _records(self, topic: str, values: list[bytes]) -> Records:
        offsets = np.array([next(self._offsets) for _ in values], np.int64)
        return Records(topic, 0, values, offsets, offsets * 1000)

    def _plan(self) -> bytes:
        self._version += 1
        if len(self._definitions) > 1 and self.r.random() < 0.3:
            self._definitions.pop(self.r.randrange(len(self._definitions)))
        for number in range(self.r.choice((0, 1, 1, 6))):
            self._definitions.append(self._definition(f"q{self._version}-{number}"))
        plan = Plan(
            self._version,
            1,
            tuple(stream_plan(name) for name in STREAMS),
            tuple(self._definitions),
            {f"e/{name}": 1 for name in STREAMS},
            {f"e/{name}": name for name in STREAMS},
        )
        return encode_plan(plan)

    def _definition(self, alert: str) -> Definition:
        r, version = self.r, self._version
        streams = [r.choice(STREAMS) for _ in range(r.choice((1, 2, 2)))]
        reach = r.choice((1, 4)) * SECOND
        bounds = [(1, 0, -reach, reach)] if len(streams) > 1 else []
        made = definition(alert, version, streams, bounds, least=8.0 * len(streams))
        inputs = []
        for source in made.inputs:
            least = self._least[alert, version, source.alias] = r.choice((None, *range(HIGHEST + 2)))
            condition: Expr | None = None
            if least is not None:
                pair = (Column(source.alias, "v", Type.DOUBLE), Literal(float(least), Type.DOUBLE))
                condition = Call(">=", pair, Type.BOOLEAN)
            inputs.append(replace(source, filter=condition))
        return replace(made, inputs=tuple(inputs))

    def _values(self, stream: str) -> list[bytes]:
        r, found = self.r, []
        for _ in range(r.choice((0, 3, 40))):
            value = None if r.random() < 0.05 else float(r.randint(0, HIGHEST))
            late = r.random() < 0.02
            time = self._time + r.randint(0, SECOND) - (9 * SECOND if late else 0)
            row = tuple_record(stream, (r.choice("xyz"), time, value), max(1, self._version), late)
            found += [row, row] if r.random() < 0.05 else [row]
        found.append(progress_record(f"e/{stream}", max(1, self._version), 0, self._time))
        return found


def check_kept(group: Group, workload: Workload) -> int:
    """Compare each kept result with the filter's own comparison; returns how many tuples are held."""
    for join in group._compiled.joins if group._compiled else ():
        for source, (topic, row) in zip(join.definition.inputs, join.inputs, strict=True):
            if topic not in group._store.tuples:
                continue
            found = group._store.filters(topic).rows(row).tolist()
            stored = group._store.tuples[topic]
            alert, version = join.definition.alert, join.definition.version
            values = enumerate(stored.columns["v"].to_list())
            wanted = [at for at, v in values if workload.passes(alert, version, source.alias, v)]  # type: ignore[arg-type]
            assert found == wanted
            for keys in itertools.combinations(np.unique(stored.keys).tolist(), 2):
                some = group._store.filters(topic).rows(row, np.array(keys))
                assert set(some.tolist()) >= {at for at in wanted if stored.keys[at] in keys}
                assert set(some.tolist()) <= set(wanted)
            new = [at for at in wanted if stored.new[at]]
            assert group._store.filters(topic).new_keys(row).tolist() == stored.keys[new].tolist()
            assert group._store.filters(topic).has_new(row) == bool(stored.new[found].any())
    return sum(map(len, group._store.tuples.values()))


def outcome(alarms: list[tuple[bytes, bytes]], frontier: bytes | None) -> tuple[list[str], Frontier]:
    assert frontier is not None
    found: list[dict[str, Any]] = [orjson.loads(value) for _, value in alarms]
    return sorted(alarm["id"] for alarm in found), Frontier.from_bytes(frontier)


@pytest.mark.parametrize("times", also_long(6))
def test_kept_results_are_those_of_a_joiner_that_keeps_nothing(monkeypatch, times: int) -> None:  # type: ignore[no-untyped-def]
    """Attempts fail and are repeated, partitions move to other processes and come back."""
    monkeypatch.setattr(filter_bitmaps, "PAGE", 64)  # or nothing would ever be freed
    monkeypatch.setattr(filter_bitmaps, "_FEW_PAGES", 2)
    monkeypatch.setattr(filter_bitmaps, "_SHRINK", 3)
    raised = held = 0
    for case in range(times):
        r = random.Random(f"{SEED} kept {case}")
        workload = Workload(r, 80)
        state, plain = DictState(), DictState()
        memories: list[Group | None] = [None]
        for number, (plans, records) in enumerate(workload):
            copy = DictState(plain.blobs)
            output = Group.load(0, 1, copy).process(plans, records, copy, now=1, token=f"{number}")
            plain = copy
            wanted = outcome(output.alarms, output.frontier)
            for attempt in itertools.count():
                memory = r.choice((None, memories[-1], memories[-1], memories[-1], r.choice(memories)))
                memories = [one for one in memories if one is not memory] or [None]
                copy = DictState(state.blobs)
                group = Group.load(0, 1, copy, memory)
                token = f"{number} {attempt}"
                output = group.process(plans, records, copy, now=1, token=token)
                held += check_kept(group, workload)
                memories = [*memories[-2:], group]
                found = outcome(output.alarms, output.frontier)
                assert found[0] == wanted[0], (SEED, case, number)
                assert _counts(found[1]) == _counts(wanted[1]), (SEED, case, number)
                if attempt < 3 and r.random() < 0.2:
                    continue
                state = copy
                break
            raised += len(wanted[0])
    assert raised > 100 * times and held > 5_000 * times


def _counts(frontier: Frontier) -> tuple[Mapping[str, int], dict[str, int], dict[str, int]]:
    tuples = {name: one.tuples for name, one in frontier.topics.items()}
    return frontier.definitions, tuples, frontier.waiting


def test_a_batch_evaluates_the_filters_of_its_own_tuples_only(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    evaluated: list[int] = []
    over = Dispatch.over

    def noted(self: Dispatch, columns: Mapping[str, Vector], count: int) -> FilterResults:
        evaluated.append(count)
        return over(self, columns, count)

    monkeypatch.setattr(Dispatch, "over", noted)
    made = definition("q", 1, ["a", "b"], [(1, 0, -SECOND, SECOND)], least=100.0)
    since = {f"e/{name}": 1 for name in STREAMS}
    streams = tuple(stream_plan(name) for name in STREAMS)
    plan = Plan(1, 1, streams, (made,), since, {f"e/{name}": name for name in STREAMS})
    state, group = DictState(), Group(0, 1)
    first = [tuple_record("a", ("x", number, 1.0), 1) for number in range(5_000)]
    zero = np.zeros(1, np.int64)
    for number, values in enumerate((first, [tuple_record("a", ("y", 7, 1.0), 1)] * 1)):
        evaluated.clear()
        at = np.arange(len(values))
        records = [Records(topic_of("a"), 0, values, at, at)]
        plans = [] if number else [Records(PLANS, 0, [encode_plan(plan)], zero, zero)]
        group = Group.load(0, 1, state, group)
        group.process(plans, records, state, now=1, token=f"{number}")
        assert sum(evaluated) == len(values)
    # Another process has to evaluate all.
    evaluated.clear()
    Group.load(0, 1, state)
    assert sum(evaluated) == 5_001
