"""Every query that is called unbounded has inputs on which any evaluator must tell all subsets apart, and the
bounded evaluator, run on them all the same, keeps growing.
"""

from __future__ import annotations

import random
from dataclasses import replace

from tests.oracle.bounded_queries import query
from tests.oracle.brackets import SEED, cases

from tamis.bounded.closure import Closure
from tamis.bounded.decide import Violation, violation
from tamis.bounded.evaluate.evaluator import Evaluator
from tamis.bounded.normal_form import Conjunction
from tamis.bounded.witness import construct, tells_apart


def test_every_failing_condition_has_a_witness() -> None:
    r = random.Random(SEED)
    kinds = set()
    for number in range(cases(0.04)):
        asked = query(r, most_attributes=7, largest_offset=r.choice((0, 0, 3)))
        if number % 2:
            asked = replace(asked, projected=(), distinct=True)
        closure = asked.closure()
        failing = None if closure is None else violation(asked, closure)
        if closure is None or failing is None:
            continue
        witness = construct(asked, closure, failing, 3)
        assert witness is not None, (SEED, number, asked, failing)
        assert tells_apart(asked, witness), (SEED, number, asked, failing, witness)
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
