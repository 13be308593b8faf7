"""Linear programs with exact answers: solved by HiGHS in floating point, then proved in rational numbers.

Of the answer of HiGHS only the basis is used, the set of constraints that hold with equality at the optimum.
The point and the multipliers of this basis are computed in rational numbers, and they prove the answer or
they don't. If they don't, because the program is degenerate or its numbers are too large for floating point,
the simplex method in rational numbers solves the program. Every answer is checked (`proves`).
"""

from __future__ import annotations

import highspy
import numpy as np
from flint import fmpq, fmpq_mat

from tamis.constraints.linear.bound_propagation import BoundPropagation
from tamis.constraints.linear.simplex import Matrix, Simplex, Solution, SparseMatrix, Vector

# Below this size (constraints times variables) the simplex method in rational numbers is faster.
SMALL = 1000
_ZERO, _ONE = fmpq(0), fmpq(1)


class LinearPrograms:
    """The constraints `matrix * x <= bounds` over `columns` free rationals x, with any objectives."""

    def __init__(self, matrix: Matrix, bounds: Vector, columns: int) -> None:
        self._matrix, self._bounds, self._columns = matrix, bounds, columns
        self._sparse = sparse(matrix)
        self._simplex: Simplex | None = None
        self._propagation: BoundPropagation | None = None

    def end(self, column: int, sign: int) -> Solution:
        """Maximise `sign * x[column]`: by bound propagation if that proves the answer."""
        objective = [_ZERO] * self._columns
        objective[column] = fmpq(sign)
        found = self._propagated().end(column, sign)
        if found is not None and proves(found, self._sparse, self._bounds, objective):
            return found
        return self.maximise(objective)

    def inside(self) -> Vector | None:
        """A point that may meet all constraints, and most of them strictly; None if none is found at once."""
        return self._propagated().inside()

    def _propagated(self) -> BoundPropagation:
        if self._propagation is None:
            self._propagation = BoundPropagation(self._sparse, self._bounds, self._columns)
        return self._propagation

    def maximise(self, objective: Vector) -> Solution:
        """Maximise `objective * x`."""
        if len(self._bounds) * self._columns >= SMALL:
            found = _by_floating_point(self._matrix, self._bounds, objective)
            if found is not None:
                return found
        if self._simplex is None:
            self._simplex = Simplex(self._matrix, self._bounds, self._columns)
        exact = self._simplex.maximise(objective)
        assert proves(exact, self._sparse, self._bounds, objective)
        return exact


def proves(solution: Solution, matrix: SparseMatrix, bounds: Vector, objective: Vector) -> bool:
    """Tell if the numbers of `solution` prove it: weak duality, Farkas' lemma, or a ray."""
    if solution.status != "infeasible":
        slack = (b - _times(row, solution.point) for row, b in zip(matrix, bounds, strict=True))
        if any(value < 0 for value in slack):
            return False
    if solution.status == "unbounded":
        recedes = all(_times(row, solution.ray) <= 0 for row in matrix)
        return recedes and _product(objective, solution.ray) > 0
    multipliers = solution.multipliers
    if any(value < 0 for value in multipliers):
        return False
    limit = _product(multipliers, bounds)
    total = _sum(multipliers, matrix, len(objective))
    if solution.status == "optimal":
        return total == objective and limit == _product(objective, solution.point)
    return not any(total) and limit < 0


def sparse(matrix: Matrix) -> SparseMatrix:
    """The numbers of a matrix that aren't 0."""
    return [[(j, value) for j, value in enumerate(row) if value != 0] for row in matrix]


