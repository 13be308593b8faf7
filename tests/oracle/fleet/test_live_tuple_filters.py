"""The joiner's one pass over all filters, against each tuple and definition in turn."""

from __future__ import annotations

import random
import tracemalloc
from dataclasses import replace

import numpy as np
from tests.oracle.operators.test_temporal_join import Case, _holds
from tests.oracle.random_cases import SEED, cases

from tamis.expressions.nodes import Call, Column, Literal, Type
from tamis.expressions.vectors import Vector
from tamis.messaging.records import END_OF_TIME
from tamis.operators.time_join.filter_dispatch import Dispatch
from tamis.operators.time_join.time_bounds import UNBOUNDED, reaches
from tamis.plan.model import Definition, Input
from tamis.plan.omission import bare
from tamis_joiner.core.compiled_plan import CompiledJoin, RetentionGroup, retention_groups
from tamis_joiner.core.frontiers import Frontiers
from tamis_joiner.core.tuples import filter_bitmaps as passed_module
from tamis_joiner.core.tuples.filter_bitmaps import FilterBitmaps, PassingTuples
from tamis_joiner.core.tuples.retention import needed
from tamis_joiner.core.tuples.stored_tuples import NO_SLOT, StoredTuples

TOPIC = "t0"


class _Reached(Frontiers):
    """Frontiers that are where they are said to be."""

    def __init__(self, of: dict[str, int]) -> None:
        super().__init__()
        self._reached = of


def _live(r: random.Random, size: int) -> StoredTuples:
    times = np.array([r.randint(0, 40) for _ in range(size)], np.int64)
    return StoredTuples(
        times,
        np.array([r.choice((-1, 0, 1)) for _ in range(size)], np.int64),
        np.array([r.choice((1, 2, 3, 4)) for _ in range(size)], np.int64),
        np.array([r.random() < 0.1 for _ in range(size)], np.bool_),
        {
            "v": Vector.from_list(
                [r.choice((None, 0.0, 1.0, 2.0, 3.0, 4.0)) for _ in range(size)], Type.DOUBLE
            ),
            "ts": Vector(times),
        },
        np.zeros(size, np.bool_),
        times,
        np.full(size, NO_SLOT),
    )


def _passing(dispatch: Dispatch, live: StoredTuples) -> PassingTuples:
    bitmaps = FilterBitmaps(dispatch)
    return PassingTuples(bitmaps, bitmaps.evaluate(live))


def _row(live: StoredTuples, at: int) -> dict[str, float | None]:
    column = live.columns["v"]
    return {"v": None if column.null is not None and column.null[at] else float(column.data[at])}


def _use(definition: Definition, source: Input, live: StoredTuples, at: int) -> bool:
    fits = live.versions[at] >= definition.version and live.keys[at] >= 0
    return bool(fits) and _holds(source.filter, _row(live, at))


def test_every_tuple_is_kept_for_whom_it_should(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(passed_module, "BLOCK", 64)  # or all would lie in one
    told = kept_in_all = 0
    for case in range(cases(1 / 200)):
        r = random.Random(f"{SEED} {case}")
        definitions = tuple(
            replace(Case(r.randrange(10**9)).definition, alert=f"q{n}", version=r.choice((1, 2, 3, 4)))
            for n in range(r.choice((1, 2, 6, 12)))
        )
        live = _live(r, r.choice((0, 1, 5, 63, 64, 65, 200)))
        frontier = {f"t{n}": r.choice((r.randint(0, 60), END_OF_TIME)) for n in range(4)}
        inputs = [(d, s, i) for d in definitions for i, s in enumerate(d.inputs) if s.topic == TOPIC]
        dispatch = Dispatch([bare(source.filter) for d in definitions for source in d.inputs])
        places = {
            source.filter: dispatch.row(bare(source.filter)) for d in definitions for source in d.inputs
        }
        passed = _passing(dispatch, live)
        for _, source, _ in inputs:
            row = places[source.filter]
            wanted = [_holds(source.filter, _row(live, at)) for at in range(len(live))]
            assert passed.mask(row).tolist() == wanted, (SEED, case, source.filter)
            assert passed.has_new(row) == any(np.array(wanted, np.bool_) & live.new), (SEED, case)
        groups = retention_groups(
            CompiledJoin(d, tuple((source.topic, places[source.filter]) for source in d.inputs))
            for d in definitions
        )
        found, counts, _ = needed(passed, groups.get(TOPIC, []), _Reached(frontier))
        keeping: dict[str, set[int]] = {}
        for definition, source, i in inputs:
            reach = reaches(definition)[i]
            mine = keeping.setdefault(f"{definition.alert}@{definition.version}", set()) if reach else set()
            for at in range(len(live)):
                ahead = [
                    frontier[definition.inputs[j].topic] <= live.times[at] + most
                    if most < UNBOUNDED
                    else frontier[definition.inputs[j].topic] < END_OF_TIME
                    for j, most in reach
                ]
                if any(ahead) and _use(definition, source, live, at):
                    mine.add(at)
        assert counts == {name: len(rows) for name, rows in keeping.items()}, (SEED, case)
        assert set(np.flatnonzero(found).tolist()) == set().union(*keeping.values()), (SEED, case)
        told += len(live)
        kept_in_all += int(found.sum())
    assert 0.1 * told < kept_in_all < 0.95 * told


def test_of_many_tuples_little_more_is_held_than_the_answers() -> None:
    """Hundreds of filters over hundreds of thousands of tuples: three times the words were too much."""
    size, filters = 400_000, 600
    live = replace(
        _live(random.Random(0), 1),
        times=np.arange(size),
        keys=np.zeros(size, np.int64),
        versions=np.ones(size, np.int64),
        new=np.arange(size) == size - 1,
        columns={"v": Vector(np.arange(size, dtype=np.float64))},
        late=np.zeros(size, np.bool_),
        arrived=np.arange(size),
        slots=np.full(size, NO_SLOT),
    )
    column = Column("", "v", Type.DOUBLE)
    above = [Call(">", (column, Literal(float(n), Type.DOUBLE)), Type.BOOLEAN) for n in range(filters)]
    dispatch = Dispatch(above)
    _passing(dispatch, live.pick(np.arange(10)))  # compiles
    words = filters * size // 8
    tracemalloc.start()
    try:
        passed = _passing(dispatch, live)
        most = tracemalloc.get_traced_memory()[1]
        names, versions = tuple(f"q{n}@1" for n in range(filters)), np.ones(filters, np.int64)
        rows = np.array([dispatch.row(filter_) for filter_ in above])
        found, counts, _ = needed(
            passed, [RetentionGroup(((TOPIC, 0),), None, names, versions, rows)], _Reached({TOPIC: size // 2})
        )
        more = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [passed.has_new(row) for row in rows.tolist()] == [True] * filters
    assert counts["q7@1"] == found.sum() == size // 2
    assert most < 2 * words and more < 3 * words
