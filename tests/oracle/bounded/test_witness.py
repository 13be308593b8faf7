"""Witnesses of unbounded queries, run by brute force.

Every query with the verdict unbounded has inputs for which any evaluator must distinguish all subsets, and
the bounded evaluator, if it is run on them, keeps growing.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import pytest
from tests.oracle.bounded import timeless_queries as queries
from tests.oracle.bounded.bounded_queries import query
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.bounded.timeless.verdict import memory_verdict, proof_of
from tamis.bounded.timeless.witness import construct, states
from tamis.difference_bounds import Closure
from tamis.operators.synopses.decide import Violation, violation
from tamis.operators.synopses.evaluator import Evaluator
from tamis.plan.conjunction import Conjunction
from tamis.query.model import TimelessQuery
from tamis.query.parse import catalog_of


@pytest.mark.parametrize("times", also_long(20))
def test_every_failing_condition_has_a_witness(times: int) -> None:
    r = random.Random(SEED)
    kinds = set()
    for number in range(cases(0.04) * times):
        asked = query(r, most_attributes=7, largest_offset=r.choice((0, 0, 3)))
        if number % 2:
            asked = replace(asked, projected=(), distinct=True)
        closure = asked.closure()
        failing = None if closure is None else violation(asked, closure)
        if closure is None or failing is None:
            continue
        witness = construct(asked, closure, failing, 3)
        assert witness is not None, (SEED, number, asked, failing)
        assert states(asked, witness) == 8, (SEED, number, asked, failing, witness)
        kinds.add((failing.condition, asked.distinct))
        if failing.condition != "C1" and not number % 10:
            assert _kept(asked, closure, failing) >= 12, (SEED, number, asked, failing)
    assert len(kinds) == 6


def _kept(asked: Conjunction, closure: Closure, failing: Violation) -> int:
    """How many entries the synopses have after twelve stored tuples of a witness."""
    witness = construct(asked, closure, failing, 12)
    assert witness is not None
    evaluator = Evaluator(asked, closure)
    for one in witness.stored:
        values = [0] * asked.size
        for node in asked.own(failing.occurrence):
            values[node] = one[asked.nodes[node - 1].column]
        assert not list(evaluator.push(failing.occurrence, values, one))
    return evaluator.entries


def test_what_is_called_unbounded_grows() -> None:
    r = random.Random(SEED)
    catalog = catalog_of(queries.STREAMS)
    tried = 0
    while tried < cases(0.0006):
        alert = queries.alert_of(catalog, _sql(r))
        assert isinstance(alert.query, TimelessQuery)
        if memory_verdict(alert.query, catalog).verdict != "unbounded":
            continue
        tried += 1
        proof = proof_of(alert.query, catalog)
        assert proof is not None
        growth = {one.tuples: one for one in itertools.islice(proof.growth(), 10)}
        told = [one.states for one in growth.values() if one.tuples <= 4]
        assert told == [2, 4, 8, 16], (SEED, alert.sql, told)
        assert growth[64].entries >= 64, (SEED, alert.sql)


def _sql(r: random.Random) -> str:
    sources = queries.sources_of(r)
    whole, _, texts, numbers = queries.columns_of(sources)
    shown = r.sample([*whole, *texts, *numbers], 1)[0]
    if r.random() < 0.2:
        shown = f"{r.choice(('count', 'max', 'sum'))}({r.choice([*whole, *numbers])}) AS o"
    elif r.random() < 0.6:
        shown = f"DISTINCT {shown if r.random() < 0.3 else 1} AS o"
    return f"SELECT {shown} FROM {', '.join(sources)}{queries.where(r, sources, 0.2)}"
