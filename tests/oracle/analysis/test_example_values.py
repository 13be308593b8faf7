"""Shortcuts for comparisons with numbers, against the exact boxes and against the general enclosures."""

from __future__ import annotations

import random
from dataclasses import replace

from tamis.analysis.contradictions import met_by_example
from tamis.analysis.value_constraints import narrowed
from tamis.declarations.streams import StreamDef
from tamis.expressions.nodes import FLIPPED, Call, Column, Expr, Literal, Type
from tamis.predicates.predicate import Predicate
from tamis.query.parse import catalog_of

# Close to each other, so that many conditions leave a single value, or none.
_NUMBERS = (-1, 0, 1, 2, 0.5, 1.5, 0.1, 0.30000000000000004, 0.3, -0.0, 2**53, 2**53 + 1, 2**60 + 1, 1e300)
_OPS = ("<", "<=", ">", ">=", "=", "!=")
_COLUMNS = (Column("", "x", Type.DOUBLE), Column("", "n", Type.BIGINT), Column("", "i", Type.INT))


def _literal(value: int | float) -> Literal:
    if isinstance(value, float):
        return Literal(value, Type.DOUBLE)
    return Literal(value, Type.INT if abs(value) < 2**31 else Type.BIGINT)


def _comparison(random_: random.Random) -> Expr:
    sides = (random_.choice(_COLUMNS), _literal(random_.choice(_NUMBERS)))
    return Call(random_.choice(_OPS), sides if random_.random() < 0.7 else sides[::-1], Type.BOOLEAN)


def _condition(random_: random.Random) -> Expr:
    kind = random_.random()
    if kind < 0.7:
        return _comparison(random_)
    null = Call("is_null", (random_.choice(_COLUMNS),), Type.BOOLEAN)
    if kind < 0.8:
        return Call("not", (null,), Type.BOOLEAN)
    parts = (_comparison(random_), _comparison(random_), *((null,) if random_.random() < 0.5 else ()))
    return Call(random_.choice(("and", "or")), parts, Type.BOOLEAN)


def test_conditions_that_an_example_meets_have_a_box() -> None:
    """The example is never found where no tuple passes, and mostly found where some do."""
    random_ = random.Random(1)
    met = possible = never = 0
    for _ in range(4000):
        conditions = [_condition(random_) for _ in range(random_.randint(1, 5))]
        exact = Predicate.of(Call("and", tuple(conditions), Type.BOOLEAN))
        found = met_by_example(conditions)
        assert not (found and exact.never), conditions
        met, possible, never = met + found, possible + (not exact.never), never + exact.never
    assert never > 1000
    assert met > 0.3 * possible > 300


def _streams() -> dict[str, StreamDef]:
    catalog = catalog_of(
        "CREATE STREAM g (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE CHECK (x BETWEEN 0 AND 2), i INT NOT NULL,"
        " n BIGINT, WATERMARK FOR ts AS ts);"
    )
    return {"a": catalog.streams["g"]}


def test_comparisons_narrow_in_both_directions_alike() -> None:
    """`x < 5` takes the shortcut, `5 > x` doesn't: both leave the same values, or none."""
    random_, streams = random.Random(2), _streams()
    contradictions = 0
    for _ in range(2000):
        pairs = [
            (
                replace(random_.choice(_COLUMNS), alias="a"),
                random_.choice(_OPS),
                _literal(random_.choice(_NUMBERS)),
            )
            for _ in range(random_.randint(1, 5))
        ]
        one = narrowed([Call(op, (column, value), Type.BOOLEAN) for column, op, value in pairs], streams)
        other = narrowed(
            [Call(FLIPPED[op], (value, column), Type.BOOLEAN) for column, op, value in pairs], streams
        )
        assert (one is None) == (other is None), pairs
        if one is None or other is None:
            contradictions += 1
            continue
        for column, _, _ in pairs:
            assert one[column] == other[column], pairs
    assert 200 < contradictions < 1800
