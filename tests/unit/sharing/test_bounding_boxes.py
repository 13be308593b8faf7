"""Bounding boxes never exclude a filter that the exact comparison finds to be implied."""

from __future__ import annotations

import random

from tamis.expressions.nodes import Expr, Type
from tamis.predicates.matching import implies
from tamis.predicates.predicate import Predicate
from tamis.query.condition import read_condition
from tamis.sharing.bounding_boxes import box_filter, may_imply

TYPES = {"x": Type.DOUBLE, "y": Type.DOUBLE, "n": Type.BIGINT, "lit": Type.BOOLEAN, "k": Type.VARCHAR}


def condition(r: random.Random) -> str:
    low = r.choice((0, 1, 2**53, 2**53 + 1, 2**63 - 2))
    atoms = (
        f"x BETWEEN {r.randint(0, 3)} AND {r.randint(2, 5)}",
        f"n BETWEEN {low} AND {low + r.randint(0, 1)}",
        f"n > {low}",
        "x < y",
        "x < 1 AND x > 2",
        "k = 'a'",
        "k IS NOT NULL",
        "n IS NULL",
        "lit",
        f"y >= {r.randint(0, 2)}",
    )
    return r.choice((" AND ", " OR ")).join(f"({atom})" for atom in r.sample(atoms, r.choice((1, 2, 2))))


def test_what_is_denied_is_not_implied() -> None:
    r = random.Random(7)
    denied = 0
    for _ in range(60):
        conditions: list[Expr | None] = [None]
        conditions += [read_condition(condition(r), TYPES) for _ in range(7)]
        inner, outer = conditions, conditions[::-1]
        boxes = [None if one is None else box_filter(one) for one in conditions]
        found = may_imply(boxes, boxes[::-1])
        for row, one in enumerate(inner):
            for column, other in enumerate(outer):
                if found[row, column]:
                    continue
                denied += 1
                assert one is not None and other is not None
                assert not implies(Predicate.of(one), Predicate.of(other)), (one, other)
    assert denied > 300
