"""Nodes of a plan whose numbers name nothing are refused where they are read."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.operators import through_json

from tamis.errors import InputError
from tamis.plan.conjunction import Conjunction, Difference, KeyLimit, Node
from tamis.plan.nodes import Alternative, Matching, Rows

ONE = Conjunction(
    ("s", "t"), ("a", "b"), (Node(0, "", "x"), Node(1, "", "y")), (Difference(1, 2, 5),), (1,), True
)
FITS = Alternative(ONE, ((), ()))


def rows(alternative: Alternative) -> Rows:
    return Rows(("s", "t"), (), Matching((alternative,)), ())


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (replace(ONE, aliases=("a",)), "an alias for each stream"),
        (replace(ONE, nodes=(Node(2, "", "x"), Node(1, "", "y"))), "the number of an occurrence"),
        (replace(ONE, differences=(Difference(1, 3, 5),)), "the number of a node, or 0"),
        (replace(ONE, projected=(0,)), "the number of a node"),
        (replace(ONE, key_limits=(KeyLimit((), 3),)), "the number of a node"),
        (replace(ONE, differences=(Difference(1, 2, -1), Difference(2, 1, 0))), "contradict each other"),
    ],
)
def test_of_conjunctions(wrong: Conjunction, reason: str) -> None:
    assert through_json(rows(FITS)) == rows(FITS)
    with pytest.raises(
        InputError, match=rf"plan\.node\.matching\.alternatives\[0\]\.conjunction: .*{reason}"
    ):
        through_json(rows(replace(FITS, conjunction=wrong)))


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (replace(FITS, conditions=((),)), "the conditions of each occurrence"),
        (replace(FITS, extreme=(3, "max")), "the number of a node"),
        (replace(FITS, stands=(("c", "d"),)), "the alias of an occurrence"),
    ],
)
def test_of_alternatives(wrong: Alternative, reason: str) -> None:
    with pytest.raises(InputError, match=rf"plan\.node\.matching\.alternatives\[0\]: .*{reason}"):
        through_json(rows(wrong))
