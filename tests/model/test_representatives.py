"""Representatives at edges keep every row under random schedules, and lose some with a rule broken."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.model.representatives import schedule
from tests.model.representatives.mutations import MUTATIONS, RULES, broken
from tests.model.representatives.queries import Asked
from tests.model.representatives.schedule import Fleet, play
from tests.model.representatives.shard import Shard
from tests.model.schedule import quiet
from tests.oracle.bounded.representatives.random_queries import Declared, Query
from tests.oracle.bounded.representatives.trees import column, of

from tamis.expressions.nodes import Type

# The seed of a schedule that catches the mutation.
CAUGHT_BY = {
    "shed_covers": 3,
    "kept_for_new_queries": 234,
    "repeats_dropped": 223,
    "commits_before_covers": 25,
    "other_side": 8,
    "one_for_unequal": 50,
    "first_occurrence": 30,
    "nothing_beyond_most": 89,
    "kept_after_loss": 777,
    "rounded": 800,
}


def test_no_row_is_missing_late_or_wrong() -> None:
    quiet()
    seen: Counter[str] = Counter()
    for seed in range(40):
        violations, fleet = play(seed)
        assert not violations, (seed, violations)
        seen += fleet.seen
    often = "crashes", "moves", "changes", "replaced", "deleted", "states lost", "omitted", "rows due"
    assert min(seen[name] for name in often) > 10, seen


@pytest.mark.parametrize(("mutation", "seed"), CAUGHT_BY.items())
def test_without_a_rule_rows_are_missing(mutation: str, seed: int) -> None:
    quiet()
    assert not play(seed)[0]
    with broken(mutation):
        assert "MISS" in {violation.kind for violation in play(seed)[0]}


def test_every_mutation_is_caught_by_some_test() -> None:
    assert CAUGHT_BY.keys() == MUTATIONS.keys()


def test_the_page_of_the_protocol_names_every_rule() -> None:
    page = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text()
    assert set(re.findall(r"`([a-z_]+)`", page)) >= RULES.keys()


# ---- schedules step by step


def _sum(type_: Type) -> Query:
    """Pairs of a key whose sum is above 10."""
    key = Declared("k", Type.INT, "INT NOT NULL KEY", (1, 2), limited=True)
    value = Declared("x", type_, f"{type_} NOT NULL CHECK (x BETWEEN 0 AND 9)", (0,))
    same = of("=", column("a", "k"), column("b", "k"))
    above = of(">", of("+", column("a", "x"), column("b", "x")), 10)
    streams = {"s": (key, value), "t": (key, value)}
    return Query(streams, 2, (("a", "s"), ("b", "t")), (same, above), (column("a", "k"),), frozenset())


_SUM = _sum(Type.INT)


def _fleet(
    query: Query = _SUM, values: Sequence[tuple[int, float]] = ((1, 9), (1, 8), (2, 1), (1, 7))
) -> tuple[Fleet, Shard]:
    """A fleet with the query `q0` whose edges publish representatives, and the shard of stream `s`."""
    quiet()
    fleet = Fleet(1, asked=(Asked(query),))
    shards = {shard.stream: shard for shard in reversed(fleet.shards)}
    for shard in fleet.shards:
        shard.readings = []
    shards["s"].readings = [{"k": k, "x": x} for k, x in values]
    shards["t"].readings = [{"k": 1, "x": 4}]
    fleet.office.define("q0", Asked(query), fleet.now)
    fleet.calm = True
    schedule.begin(fleet)
    return fleet, shards["s"]


def _read(fleet: Fleet, shard: Shard) -> None:
    """Read what there is; all records arrive, but the edge doesn't learn of it."""
    assert shard.run is not None
    shard.read(shard.run, 10, fleet.now)
    shard.run.send()
    while shard.run.queue:
        shard.run.deliver(fleet.r, fleet.logs)


def _lose_state(fleet: Fleet) -> None:
    for number, partition in enumerate(fleet.joiner):
        partition.lose(0)
        fleet.now += 1_000
        fleet.judge.lost = fleet.now
        schedule.batch(fleet, number)


def _restart(fleet: Fleet, shard: Shard) -> None:
    assert shard.run is not None
    shard.lose(shard.run, ghost=False)


def kept_after_loss() -> Fleet:
    """The joiner loses its state, and the topic has lost the tuple that stood for later ones."""
    fleet, shard = _fleet()
    shard.available = 1
    schedule.work(fleet)
    for log in fleet.logs.values():
        log.first = len(log.values)
    _lose_state(fleet)
    return fleet


def place_passed_before_the_loss() -> Fleet:
    """The new state knows tuple 2 alone, and a restart sends tuple 1 again."""
    fleet, shard = _fleet()
    shard.available = 1
    schedule.work(fleet)
    for log in fleet.logs.values():
        log.first = len(log.values)
    shard.available = 3
    _read(fleet, shard)
    _lose_state(fleet)
    _restart(fleet, shard)
    return fleet


def place_passed_by_progress() -> Fleet:
    """A new query has progress behind tuple 0, which was published before it, and is sent again."""
    fleet, shard = _fleet()
    shard.available = 1
    _read(fleet, shard)
    fleet.office.define("q1", Asked(_SUM), fleet.now)
    schedule.obey(fleet, shard)
    assert shard.run is not None
    shard.begin_commit(shard.run)
    shard.land(shard.run, fleet.now)
    assert (shard.durable.done, shard.durable.read) == (0, 1)
    _read(fleet, shard)
    schedule.batch(fleet)
    _restart(fleet, shard)
    return fleet


def near_values() -> Fleet:
    """A DOUBLE is greater than the one before it by less than 1."""
    return _fleet(_sum(Type.DOUBLE), ((1, 5.5), (1, 6.0), (1, 6.5)))[0]


@pytest.mark.parametrize(
    ("play_until", "mutation"),
    [
        (near_values, "rounded"),
        (kept_after_loss, "kept_after_loss"),
        (place_passed_before_the_loss, "repeats_dropped"),
        (place_passed_by_progress, "repeats_dropped"),
    ],
)
def test_a_tuple_that_the_joiner_does_not_have_covers_nothing(
    play_until: Callable[[], Fleet], mutation: str
) -> None:
    for name in (None, mutation):
        with broken(name):
            fleet = play_until()
            schedule.drain(fleet)
            assert bool(fleet.violations) == (name is not None), (name, fleet.violations)
