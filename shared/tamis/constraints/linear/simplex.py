"""The simplex method in rational numbers, with Bland's rule, which never cycles.

A dictionary (Chvátal, Linear Programming, chapter 2) has a line for every basic variable, as a constant plus
multiples of the nonbasic variables. Variables of the program are free: each becomes basic once, if a
constraint contains it, and then stays basic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from flint import fmpq

Vector = list[fmpq]
Matrix = list[Vector]
SparseMatrix = list[list[tuple[int, fmpq]]]
"""The numbers of each line that aren't 0, with their columns."""


@dataclass(frozen=True)
class Solution:
    """The result of maximising `objective * x` under `matrix * x <= bounds`, with the numbers that prove it.

    optimal: `point`, and `multipliers` of the constraints that add up to the objective; infeasible:
    `multipliers` that add up to `0 <= a negative number`; unbounded: `point`, and a direction `ray` in which
    the objective grows.
    """

    status: Literal["optimal", "infeasible", "unbounded"]
    point: Vector
    multipliers: Vector
    ray: Vector


_ZERO, _ONE = fmpq(0), fmpq(1)
_OBJECTIVE = -1  # the number of the line of the objective


class Simplex:
    """The constraints `matrix * x <= bounds` over `columns` free rationals x, for any number of objectives.

    The first phase runs once. The second phase starts at the optimum of the objective before, which is near
    if the objectives have much in common, and always feasible.

    Variables are numbers: x is 0 … n-1, the slack of constraint i is n + i, the artificial one is n + m. A
    line is a list: its constant, then a coefficient for each item of `nonbasic`.
    """

    def __init__(self, matrix: Matrix, bounds: Vector, columns: int) -> None:
        self._n, self._m = columns, len(bounds)
        self._nonbasic = list(range(self._n))
        self._lines: dict[int, Vector] = {
            self._n + i: [bound, *(-value for value in row)]
            for i, (row, bound) in enumerate(zip(matrix, bounds, strict=True))
        }
        self._make_free_variables_basic()
        self._infeasible = self._become_feasible()

    def maximise(self, objective: Vector) -> Solution:
        """Maximise `objective * x`."""
        if self._infeasible is not None:
            return Solution("infeasible", [], self._infeasible, [])
        line = self._line_of(objective)
        # A free variable that isn't basic is in no constraint.
        for at, name in enumerate(self._nonbasic):
            if name < self._n and (change := line[at + 1]) != 0:
                return Solution("unbounded", self._point(), [], self._ray(at, 1 if change > 0 else -1))
        self._lines[_OBJECTIVE] = line
        unlimited = self._improve(_OBJECTIVE)
        line = self._lines.pop(_OBJECTIVE)
        if unlimited is not None:
            return Solution("unbounded", self._point(), [], self._ray(unlimited, 1))
        return Solution("optimal", self._point(), self._multipliers(line), [])

    def _line_of(self, objective: Vector) -> Vector:
        """The objective as a constant plus multiples of the nonbasic variables."""
        line = [_ZERO] * (len(self._nonbasic) + 1)
        for variable, factor in enumerate(objective):
            if factor == 0:
                continue
            own = self._lines.get(variable)
            if own is None:
                line[self._nonbasic.index(variable) + 1] += factor
            else:
                for i, value in enumerate(own):
                    if value != 0:
                        line[i] += factor * value
        return line

    def _make_free_variables_basic(self) -> None:
        for variable in range(self._n):
            at = self._nonbasic.index(variable)
            leaving = next((b for b, line in self._lines.items() if b >= self._n and line[at + 1] != 0), None)
            if leaving is not None:
                self._pivot(leaving, at)

    def _become_feasible(self) -> Vector | None:
        """Phase 1: None once all slacks are at least 0, else the multipliers that show that this can't be."""
        slacks = [b for b in self._lines if b >= self._n]
        worst = min(slacks, key=lambda b: self._lines[b][0], default=None)
        if worst is None or self._lines[worst][0] >= 0:
            return None
        artificial = self._n + self._m
        self._nonbasic.append(artificial)
        for basic, line in self._lines.items():
            line.append(_ONE if basic >= self._n else _ZERO)
        self._pivot(worst, len(self._nonbasic) - 1)
        # The objective of phase 1 is minus the artificial variable, whose line is at hand while it is basic.
        while artificial in self._lines:
            line = self._lines[artificial]
            if line[0] == 0:
                at = next((i for i, value in enumerate(line[1:]) if value != 0), None)
                if at is None:
                    del self._lines[artificial]
                    return None
                self._pivot(artificial, at)
                break
            entering = self._entering([-value for value in line])
            if entering is None:
                return self._multipliers(line, sign=-1)
            leaving = self._leaving(entering, prefer=artificial)
            assert leaving is not None
            self._pivot(leaving, entering)
        self._remove(self._nonbasic.index(artificial))
        return None

    def _improve(self, goal: int) -> int | None:
        """Phase 2: None at the optimum, else the place of a variable that may grow without limit."""
        while True:
            entering = self._entering(self._lines[goal])
            if entering is None:
                return None
            leaving = self._leaving(entering)
            if leaving is None:
                return entering
            self._pivot(leaving, entering)

    def _entering(self, line: Vector) -> int | None:
        """The place of the nonbasic slack with the least number that makes `line` grow."""
        places = [at for at, name in enumerate(self._nonbasic) if name >= self._n and line[at + 1] > 0]
        return min(places, key=lambda at: self._nonbasic[at], default=None)

    def _leaving(self, entering: int, prefer: int | None = None) -> int | None:
        """The basic slack that first becomes 0 while the entering variable grows; the least of several, but
        `prefer` before all others.
        """
        best: tuple[fmpq, bool, int] | None = None
        for basic, line in self._lines.items():
            if basic >= self._n and line[entering + 1] < 0:
                found = (line[0] / -line[entering + 1], basic != prefer, basic)
                best = found if best is None or found < best else best
        return None if best is None else best[2]

    def _pivot(self, leaving: int, at: int) -> None:
        """Exchange the basic variable `leaving` with the nonbasic one at place `at`."""
        line = self._lines.pop(leaving)
        entering, self._nonbasic[at] = self._nonbasic[at], leaving
        factor = -1 / line[at + 1]
        line[at + 1] = fmpq(-1)
        line = [value * factor for value in line]
        for other in self._lines.values():
            share = other[at + 1]
            if share != 0:
                other[at + 1] = _ZERO
                for i, value in enumerate(line):
                    if value != 0:
                        other[i] += share * value
        self._lines[entering] = line

    def _remove(self, at: int) -> None:
        del self._nonbasic[at]
        for line in self._lines.values():
            del line[at + 1]

    def _point(self) -> Vector:
        return [self._lines[j][0] if j in self._lines else _ZERO for j in range(self._n)]

    def _ray(self, at: int, sign: int) -> Vector:
        own = self._nonbasic[at]
        ray = [self._lines[j][at + 1] * sign if j in self._lines else _ZERO for j in range(self._n)]
        if own < self._n:
            ray[own] = fmpq(sign)
        return ray

    def _multipliers(self, line: Vector, sign: int = 1) -> Vector:
        found = [_ZERO] * self._m
        for at, name in enumerate(self._nonbasic):
            if self._n <= name < self._n + self._m:
                found[name - self._n] = -line[at + 1] * sign
        return found
