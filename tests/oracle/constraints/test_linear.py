"""Linear constraints against textbook elimination: satisfiability, ranges, projection, and all operations."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product

import pytest
from tests.oracle.constraints import textbook_elimination as textbook
from tests.oracle.constraints.random_linear import (
    Atom,
    Points,
    random_atom,
    random_disjuncts,
    random_points,
    text,
)

from tamis.constraints.atoms import Linear, linear
from tamis.constraints.linear import linear_programs
from tamis.constraints.linear.conjunctions import Refutation, implies, irredundant, range_of, solve
from tamis.constraints.linear.fourier_motzkin import eliminate
from tamis.constraints.relation import Relation
from tamis.errors import RefusedError

NAMES = ("w", "x", "y", "z")


def _rows(atoms: list[Atom]) -> list[Linear] | None:
    """The rows of constraints; None if one is false without variables."""
    out = []
    for coefficients, op, limit in atoms:
        sign = -1 if op[0] == ">" else 1
        terms = [(name, value * sign) for name, value in coefficients.items()]
        row = linear(terms, "<" if op in "<>" else "=" if op == "=" else "<=", limit * sign)
        if row is False:
            return None
        if isinstance(row, Linear):
            out.append(row)
    return out


def _check_conjunction(random_: random.Random) -> bool:
    names = NAMES[: random_.randint(1, 4)]
    atoms = [random_atom(random_, names) for _ in range(random_.randint(1, 7))]
    system = textbook.constraints(atoms)
    rows = _rows(atoms)
    found = None if rows is None else solve(rows)
    assert (found is not None and not isinstance(found, Refutation)) == textbook.satisfiable(system), atoms
    if isinstance(found, Refutation):
        _check_refutation(found)
    if rows is None or found is None or isinstance(found, Refutation):
        return False
    for name in names:
        own = range_of(rows, name)
        ends = (own.lower, own.lower_closed), (own.upper, own.upper_closed)
        assert ends == textbook.range_of(system, name), (atoms, name)
    gone = random_.sample(names, random_.randint(0, len(names)))
    projected = eliminate(rows, gone)
    assert projected is not None
    left = [name for name in names if name not in gone]
    assert {name for row in projected for name in row.names} <= set(left)
    for point in random_points(random_, left, 12):
        inside = textbook.satisfiable(textbook.substitute(system, point))
        assert all(row.holds(point) for row in projected) == inside, (atoms, gone, point)
    for row in projected:
        assert not implies([other for other in projected if other is not row], row)
    return True


def _check_refutation(found: Refutation) -> None:
    """The sum of the rows times factors is false, added up without the product's code."""
    total: dict[str, Fraction] = {}
    limit, strict = Fraction(0), False
    for row, factor in found.parts:
        assert factor > 0 or row.op == "="
        for name, value in row.terms:
            total[name] = total.get(name, Fraction(0)) + factor * value
        limit += factor * row.constant
        strict = strict or row.op == "<"
    assert not any(total.values())
    assert limit < 0 or (limit == 0 and strict)