def _by_floating_point(matrix: Matrix, bounds: Vector, objective: Vector) -> Solution | None:
    """The proved answer, with the help of HiGHS; None if what it found proves nothing."""
    found = _at_basis(matrix, bounds, objective)
    if found is not None:
        return found
    # A program without an optimum: the least violation of all constraints shows that it is infeasible.
    columns = len(objective)
    elastic = [[*row, fmpq(-1)] for row in matrix] + [[*[_ZERO] * columns, fmpq(-1)]]
    violation = _at_basis(elastic, [*bounds, _ZERO], [*[_ZERO] * columns, fmpq(-1)])
    if violation is None:
        return None
    infeasible = Solution("infeasible", [], violation.multipliers[:-1], [])
    if proves(infeasible, sparse(matrix), bounds, objective):
        return infeasible
    # A direction of unlimited growth is an optimum of the homogeneous program.
    growth = _at_basis([*matrix, objective], [*[_ZERO] * len(bounds), _ONE], objective)
    if growth is None:
        return None
    unbounded = Solution("unbounded", violation.point[:-1], [], growth.point)
    return unbounded if proves(unbounded, sparse(matrix), bounds, objective) else None


def _at_basis(matrix: Matrix, bounds: Vector, objective: Vector) -> Solution | None:
    """The optimum at the basis that HiGHS finds, computed in rational numbers; None if it isn't proved."""
    try:
        numbers = np.array([[float(value) for value in row] for row in matrix])
        limits, costs = ([float(value) for value in vector] for vector in (bounds, objective))
    except OverflowError:
        return None
    basis = _basis(numbers, np.array(limits), np.array(costs))
    if basis is None:
        return None
    tight, basic = basis
    if len(tight) != len(basic):
        return None
    point, multipliers = [_ZERO] * len(objective), [_ZERO] * len(bounds)
    if tight:
        square = fmpq_mat([[matrix[i][j] for j in basic] for i in tight])
        try:
            values = square.solve(fmpq_mat([[bounds[i]] for i in tight]))
            prices = square.transpose().solve(fmpq_mat([[objective[j]] for j in basic]))
        except ZeroDivisionError:
            return None
        for at, j in enumerate(basic):
            point[j] = values[at, 0]
        for at, i in enumerate(tight):
            multipliers[i] = prices[at, 0]
    found = Solution("optimal", point, multipliers, [])
    return found if proves(found, sparse(matrix), bounds, objective) else None


def _basis(
    matrix: np.ndarray[tuple[int, int], np.dtype[np.float64]],
    bounds: np.ndarray[tuple[int], np.dtype[np.float64]],
    objective: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> tuple[list[int], list[int]] | None:
    """The tight rows and the basic columns at the optimum; None without an optimum."""
    rows, columns = matrix.shape
    program = highspy.HighsLp()
    program.num_row_, program.num_col_ = rows, columns
    program.sense_ = highspy.ObjSense.kMaximize
    program.col_cost_ = objective
    program.col_lower_ = np.full(columns, -highspy.kHighsInf)
    program.col_upper_ = np.full(columns, highspy.kHighsInf)
    program.row_lower_, program.row_upper_ = np.full(rows, -highspy.kHighsInf), bounds
    used = matrix != 0
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    program.a_matrix_.start_ = np.concatenate(([0], np.cumsum(used.sum(axis=1))))
    program.a_matrix_.index_ = np.nonzero(used)[1]
    program.a_matrix_.value_ = matrix[used]
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.silent()
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("presolve", "off")  # it would print to standard output, even if silent
    if solver.passModel(program) == highspy.HighsStatus.kError:
        return None
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    basis = solver.getBasis()
    status = highspy.HighsBasisStatus.kBasic
    tight = [i for i, one in enumerate(basis.row_status) if one != status]
    return tight, [j for j, one in enumerate(basis.col_status) if one == status]


def _product(left: Vector, right: Vector) -> fmpq:
    return sum((a * b for a, b in zip(left, right, strict=True) if a != 0), _ZERO)


def _times(row: list[tuple[int, fmpq]], point: Vector) -> fmpq:
    total = _ZERO
    for j, value in row:
        total += value * point[j]
    return total


def _sum(multipliers: Vector, matrix: SparseMatrix, columns: int) -> Vector:
    total = [_ZERO] * columns
    for factor, row in zip(multipliers, matrix, strict=True):
        if factor != 0:
            for j, value in row:
                total[j] += factor * value
    return total
