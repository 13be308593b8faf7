"""Conjunctions of rows: satisfiability with a proof, the range of a variable, implication and redundant rows.

Rows that share no variables are separate conjunctions, and parallel rows count only as their tightest. What
is left over a single variable is an interval. For more variables, strict rows get a common room that is
maximised: the conjunction is satisfiable if the room can be positive.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from flint import fmpq

from tamis.constraints.atoms import Linear, combination, components, linear, tightest, variables
from tamis.constraints.linear.linear_programs import LinearPrograms
from tamis.constraints.linear.simplex import Matrix, Solution, Vector
from tamis.constraints.theory import Interval

Point = dict[str, Fraction]

_ZERO = fmpq(0)
_EVERYTHING = Interval(None, False, None, False)


@dataclass(frozen=True)
class Refutation:
    """Rows and factors that add up to a false statement such as `0 < 0` (the theorem of Motzkin)."""

    parts: tuple[tuple[Linear, Fraction], ...]

    @property
    def rows(self) -> tuple[Linear, ...]:
        """The rows that contradict each other."""
        return tuple(row for row, _ in self.parts)

    def proves(self) -> bool:
        """Tell if the sum of the parts is false."""
        return combination(self.parts) is False


def solve(rows: Iterable[Linear]) -> Point | Refutation:
    """A point that meets all rows, or the proof that there is none."""
    point: Point = {}
    for part in components(rows):
        found = _solved(tightest(part))
        if isinstance(found, Refutation):
            assert found.proves()
            return found
        point |= found
    return point


def _solved(rows: Sequence[Linear]) -> Point | Refutation:
    """`solve` for rows that are connected by their variables."""
    names = variables(rows)
    if len(names) == 1:
        return _Ends(rows).solved(names[0])
    system = _System(rows, names)
    if (inside := system.inside()) is not None:
        return inside
    solution = system.roomiest()
    if solution.status == "infeasible" or (system.strict and solution.point[-1] <= 0):
        return Refutation(system.parts(solution.multipliers))
    point = system.point(solution)
    assert all(row.holds(point) for row in rows)
    return point


def satisfiable(rows: Iterable[Linear]) -> bool:
    """Tell if some point meets all rows."""
    return not isinstance(solve(rows), Refutation)


def implies(rows: Iterable[Linear], row: Linear) -> bool:
    """Tell if each point that meets `rows` meets `row`."""
    rows = tuple(rows)
    return not any(satisfiable((*rows, negation)) for negation in row.negated())


def range_of(rows: Iterable[Linear], variable: str) -> Interval:
    """The values of `variable` at the points of a satisfiable conjunction: its projection on one variable.

    The result for contradictory rows has no meaning.
    """
    return ranges_of(rows, (variable,))[variable]


def ranges_of(rows: Iterable[Linear], names: Collection[str]) -> dict[str, Interval]:
    """The range of each of these variables (see `range_of`)."""
    found = Projection(rows).ranges(names)
    return dict.fromkeys(names, _EVERYTHING) if found is None else found


class Projection:
    """The projection of a conjunction on single variables.

    By linear programming: the closed conjunction has the same ends, and an end is a value if the conjunction
    can be met there. All programs have the same constraints, so each begins where another one ended.
    """

    def __init__(self, rows: Iterable[Linear]) -> None:
        self._parts = [(variables(part), tightest(part)) for part in components(rows)]
        self._systems: dict[int, _System] = {}

    @property
    def variables(self) -> frozenset[str]:
        """The variables of the rows."""
        return frozenset(name for known, _ in self._parts for name in known)

    def ranges(self, names: Collection[str]) -> dict[str, Interval] | None:
        """The range of each of these variables (see `range_of`); None if no point meets all rows."""
        found = dict.fromkeys(names, _EVERYTHING)
        for at, (known, rows) in enumerate(self._parts):
            wanted = [name for name in known if name in found]
            if len(known) == 1 and wanted:
                ends = _Ends(rows)
                if isinstance(ends.solved(known[0]), Refutation):
                    return None
                found[known[0]] = ends.interval
                continue
            if wanted:
                system = self._systems.get(at)
                if system is None:
                    system = self._systems[at] = _System(rows, known)
                for name in wanted:
                    (low, low_closed), (high, high_closed) = (system.end(name, sign) for sign in (-1, 1))
                    found[name] = Interval(low, low_closed, high, high_closed)
                if system.met:
                    continue
            if isinstance(_solved(rows), Refutation):
                return None
        return found


def irredundant(rows: Iterable[Linear]) -> tuple[Linear, ...]:
    """An equivalent conjunction without rows that the others imply, and with equations in place of opposite
    rows.

    A contradictory conjunction keeps its rows.
    """
    kept = list(_tightest(rows))
    if not satisfiable(kept):
        return tuple(kept)
    for row in sorted(kept, key=lambda row: (row.op == "=", -len(row.terms))):
        others = [other for other in kept if other is not row]
        if implies(others, row):
            kept = others
    return tuple(kept)


def _tightest(rows: Iterable[Linear]) -> Iterable[Linear]:
    """Of parallel inequalities the tightest; two opposite ones that leave a single value as one equation."""
    kept = tightest(rows)
    equations = {row: None for row in kept if row.op == "="}
    found = {row.terms: row for row in kept if row.op != "="}
    for terms, row in tuple(found.items()):
        opposite = found.get(tuple((name, -value) for name, value in terms))
        closed = opposite is not None and row.op == opposite.op == "<="
        if opposite is not None and closed and row.constant == -opposite.constant:
            equation = linear(terms, "=", row.constant)
            assert isinstance(equation, Linear)
            equations[equation] = None
            del found[terms], found[opposite.terms]
    return (*equations, *found.values())


class _Ends:
    """Rows over a single variable: the row that limits it most at each end, if there is one.

    In normal form the coefficient of such a row is 1 or -1, and 1 in an equation.
    """

    def __init__(self, rows: Iterable[Linear]) -> None:
        self._lower: tuple[Fraction, Linear] | None = None
        self._upper: tuple[Fraction, Linear] | None = None
        for row in rows:
            ((_, coefficient),) = row.terms
            value, strict = row.constant * coefficient, row.op == "<"
            if row.op == "=" or coefficient > 0:
                above: tuple[Fraction, Linear] | None = self._upper
                if above is None or (value, not strict) < (above[0], above[1].op != "<"):
                    self._upper = value, row
            if row.op == "=" or coefficient < 0:
                below: tuple[Fraction, Linear] | None = self._lower
                if below is None or (value, strict) > (below[0], below[1].op == "<"):
                    self._lower = value, row

    @property
    def interval(self) -> Interval:
        """The values of the variable."""
        (low, below), (high, above) = self._lower or (None, None), self._upper or (None, None)
        return Interval(
            low, below is not None and below.op != "<", high, above is not None and above.op != "<"
        )

    def solved(self, variable: str) -> Point | Refutation:
        """A value of the variable, or the proof that there is none."""
        if self._lower is None or self._upper is None:
            only = self._lower or self._upper
            assert only is not None
            return {variable: only[0] + (1 if self._lower else -1)}
        (low, below), (high, above) = self._lower, self._upper
        if low < high or (low == high and "<" not in (below.op, above.op)):
            return {variable: (low + high) / 2}
        return Refutation(((above, Fraction(1)), (below, Fraction(-1 if below.op == "=" else 1))))


class _System:
    """A conjunction as a matrix: an equation is two lines."""

    def __init__(self, rows: Sequence[Linear], names: Sequence[str]) -> None:
        self._rows, self._names = rows, list(names)
        self.strict = any(row.op == "<" for row in rows)
        place = {name: j for j, name in enumerate(names)}
        self._origins: list[tuple[Linear, int]] = []
        self._matrix: Matrix = []
        self._bounds: Vector = []
        for row in rows:
            for sign in (1, -1) if row.op == "=" else (1,):
                line = [_ZERO] * len(names)
                for name, value in row.terms:
                    line[place[name]] = fmpq(value * sign)
                self._origins.append((row, sign))
                self._matrix.append(line)
                self._bounds.append(fmpq(row.constant.numerator, row.constant.denominator) * sign)
        self._programs = LinearPrograms(self._matrix, self._bounds, len(names))
        self._strict_lines = [
            ([(j, value) for j, value in enumerate(line) if value != 0], bound)
            for line, bound, (row, _) in zip(self._matrix, self._bounds, self._origins, strict=True)
            if row.op == "<"
        ]
        self._points: list[Vector] = []  # where ends of variables were found
        self._met = False  # all rows, at one of these points

    def inside(self) -> Point | None:
        """A point that meets all rows; None if none is found at once."""
        values = self._programs.inside()
        if values is None:
            return None
        point = self._named(values)
        return point if all(row.holds(point) for row in self._rows) else None

    def roomiest(self) -> Solution:
        """The point with the greatest room of the strict rows, at most 1. The room is the last variable."""
        columns = len(self._names)
        if not self.strict:
            return self._programs.maximise([_ZERO] * columns)
        matrix = [
            [*line, fmpq(row.op == "<")] for line, (row, _) in zip(self._matrix, self._origins, strict=True)
        ]
        room = [*[_ZERO] * columns, fmpq(1)]
        return LinearPrograms([*matrix, room], [*self._bounds, fmpq(1)], columns + 1).maximise(room)

    def end(self, variable: str, sign: int) -> tuple[Fraction | None, bool]:
        """The greatest value of `variable`, the least for sign -1, and if it is reached; None if infinite."""
        at = self._names.index(variable)
        solution = self._programs.end(at, sign)
        if solution.status == "infeasible":
            return None, False
        self._points.append(solution.point)
        if solution.status == "unbounded":
            return None, False
        end = _fraction(solution.point[at])
        if self._strictly(solution.point):
            self._met = True
            return end, True
        # A row with a multiplier holds with equality wherever the end is reached.
        multipliers = zip(self._origins, solution.multipliers, strict=True)
        if any(value != 0 and row.op == "<" for (row, _), value in multipliers):
            return end, False
        row = linear([(variable, 1)], "=", end)
        assert isinstance(row, Linear)
        return end, satisfiable((*self._rows, row))

    @property
    def met(self) -> bool:
        """True if a point is known that meets all rows: where `end` found an end, or in the middle of all of
        these. If not, another point may meet them.
        """
        if not self._met and self._points:
            count = len(self._points)
            # The proof of each point shows that it meets the closed rows; so does the middle.
            self._met = self._strictly(
                [sum(values, _ZERO) / count for values in zip(*self._points, strict=True)]
            )
        return self._met

    def _strictly(self, point: Vector) -> bool:
        """Tell if a point meets the strict rows."""
        return all(
            sum((value * point[j] for j, value in line), _ZERO) < bound for line, bound in self._strict_lines
        )

    def point(self, solution: Solution) -> Point:
        """The values of the variables in a solution."""
        return self._named(solution.point)

    def _named(self, values: Vector) -> Point:
        pairs = zip(self._names, values, strict=False)  # the room is no variable of the rows
        return {name: _fraction(value) for name, value in pairs}

    def parts(self, multipliers: Vector) -> tuple[tuple[Linear, Fraction], ...]:
        """The rows with factors other than 0."""
        factors: dict[Linear, Fraction] = {}
        for (row, sign), value in zip(self._origins, multipliers, strict=False):
            factors[row] = factors.get(row, Fraction(0)) + sign * Fraction(int(value.p), int(value.q))
        return tuple((row, factor) for row, factor in factors.items() if factor)


def _fraction(value: fmpq) -> Fraction:
    return Fraction(int(value.p), int(value.q))
