"""Rules broken on purpose: the search for a place that gives a certificate the lie finds each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.oracle.certificates.violation_search import claim_of
from tests.unit.certificates.catalogs import NEAR

from tamis.certificates import scalars
from tamis.certificates.curvature import composition, level_sets, prover
from tamis.certificates.curvature import properties as rules
from tamis.certificates.curvature.level_sets import Region
from tamis.certificates.curvature.properties import Curvature
from tamis.certificates.interval_arithmetic import (
    interval_derivatives,
    operator_derivatives,
    subdivision,
)
from tamis.certificates.interval_arithmetic.derivatives import Derivatives, PossibleNulls
from tamis.certificates.interval_arithmetic.intervals import ONE, ZERO
from tamis.expressions.nodes import columns, conjunction
from tamis.planning.verdict import judge
from tamis.query.parse import catalog_of

Break = Callable[[pytest.MonkeyPatch], None]


def quotient_without_sign(patch: pytest.MonkeyPatch) -> None:
    """x / b rises in x, whatever the sign of b."""
    patch.setattr(composition, "_quotient", lambda args, signs: args[0].curvature)


def product_without_sign(patch: pytest.MonkeyPatch) -> None:
    """x * b rises in x, whatever the sign of b."""
    true = rules.scaled
    patch.setattr(rules, "scaled", lambda shape, sign: true(shape, 1 if sign is None else sign))


def difference_as_sum(patch: pytest.MonkeyPatch) -> None:
    """a - b goes as a + b."""
    patch.setattr(rules, "negated", lambda shape: shape)


def and_as_or(patch: pytest.MonkeyPatch) -> None:
    """What an AND leaves is an interval, where what each leaves is."""
    patch.setattr(level_sets, "intersection", level_sets.union)


def sum_of_quasiconvex(patch: pytest.MonkeyPatch) -> None:
    """Quasiconvex functions add up to one."""

    def sum_of(parts: list[Curvature]) -> Curvature:
        return rules.closed(rules.in_all([p for p in parts if p != rules.CONSTANT]))

    patch.setattr(rules, "sum_of", sum_of)


def bends_are_smooth(patch: pytest.MonkeyPatch) -> None:
    """A bend of ABS has a second derivative of 0."""
    true = operator_derivatives._abs

    def absolute(*args: Any) -> Derivatives:
        found = true(*args)
        return Derivatives(found.value, found.first, ZERO, found.varies, found.never_null)

    patch.setitem(operator_derivatives._RULES, "abs", absolute)


def steps_are_free(patch: pytest.MonkeyPatch) -> None:
    """A CASE rises where its pieces do, whatever the steps between them."""
    patch.setattr(prover.Prover, "_steps", lambda *_: True)


def null_by_choice(patch: pytest.MonkeyPatch) -> None:
    """The values of a CASE over the scalar may be NULL for different rests."""
    patch.setattr(prover, "null_together", lambda *_: True)
    patch.setattr(interval_derivatives, "null_together", lambda *_: True)
    true = subdivision.derivatives_over
    patch.setattr(
        prover, "derivatives_over", lambda expr, box, variable, strict=False: true(expr, box, variable)
    )


def any_slope_at_the_level(patch: pytest.MonkeyPatch) -> None:
    """The slope at the threshold doesn't matter either."""
    for shape in (Curvature.RISING, Curvature.FALLING):
        patch.setitem(subdivision._AT_ZERO, shape, lambda j: np.ones(np.shape(j.first.lo), np.bool_))


def crossings_alone_matter(patch: pytest.MonkeyPatch) -> None:
    """A number is quasiconvex where it is never level at the threshold itself."""

    def test(j: Derivatives) -> Any:
        return ~j.value.holds(0.0) | (j.first.lo > 0) | (j.first.hi < 0)

    patch.setitem(subdivision._AT_ZERO, Curvature.QUASICONVEX, test)


def zero_divides(patch: pytest.MonkeyPatch) -> None:
    """A divisor never is 0."""
    true = operator_derivatives._quotient

    def quotient(expr: Any, args: tuple[Derivatives, ...], _nulls: PossibleNulls) -> Derivatives:
        return true(expr, args, PossibleNulls())

    patch.setitem(operator_derivatives._RULES, "/", quotient)


