"""Linear programs with exact answers: solved by HiGHS in floating point, then proved in rational numbers.

Of the answer of HiGHS only the basis is used, the set of constraints that hold with equality at the optimum.
The point and the multipliers of this basis are computed in rational numbers, and they prove the answer or
they don't. If they don't, because the program is degenerate or its numbers are too large for floating point,
the simplex method in rational numbers solves the program. Every answer is checked (`proves`).

A row limits each of its variables by the limits of its other variables. If no limit changes after a few
rounds, each is a combination of rows, whose factors are read from its derivation. It is the end of its
variable if some point meets all rows there. Values for such a point are chosen one variable after the other.
Factors and point together prove the end, as they prove the answer of a linear program, but without the
simplex method. Not every end is found: a limit may be greater if rows have several variables in common.
"""

from __future__ import annotations

import highspy
import numpy as np
from flint import fmpq, fmpq_mat

from tamis.constraints.linear.simplex import Matrix, Simplex, Solution, SparseMatrix, Vector

# Below this size (constraints times variables) the simplex method in rational numbers is faster.
SMALL = 1000
_ZERO, _ONE = fmpq(0), fmpq(1)

# Limits that follow from each other in a cycle may come nearer to their ends forever.
_ROUNDS = 6
_ZERO, _ONE, _TWO = fmpq(0), fmpq(1), fmpq(2)

# Place 2 * j stands for variable j, and place 2 * j + 1 for the same variable with the other sign.
_Terms = list[
    tuple[int, fmpq]
]  # place of the variable with the sign of its coefficient, and the size of this


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


class BoundPropagation:
    """The limits of the variables under `matrix * x <= bounds`. Rows must not be empty."""

    def __init__(self, matrix: SparseMatrix, bounds: Vector, columns: int) -> None:
        self._bounds = bounds
        self._rows: list[_Terms] = [
            [(2 * j, value) if value > 0 else (2 * j + 1, -value) for j, value in row] for row in matrix
        ]
        self._rows_of: list[list[int]] = [[] for _ in range(columns)]
        for i, row in enumerate(matrix):
            for j, _ in row:
                self._rows_of[j].append(i)
        # The greatest value of each place, the row that it is from, and the order in which they were found.
        self._limits: list[fmpq | None] = [None] * (2 * columns)
        self._reasons = [-1] * (2 * columns)
        self._found_at = [0] * (2 * columns)
        self._settled = self._propagate()

    def end(self, column: int, sign: int) -> Solution | None:
        """The greatest value of `sign * x[column]` as the optimum of a linear program; None if not found.

        The solution has to be checked: its point may not meet all rows.
        """
        place = 2 * column + (sign < 0)
        if not self._settled or self._limits[place] is None:
            return None
        multipliers = [_ZERO] * len(self._rows)
        chosen: dict[int, fmpq] = {}
        wanted: dict[int, fmpq] = {place: _ONE}
        while wanted:
            # A limit that was found later is never a reason of one that was found before.
            last = max(wanted, key=self._found_at.__getitem__)
            factor, limit = wanted.pop(last), self._limits[last]
            assert limit is not None
            value = -limit if last & 1 else limit
            if chosen.setdefault(last >> 1, value) != value:
                return None
            reason = self._reasons[last]
            terms = self._rows[reason]
            if len(terms) > 1:
                factor /= next(size for own, size in terms if own == last)
                for own, size in terms:
                    if own != last:
                        wanted[own ^ 1] = wanted.get(own ^ 1, _ZERO) + factor * size
            multipliers[reason] += factor if len(terms) > 1 else factor / terms[0][1]
        return Solution("optimal", self._completed(chosen), multipliers, [])

    def inside(self) -> Vector | None:
        """A point that may meet all rows, far from their ends where it can be; None if none is found."""
        return self._completed({}) if self._settled else None

    def _completed(self, chosen: dict[int, fmpq]) -> Vector:
        """A point with these values of some variables; those of the others fit one after the other."""
        limits, left = list(self._limits), list(map(len, self._rows))
        values = dict(chosen)

        def choose(j: int, value: fmpq) -> None:
            values[j], limits[2 * j], limits[2 * j + 1] = value, value, -value
            for i in self._rows_of[j]:
                left[i] -= 1

        for j, value in chosen.items():
            choose(j, value)
        while len(values) < len(self._rows_of):
            j = self._next(left, values)
            high, low = limits[2 * j], limits[2 * j + 1]
            for i in self._rows_of[j]:
                own, limit = self._limit(i, j, limits)
                if limit is None:
                    continue
                if own & 1:
                    low = limit if low is None or limit < low else low
                else:
                    high = limit if high is None or limit < high else high
            if high is None or low is None:
                choose(j, high - 1 if high is not None else 1 - low if low is not None else _ZERO)
            else:
                choose(j, (high - low) / _TWO)
        return [values[j] for j in range(len(self._rows_of))]

    def _next(self, left: list[int], values: dict[int, fmpq]) -> int:
        """A variable without a value, in the row that has the fewest of these beside some with values.

        `left` has their number for each row.
        """
        begun = (i for i, terms in enumerate(self._rows) if 0 < left[i] < len(terms))
        nearest = min(begun, key=left.__getitem__, default=None)
        names = range(len(self._rows_of)) if nearest is None else (own >> 1 for own, _ in self._rows[nearest])
        return next(j for j in names if j not in values)

    def _limit(self, i: int, j: int, limits: list[fmpq | None]) -> tuple[int, fmpq | None]:
        """The place of variable j in row i, and its greatest value by the limits of the others."""
        total, place, divisor = self._bounds[i], -1, _ONE
        missing = False
        for own, size in self._rows[i]:
            if own >> 1 == j:
                place, divisor = own, size
            elif (other := limits[own ^ 1]) is None:
                missing = True
            else:
                total += size * other
        return place, None if missing else total / divisor

    def _propagate(self) -> bool:
        """Find limits until none changes; False if some still change after some rounds, or contradict."""
        limits, count = self._limits, 0
        order = sorted(range(len(self._rows)), key=lambda i: len(self._rows[i]))
        for _ in range(_ROUNDS):
            changed = False
            for i in order:
                terms, total = self._rows[i], self._bounds[i]
                free = -1  # the place of the only variable without a limit
                for own, size in terms:
                    other = limits[own ^ 1] if len(terms) > 1 else _ZERO
                    if other is not None:
                        total += size * other
                    elif free >= 0:
                        break
                    else:
                        free = own
                else:
                    for own, size in terms:
                        if free not in (-1, own):
                            continue
                        other = limits[own ^ 1] if free < 0 and len(terms) > 1 else None
                        limit = (total if other is None else total - size * other) / size
                        known = limits[own]
                        if known is None or limit < known:
                            count += 1
                            limits[own], self._reasons[own], self._found_at[own] = limit, i, count
                            changed = True
            if not changed:
                return all(
                    high is None or low is None or high + low >= 0
                    for high, low in zip(limits[::2], limits[1::2], strict=True)
                )
        return False
