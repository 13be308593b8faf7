"""Operations on monotone relations, point by point: over real numbers, and over integers in a box."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product

import pytest
from tests.oracle.constraints import fourier_motzkin
from tests.oracle.constraints.fourier_motzkin import Constraint
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.constraints.monotone import integers
from tamis.constraints.relation import Relation
from tamis.errors import RefusedError

NAMES = ["x", "y", "z"]
SLOPES = ["1 / 2", "1", "1", "2", "3", "2 / 3", "0"]
Union = list[list[Constraint]]
Point = dict[str, Fraction]


def random_union(r: random.Random, most: int = 3) -> tuple[str, Union]:
    """A condition as text and as constraints."""
    texts, union = [], []
    for _ in range(r.randint(1, most)):
        parts, constraints = zip(*(_random_atom(r) for _ in range(r.randint(1, 4))), strict=True)
        texts.append(" AND ".join(parts))
        union.append([each for some in constraints for each in some])
    return " OR ".join(f"({text})" for text in texts), union


def _random_atom(r: random.Random) -> tuple[str, list[Constraint]]:
    op = r.choice(["<", "<=", "<=", "=", ">=", ">"])
    left = r.choice(NAMES)
    terms = {left: Fraction(1)}
    constant = Fraction(r.randint(-4, 4), r.choice((1, 1, 2)))
    text = str(constant)
    if r.random() < 0.7:
        right = r.choice([name for name in NAMES if name != left])
        slope = r.choice(SLOPES)
        text = f"{slope} * {right} + {constant}"
        terms[right] = -Fraction(slope.replace(" ", ""))
    below: Constraint = (terms, constant, op == "<")
    above: Constraint = ({name: -value for name, value in terms.items()}, -constant, op == ">")
    return f"{left} {op} {text}", [below] * (op in ("<", "<=", "=")) + [above] * (op in ("=", ">=", ">"))


def holds(union: Union, point: Point) -> bool:
    return any(fourier_motzkin.holds(part, point) for part in union)


def points(r: random.Random, count: int, step: Fraction) -> list[Point]:
    return [{name: r.randint(-12, 12) * step for name in NAMES} for _ in range(count)]


@pytest.mark.parametrize("times", also_long(200))
def test_operations_on_relations_are_those_on_points(times: int) -> None:
    r = random.Random(SEED)
    inside = 0
    for _ in range(cases(1 / 200) * times):
        (one, ones), (other, others) = random_union(r), random_union(r, 2)
        left, right = (Relation.parse(text, NAMES, theory="monotone") for text in (one, other))
        again = Relation.parse(left.text(), NAMES, theory="monotone")
        kept = r.sample(NAMES, 2)
        narrow = left.project(kept)
        narrowed: Union = [fourier_motzkin.projected(part, kept) for part in ones]
        swapped = left.rename({"x": "y", "y": "x"})
        both, chosen, either = left.join(right), left.select(other), left.union(right)
        rest = left.difference(right)
        for point in points(r, 25, Fraction(1, 2)):
            first, second = holds(ones, point), holds(others, point)
            assert left.contains(point) == again.contains(point) == first
            assert both.contains(point) == chosen.contains(point) == (first and second)
            assert either.contains(point) == (first or second)
            assert rest.contains(point) == (first and not second)
            assert swapped.contains({**point, "x": point["y"], "y": point["x"]}) == first
            part = {name: point[name] for name in kept}
            assert narrow.contains(part) == any(fourier_motzkin.holds(each, part) for each in narrowed)
            inside += first
        assert left.empty() == (not any(map(fourier_motzkin.satisfiable, ones)))
        assert left.difference(left).empty()
    assert inside > 0


@pytest.mark.parametrize("times", also_long(200))
def test_over_integers_answers_are_exact_or_refused(times: int) -> None:
    """In a box of integers every answer can be counted."""
    r = random.Random(SEED + 1)
    least, greatest = -3, 4
    box = " AND ".join(f"{name} >= {least} AND {name} <= {greatest}" for name in NAMES)
    every = [
        dict(zip(NAMES, map(Fraction, values), strict=True))
        for values in product(range(least, greatest + 1), repeat=len(NAMES))
    ]
    refused = answered = empty = 0
    for _ in range(cases(1 / 400) * times):
        (one, ones), (other, others) = random_union(r, 2), random_union(r, 2)
        left = Relation.parse(f"({one}) AND {box}", NAMES, theory="monotone", numbers="integer")
        right = Relation.parse(f"({other}) AND {box}", NAMES, theory="monotone", numbers="integer")
        solutions = [point for point in every if holds(ones, point)]
        assert left.empty() == (not solutions)
        empty += not solutions
        both = left.difference(right)
        for point in r.sample(every, 30):
            assert left.contains(point) == holds(ones, point)
            assert both.contains(point) == (holds(ones, point) and not holds(others, point))
        assert both.empty() == (not any(not holds(others, point) for point in solutions))
        kept = r.sample(NAMES, r.randint(1, 2))
        try:
            narrow = left.project(kept)
        except RefusedError:
            refused += 1
            continue
        answered += 1
        for values in product(range(least - 1, greatest + 2), repeat=len(kept)):
            point = dict(zip(kept, map(Fraction, values), strict=True))
            expected = any(all(each[name] == point[name] for name in kept) for each in solutions)
            assert narrow.contains(point) == expected, (left.text(), kept, narrow.text(), point)
    assert refused > 0 and answered > 0 and empty > 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x + y <= 3", "not a monotone constraint"),
        ("x <= -1 * y", "not a monotone constraint"),
        ("x <= y + z", "not a monotone constraint"),
        ("x = 'Bob'", "no symbols"),
    ],
)
def test_other_constraints_are_refused(text: str, message: str) -> None:
    with pytest.raises(RefusedError, match=message):
        Relation.parse(text, NAMES, theory="monotone")


def test_projections_over_integers_that_leave_gaps_are_refused() -> None:
    relation = Relation.parse("x = 2 * y", ["x", "y"], theory="monotone", numbers="integer")
    with pytest.raises(RefusedError, match="'y' can't be eliminated over the integers"):
        relation.project(["x"])
    assert relation.project(["y"]).text() == "TRUE"


def test_integer_solutions_are_found_without_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    def empty(text: str) -> bool:
        return Relation.parse(text, ["w", *NAMES], theory="monotone", numbers="integer").empty()

    assert not empty("x = 2 * y AND x = 3 * z AND x >= 1")
    assert empty("x = 2 * y AND x = 2 * z + 1")
    assert empty("x = 2 * y AND 2 * x = 3 * z + 1 / 2")
    assert empty("x = 6 * y + 3 AND x = 4 * z")
    text = "z = 6 * x + 2 AND z = 8 * y + 7 AND z = 4 * w + 2"
    assert empty(text)
    # After one pass of tightening only the Omega test decides: a search from above and below has no end.
    monkeypatch.setattr(integers, "_MOST_PASSES", 1)
    assert empty(text)
