"""Certificates of random conditions over random domains, against search.

Wherever a certificate is given, neither dense samples nor an
optimiser find a place that gives it the lie.
"""

from __future__ import annotations

import random

import pytest
from tests.oracle.certificates.test_certify import condition, world
from tests.oracle.certificates.violation_search import claim_of
from tests.oracle.random_cases import SEED, cases

from tamis.certificates.certify import Certificate, certify
from tamis.expressions.nodes import columns
from tamis.expressions.signatures import call
from tamis.expressions.sql_text import to_sql

PARTS = 8


def search(seed: int) -> bool:
    """One random condition; whether it was certified. Fails where the certificate is wrong."""
    rng = random.Random(seed)
    place = world(rng)
    parts = tuple(condition(rng, rng.choice([0, 0, 0, 1, 1, 2])) for _ in range(rng.choice([1, 1, 1, 2])))
    verdict = certify(parts, "a", place.streams, {})
    if not isinstance(verdict, Certificate) or not columns_of_a(parts):
        return False
    whole = parts[0] if len(parts) == 1 else call("and", *parts)
    domains = {c: ends(place.grids[c]) for c in place.grids}
    nullable = frozenset(c for c, grid in place.grids.items() if None in grid)
    claim = claim_of(
        whole, verdict.value, verdict.sides, fixed=verdict.fixed, domains=domains, nullable=nullable
    )
    wrong = claim.sampled(seed) or claim.searched(seed)
    assert wrong is None, f"seed {seed}: {to_sql(whole)}\n{verdict}\n{domains}\n{wrong}"
    return True


def columns_of_a(parts: tuple[object, ...]) -> bool:
    return any(c.alias == "a" for part in parts for c in columns(part))  # type: ignore[arg-type]


def ends(grid: list[object]) -> tuple[float, float]:
    numbers = [float(v) for v in grid if v is not None and not isinstance(v, str)]  # type: ignore[arg-type]
    return (min(numbers), max(numbers)) if numbers else (0.0, 1.0)


@pytest.mark.soundness
@pytest.mark.timeout(0)
@pytest.mark.parametrize("part", range(100))
def test_no_place_gives_one_of_100_000_the_lie(part: int) -> None:
    for i in range(1_000):
        search(SEED * 1_000_000_000 + 500_000_000 + part * 1_000 + i)


@pytest.mark.parametrize("part", range(PARTS))
def test_no_place_gives_a_certificate_the_lie(part: int) -> None:
    count = cases(0.00625)
    certified = sum(search(SEED * 10_000_000 + part * 1_000_000 + i) for i in range(count))
    assert certified > count // 10, "too few certificates for the test to say much"


def test_what_divides_a_divisor_may_be_zero() -> None:
    """`(1.5 - a.n) / (a.n / a.x) * ... <= 1`, which the long search found: NULL where a.x is 0."""
    search(1_500_027_225)