def many_values_are_one(patch: pytest.MonkeyPatch) -> None:
    """The first scalar of a stream is its only one."""
    patch.setattr(scalars._Grouping, "free", lambda self, expr: any(c.name == "x" for c in columns(expr)))


def inside_out(patch: pytest.MonkeyPatch) -> None:
    """An interval of alarms will do, too."""
    true = level_sets.closed
    patch.setattr(
        level_sets, "closed", lambda r: true(r | Region.OUTSIDE if Region.INTERVAL in r else true(r))
    )


def squares_rise(patch: pytest.MonkeyPatch) -> None:
    """An even power rises wherever its base does."""
    patch.setattr(composition, "_raised", lambda a, n: rules.composed(a.curvature))


def slopes_of_inverses(patch: pytest.MonkeyPatch) -> None:
    """1 / x rises."""
    patch.setattr(operator_derivatives, "_inverse_first", lambda b: ONE)


# Each with a condition that tells it from the true rule.
STREAMS = """
CREATE STREAM a (k INT KEY, ts TIMESTAMP, x DOUBLE CHECK (x BETWEEN -3 AND 3),
  y DOUBLE CHECK (y BETWEEN 0 AND 2),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);
CREATE STREAM b (k INT KEY, ts TIMESTAMP, u DOUBLE CHECK (u BETWEEN -2 AND 3),
  neg DOUBLE CHECK (neg BETWEEN -3 AND -1), pos DOUBLE CHECK (pos BETWEEN 1 AND 3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);
"""
BROKEN: list[tuple[Break, str]] = [
    (quotient_without_sign, "a.x / b.neg > 1"),
    (product_without_sign, "a.x * b.u > 1"),
    (difference_as_sum, "b.u - a.x > 1"),
    (and_as_or, "a.x > b.u AND a.x < b.pos"),
    (sum_of_quasiconvex, "sqrt(abs(a.x - b.pos)) + sqrt(abs(a.x + b.pos)) > 1.9"),
    (bends_are_smooth, "0 - abs(a.x - b.u) > -1"),
    (steps_are_free, "CASE WHEN a.x > 1 THEN a.x - 2 + b.u ELSE a.x + b.u END > 0"),
    (null_by_choice, "CASE WHEN a.x < 1 THEN a.x ELSE a.x + b.pos END > -1"),
    (any_slope_at_the_level, "a.x * b.u > 1"),
    (crossings_alone_matter, "0 - power(a.x - b.u, 2) > -1"),
    (zero_divides, "1 / (a.x - b.u) > 1"),
    (many_values_are_one, "a.x > b.u AND a.y > b.pos"),
    (inside_out, "ABS(a.x - b.u) < 1"),
    (squares_rise, "power(a.x - b.u, 2) > 1"),
    (slopes_of_inverses, "1 / (a.y + b.pos) + 0.01 * a.y > 0.4"),
]


def lie(condition: str) -> str | None:
    """How a's certificate is wrong; None where it isn't, or there is none."""
    catalog = catalog_of(STREAMS, f"CREATE ALERT q AS SELECT a.k FROM a JOIN b ON {NEAR} WHERE {condition}")
    judged = judge(catalog.alerts["q"], catalog)
    found = judged.omissions[0]
    whole = conjunction(judged.analysis.conditions)
    if found.value is None or found.sides is None or whole is None:
        return None
    ends = {"x": (-3.0, 3.0), "y": (0.0, 2.0), "u": (-2.0, 3.0), "neg": (-3.0, -1.0), "pos": (1.0, 3.0)}
    used = frozenset(columns(whole))
    claim = claim_of(
        whole,
        found.value,
        found.sides,
        fixed=(),
        domains={c: ends[c.name] for c in used},
        nullable=frozenset(c for c in used if c.alias == "b"),
    )
    return claim.sampled(1, fixings=300) or claim.searched(1)


@pytest.mark.parametrize(("rule", "condition"), BROKEN, ids=lambda x: getattr(x, "__name__", ""))
def test_a_broken_rule_is_seen(rule: Break, condition: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert lie(condition) is None
    rule(monkeypatch)
    assert lie(condition) is not None, "the search does not tell it from the true rule"
