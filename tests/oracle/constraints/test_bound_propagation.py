"""Bound propagation against the simplex method: all ends that it proves are optima, and no others are."""

from __future__ import annotations

import random
from dataclasses import replace

from flint import fmpq

from tamis.constraints.linear.linear_programs import BoundPropagation, proves, sparse
from tamis.constraints.linear.simplex import Matrix, Simplex, Vector

_FEWEST, _MOST = 2, 5  # variables


def _system(random_: random.Random) -> tuple[Matrix, Vector, int]:
    """Limits of single variables, and rows over two or three. Some systems have no point, others no end."""
    columns = random_.randint(_FEWEST, _MOST)
    matrix, bounds = [], []
    for j in range(columns):
        for sign in (1, -1):
            if random_.random() < 0.8:
                matrix.append([fmpq(sign * (i == j)) for i in range(columns)])
                bounds.append(fmpq(random_.randint(-2, 10)))
    for _ in range(random_.randint(1, 5)):
        line = [fmpq(0)] * columns
        for j in random_.sample(range(columns), min(columns, random_.choice((2, 2, 3)))):
            line[j] = fmpq(random_.choice((-3, -1, -1, 1, 1, 2)), random_.choice((1, 1, 3)))
        limit = fmpq(random_.randint(-4, 12), random_.choice((1, 2)))
        matrix.append(line)
        bounds.append(limit)
        if random_.random() < 0.4:  # an equation
            matrix.append([-value for value in line])
            bounds.append(-limit)
    return matrix, bounds, columns


def _objective(columns: int, column: int, sign: int) -> Vector:
    return [fmpq(sign * (j == column)) for j in range(columns)]


def test_proved_ends_are_the_optima() -> None:
    """Where propagation proves an end, the simplex method has the same, and it proves most of the ends."""
    random_ = random.Random(1)
    proved = ends = without = 0
    for _ in range(600):
        matrix, bounds, columns = _system(random_)
        simplex, rows = Simplex(matrix, bounds, columns), sparse(matrix)
        propagation = BoundPropagation(rows, bounds, columns)
        for column in range(columns):
            for sign in (1, -1):
                objective = _objective(columns, column, sign)
                exact = simplex.maximise(objective)
                found = propagation.end(column, sign)
                ends += exact.status == "optimal"
                without += exact.status != "optimal"
                if found is None or not proves(found, rows, bounds, objective):
                    continue
                proved += 1
                assert exact.status == "optimal", (matrix, bounds, column, sign)
                assert found.point[column] == exact.point[column], (matrix, bounds, column, sign)
    assert ends > 1000
    assert without > 500
    assert proved > 0.6 * ends


def test_a_wrong_end_is_not_proved() -> None:
    """A point that misses a row or the end, and factors that add up to another row, prove nothing."""
    random_ = random.Random(2)
    changed = 0
    for _ in range(200):
        matrix, bounds, columns = _system(random_)
        rows, propagation = sparse(matrix), BoundPropagation(sparse(matrix), bounds, columns)
        for column in range(columns):
            objective = _objective(columns, column, 1)
            found = propagation.end(column, 1)
            if found is None or not proves(found, rows, bounds, objective):
                continue
            changed += 1
            step = fmpq(1, 10**9)
            for by in (step, -step):
                point = [value + by * (j == column) for j, value in enumerate(found.point)]
                assert not proves(replace(found, point=point), rows, bounds, objective)
            for i in range(len(bounds)):
                factors = [value + step * (at == i) for at, value in enumerate(found.multipliers)]
                assert not proves(replace(found, multipliers=factors), rows, bounds, objective)
            tighter = [
                bound - step * (factor != 0) for bound, factor in zip(bounds, found.multipliers, strict=True)
            ]
            assert not proves(found, rows, tighter, objective)
    assert changed > 200


def test_points_inside() -> None:
    """Points that are chosen one variable after the other meet all rows in most systems that have points."""
    random_ = random.Random(3)
    met = satisfiable = 0
    for _ in range(400):
        matrix, bounds, columns = _system(random_)
        possible = Simplex(matrix, bounds, columns).maximise([fmpq(0)] * columns).status != "infeasible"
        satisfiable += possible
        point = BoundPropagation(sparse(matrix), bounds, columns).inside()
        if point is None:
            continue
        holds = all(
            sum((a * b for a, b in zip(row, point, strict=True)), fmpq(0)) <= limit
            for row, limit in zip(matrix, bounds, strict=True)
        )
        assert possible or not holds
        met += holds
    assert met > 0.6 * satisfiable > 100