@pytest.mark.parametrize("small", [linear_programs.SMALL, 1], ids=["exact", "floating point"])
def test_conjunctions(small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Satisfiability, ranges and projections are right, with and without the help of HiGHS."""
    monkeypatch.setattr(linear_programs, "SMALL", small)
    random_ = random.Random(1)
    satisfiable = sum(_check_conjunction(random_) for _ in range(150))
    assert 30 < satisfiable < 120


def test_irredundant_keeps_the_points() -> None:
    """Rows are only removed if the rest implies them."""
    random_ = random.Random(2)
    for _ in range(200):
        atoms = [random_atom(random_, NAMES[:3]) for _ in range(8)]
        rows = _rows(atoms)
        if rows is None:
            continue
        left = irredundant(rows)
        for point in random_points(random_, NAMES[:3], 25):
            assert all(row.holds(point) for row in left) == all(row.holds(point) for row in rows)


def _parsed(names: tuple[str, ...], disjuncts: list[list[Atom]], numbers: str = "real") -> Relation:
    return Relation.parse(text(disjuncts), names, theory="linear", numbers=numbers)


def _again(relation: Relation) -> Relation:
    """The relation read from its text, for which all extraneous variables are eliminated."""
    return Relation.parse(relation.text(), relation.variables, theory="linear")


class _Pair:
    """The relation under test, lazily and eagerly, and its points by the oracle."""

    def __init__(self, lazy: Relation, eager: Relation, points: Points) -> None:
        self.lazy, self.eager, self.points = lazy, eager, points

    @classmethod
    def random(cls, random_: random.Random, names: tuple[str, ...]) -> _Pair:
        disjuncts = random_disjuncts(random_, names)
        parsed = _parsed(names, disjuncts)
        return cls(parsed, parsed, Points.of(names, disjuncts))


def _step(random_: random.Random, one: _Pair) -> _Pair:
    """One random operation."""
    names = one.points.names
    match random_.choice(("select", "project", "project", "join", "union", "difference", "rename")):
        case "select":
            disjuncts = random_disjuncts(random_, names, 1, 2)
            condition = text(disjuncts)
            return _Pair(
                one.lazy.select(condition),
                one.eager.select(condition),
                one.points.join(Points.of(names, disjuncts)),
            )
        case "project":
            kept = tuple(random_.sample(names, random_.randint(1, len(names))))
            return _Pair(one.lazy.project(kept), one.eager.project(kept), one.points.project(kept))
        case "join":
            other = _Pair.random(random_, tuple(random_.sample(NAMES, 2)))
            other = (
                _Pair(
                    other.lazy.project([other.points.names[0]]),
                    other.eager.project([other.points.names[0]]),
                    other.points.project(other.points.names[:1]),
                )
                if random_.random() < 0.5
                else other
            )
            return _Pair(
                one.lazy.join(other.lazy), one.eager.join(other.eager), one.points.join(other.points)
            )
        case "union":
            other = _Pair.random(random_, names)
            return _Pair(
                one.lazy.union(other.lazy), one.eager.union(other.eager), one.points.union(other.points)
            )
        case "difference":
            hidden = next(name for name in (*NAMES, "v") if name not in names)
            other = _Pair.random(random_, (*names, hidden))
            subtrahend = other.lazy.project(names)
            return _Pair(
                one.lazy.difference(subtrahend),
                one.eager.difference(_again(subtrahend)),
                one.points.difference(other.points.project(names)),
            )
    shuffled = dict(zip(names, random_.sample(names, len(names)), strict=True))
    return _Pair(one.lazy.rename(shuffled), one.eager.rename(shuffled), one.points.rename(shuffled))


def _check_operations(random_: random.Random) -> None:
    pair = _Pair.random(random_, NAMES[: random_.randint(2, 3)])
    for _ in range(3):
        pair = _step(random_, pair)
        pair = _Pair(pair.lazy, _again(pair.eager), pair.points)
        assert set(pair.lazy.variables) == set(pair.points.names)
    known = _again(pair.lazy)
    for point in random_points(random_, pair.points.names, 12):
        inside = pair.points.contains(point)
        assert pair.lazy.contains(point) == inside
        assert pair.eager.contains(point) == inside
        assert known.contains(point) == inside
    empty = not any(textbook.satisfiable(list(system)) for system in pair.points.systems)
    assert pair.lazy.empty() == pair.eager.empty() == empty


def test_operations() -> None:
    """Each operation has the points of the operation on points; lazy and eager evaluation agree."""
    random_ = random.Random(3)
    for _ in range(120):
        _check_operations(random_)


@pytest.mark.soundness
def test_operations_for_long() -> None:
    """The same with other seeds."""
    for seed in range(100, 130):
        random_ = random.Random(seed)
        for _ in range(120):
            _check_operations(random_)


def test_disjoint_differences() -> None:
    """The tuples of the difference of one tuple have no point in common."""
    random_ = random.Random(4)
    for _ in range(40):
        one, other = (_parsed(NAMES[:2], random_disjuncts(random_, NAMES[:2], 1)) for _ in range(2))
        found = one.difference(other)
        for point in random_points(random_, NAMES[:2], 20):
            assert sum(found.theory.contains(each, point) for each in found.tuples) <= 1


BOX = range(-4, 5)


def test_whole_numbers() -> None:
    """Over whole numbers: emptiness, intervals, and projections as far as they are closed, in a box."""
    random_ = random.Random(5)
    closed = refused = 0
    for _ in range(60):
        names = NAMES[: random_.randint(1, 3)]
        limits: list[Atom] = [
            ({name: 1}, op, Fraction(end)) for name in names for op, end in ((">=", -4), ("<=", 4))
        ]
        atoms = [
            ({n: v * random_.choice((1, 1, 3)) for n, v in terms.items()}, op, limit)
            for terms, op, limit in (random_atom(random_, names) for _ in range(random_.randint(1, 3)))
        ]
        relation = _parsed(names, [[*atoms, *limits]], "integer")
        points = [
            dict(zip(names, map(Fraction, values), strict=True)) for values in product(BOX, repeat=len(names))
        ]
        inside = [
            p for p in points if textbook.satisfiable(textbook.substitute(textbook.constraints(atoms), p))
        ]
        assert relation.empty() == (not inside), atoms
        assert all(relation.contains(point) == (point in inside) for point in points)
        for name in names if inside else ():
            own = relation.interval(name)
            assert own is not None
            values = [point[name] for point in inside]
            assert (own.lower, own.upper) == (min(values), max(values)), (atoms, name)
        kept = random_.sample(names, random_.randint(0, len(names)))
        try:
            projected = relation.project(kept)
        except RefusedError:
            refused += 1
            continue
        closed += len(kept) < len(names)
        shadows = [{name: point[name] for name in kept} for point in inside]
        for shadow in product(BOX, repeat=len(kept)):
            point = dict(zip(kept, map(Fraction, shadow), strict=True))
            assert projected.contains(point) == (point in shadows), (atoms, kept, point)
    assert closed > 8
    assert refused > 1


def test_integer_operations() -> None:
    """Selections, joins, unions and differences over whole numbers have the points of the sets."""
    random_ = random.Random(6)
    names = NAMES[:2]
    for _ in range(80):
        disjuncts = [random_disjuncts(random_, names) for _ in range(2)]
        one, two = (_parsed(names, each, "integer") for each in disjuncts)
        left, right = (Points.of(names, each) for each in disjuncts)
        results = one.join(two), one.union(two), one.difference(two)
        found = 0
        for values in product(BOX, repeat=2):
            point = dict(zip(names, map(Fraction, values), strict=True))
            a, b = left.contains(point), right.contains(point)
            assert [each.contains(point) for each in results] == [a and b, a or b, a and not b]
            found += a and not b
        assert not (found and results[2].empty())
