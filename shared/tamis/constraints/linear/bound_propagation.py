"""Bound propagation: the ends of variables that follow from one row after the other.

A row limits each of its variables by the limits of its other variables. If no limit changes after a few
rounds, each is a combination of rows, whose factors are read from its derivation. It is the end of its
variable if some point meets all rows there. Values for such a point are chosen one variable after the other.
Factors and point together prove the end, as they prove the answer of a linear program, but without the
simplex method. Not every end is found: a limit may be greater if rows have several variables in common.
"""

from __future__ import annotations

from flint import fmpq

from tamis.constraints.linear.simplex import Solution, SparseMatrix, Vector

# Limits that follow from each other in a cycle may come nearer to their ends forever.
_ROUNDS = 6
_ZERO, _ONE, _TWO = fmpq(0), fmpq(1), fmpq(2)

# Place 2 * j stands for variable j, and place 2 * j + 1 for the same variable with the other sign.
_Terms = list[
    tuple[int, fmpq]
]  # place of the variable with the sign of its coefficient, and the size of this


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
