"""The theory of monotone constraints: `x <op> a * y + b` with a >= 0, and `x <op> c`.

Source: goldin-1997, chapter 5.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Literal

from tamis.constraints.atoms import Atom, Linear, Value, atom_text, linear, number
from tamis.constraints.linear import integers as omega
from tamis.constraints.monotone import integers
from tamis.constraints.monotone.lines import Line
from tamis.constraints.monotone.network import Bound, Network, Unsatisfiable, drop_redundant
from tamis.constraints.theory import Interval, Numbers
from tamis.errors import RefusedError


@dataclass(frozen=True)
class MonotoneTuple:
    """The constraints of a satisfiable network. Over real numbers it is globally consistent and canonical."""

    lower: tuple[tuple[str, Bound], ...]
    upper: tuple[tuple[str, Bound], ...]
    clusters: tuple[tuple[tuple[str, str], tuple[Line, ...]], ...]

    @staticmethod
    def of(network: Network) -> MonotoneTuple:
        """The constraints of a network."""
        return MonotoneTuple(
            tuple(sorted(network.lower.items())),
            tuple(sorted(network.upper.items())),
            tuple(sorted(network.clusters.items())),
        )

    def network(self, integer: bool = False) -> Network:
        """A network of the same constraints, which can be changed."""
        made = Network(integer)
        made.lower, made.upper, made.clusters = dict(self.lower), dict(self.upper), dict(self.clusters)
        return made

    @cached_property
    def atoms(self) -> tuple[Linear, ...]:
        """Atoms with the same points, of which none is implied by the others."""
        kept = list(dict.fromkeys(_atoms(self)))
        for atom in list(kept):
            rest = [other for other in kept if other != atom]
            if not _satisfiable([*rest, *atom.negated()]):
                kept = rest
        return tuple(_merged(kept))


@dataclass(frozen=True)
class Monotone:
    """Monotone constraints.

    Over real numbers, tuples are globally consistent: projection is restriction. Over integers a projection
    that isn't exact is refused.
    """

    numbers: Numbers
    name: ClassVar[str] = "monotone"
    symbols: ClassVar[bool] = False

    def check(self, atom: Atom) -> None:
        """Raises `RefusedError` unless the atom has one variable, or two with unlike signs."""
        if isinstance(atom, Linear):
            signs = [coefficient > 0 for _, coefficient in atom.terms]
            if len(signs) == 1 or (len(signs) == 2 and signs[0] != signs[1]):
                return
            text = atom_text(atom)
        else:
            text = f"{atom.left} {'=' if atom.equal else '<>'} {atom.right}"
        raise RefusedError(
            f"'{text}' is not a monotone constraint",
            hint="write x <op> a * y + b with a >= 0 or x <op> c, or use theory 'linear'",
        )

    def conjunction(self, atoms: Iterable[Atom]) -> MonotoneTuple | None:
        try:
            network = Network(self._integer)
            for atom in atoms:
                assert isinstance(atom, Linear)  # `check` accepts nothing else
                _add(network, atom)
            return self._finished(network)
        except Unsatisfiable:
            return None

    def conjoin(self, one: MonotoneTuple, other: MonotoneTuple) -> MonotoneTuple | None:
        network = one.network(self._integer)
        try:
            for name, bound in other.lower:
                network.add_lower(name, bound)
            for name, bound in other.upper:
                network.add_upper(name, bound)
            for (x, y), lines in other.clusters:
                network.add_lines(x, y, lines)
            return self._finished(network)
        except Unsatisfiable:
            return None

    def project(self, constraints: MonotoneTuple, names: Collection[str]) -> MonotoneTuple:
        network = constraints.network(self._integer)
        others = set(network.variables) - set(names)
        if not self._integer:
            for name in others:
                network.remove(name)
        elif (found := integers.eliminate(network, others)) is not None:
            raise _inexact(found)
        return MonotoneTuple.of(network)

    def rename(self, constraints: MonotoneTuple, names: Mapping[str, str]) -> MonotoneTuple:
        def new(name: str) -> str:
            return names.get(name, name)

        return MonotoneTuple(
            tuple(sorted((new(name), bound) for name, bound in constraints.lower)),
            tuple(sorted((new(name), bound) for name, bound in constraints.upper)),
            tuple(sorted(((new(x), new(y)), lines) for (x, y), lines in constraints.clusters)),
        )

    def implies(self, one: MonotoneTuple, other: MonotoneTuple) -> bool:
        if self._integer:
            return all(_excluded(one, atom) for atom in _atoms(other))
        lower, upper = dict(one.lower), dict(one.upper)
        return (
            all(
                name in lower and (lower[name].value, lower[name].strict) >= (bound.value, bound.strict)
                for name, bound in other.lower
            )
            and all(
                name in upper
                and (upper[name].value, not upper[name].strict) <= (bound.value, not bound.strict)
                for name, bound in other.upper
            )
            and all(_implies_lines(one, x, y, lines) for (x, y), lines in other.clusters)
        )

    def atoms(self, constraints: MonotoneTuple) -> tuple[Atom, ...]:
        return constraints.atoms

    def contains(self, constraints: MonotoneTuple, point: Mapping[str, Value]) -> bool:
        network = constraints.network()
        return network.contains({name: number(point[name]) for name in network.variables})

    def interval(self, constraints: MonotoneTuple, name: str) -> Interval:
        found = self.project(constraints, [name])
        lower, upper = dict(found.lower).get(name), dict(found.upper).get(name)
        return Interval(
            lower.value if lower else None,
            lower is not None and not lower.strict,
            upper.value if upper else None,
            upper is not None and not upper.strict,
        )

    @property
    def _integer(self) -> bool:
        return self.numbers is Numbers.INTEGER

    def _finished(self, network: Network) -> MonotoneTuple | None:
        """The tuple of a network; None or `Unsatisfiable` if it has no solution."""
        if not self._integer:
            network.make_consistent()
            drop_redundant(network)
            return MonotoneTuple.of(network)
        return MonotoneTuple.of(network) if _has_integer_point(network) else None


def _excluded(found: MonotoneTuple, atom: Linear) -> bool:
    """Tell if an inequality fails nowhere in a tuple of integers."""
    network = found.network(True)
    try:
        for negation in atom.negated():
            _add(network, negation)
        return not _has_integer_point(network)
    except Unsatisfiable:
        return True


def _has_integer_point(network: Network) -> bool:
    """Tell if a network of integers has a solution."""
    found = integers.satisfiable(network)
    return omega.satisfiable(_atoms(MonotoneTuple.of(network))) if found is None else found


def _add(network: Network, atom: Linear) -> None:
    """Add an atom that `Monotone.check` accepts to a network."""
    if atom.op == "=":
        _add(network, Linear(atom.terms, "<=", atom.constant))
        _add(network, Linear(tuple((name, -value) for name, value in atom.terms), "<=", -atom.constant))
        return
    strict = atom.op == "<"
    if len(atom.terms) == 1:
        ((name, coefficient),) = atom.terms
        bound = Bound(atom.constant / coefficient, strict)
        (network.add_upper if coefficient > 0 else network.add_lower)(name, bound)
        return
    (x, a), (y, b) = sorted(atom.terms, key=lambda term: -term[1])
    network.add_lines(x, y, [Line(Fraction(-b, a), atom.constant / a, strict)])


def _atoms(found: MonotoneTuple) -> Iterator[Linear]:
    """The constraints of a tuple as inequalities."""
    for name, bound in found.lower:
        yield _linear({name: Fraction(-1)}, bound.strict, -bound.value)
    for name, bound in found.upper:
        yield _linear({name: Fraction(1)}, bound.strict, bound.value)
    for (x, y), lines in found.clusters:
        for line in lines:
            yield _linear({x: Fraction(1), y: -line.slope}, line.strict, line.intercept)


def _linear(terms: Mapping[str, Fraction], strict: bool, constant: Fraction) -> Linear:
    op: Literal["<", "<="] = "<" if strict else "<="
    atom = linear(terms.items(), op, constant)
    assert isinstance(atom, Linear)  # no coefficient is zero
    return atom


def _merged(atoms: Iterable[Linear]) -> list[Linear]:
    """Replace each pair of opposite inequalities by an equality."""
    out: dict[Linear, None] = {}
    for atom in atoms:
        opposite = Linear(tuple((name, -value) for name, value in atom.terms), "<=", -atom.constant)
        if atom.op == "<=" and opposite in out:
            del out[opposite]
            equal = linear(atom.terms, "=", atom.constant)
            assert isinstance(equal, Linear)
            out[equal] = None
        else:
            out[atom] = None
    return list(out)


def _satisfiable(atoms: Iterable[Linear]) -> bool:
    """Tell if atoms have a real solution."""
    network = Network()
    try:
        for atom in atoms:
            _add(network, atom)
        while network.clusters:
            network.eliminate(_cheapest(network))
    except Unsatisfiable:
        return False
    return True


def _cheapest(network: Network) -> str:
    """The variable whose elimination composes the fewest pairs of clusters."""
    entering, leaving = dict.fromkeys(network.variables, 0), dict.fromkeys(network.variables, 0)
    for x, y in network.clusters:
        leaving[x] += 1
        entering[y] += 1
    return min(network.variables, key=lambda name: entering[name] * leaving[name])


def _implies_lines(one: MonotoneTuple, x: str, y: str, lines: Iterable[Line]) -> bool:
    """Tell if a globally consistent tuple implies `x <= line(y)` for each line: if the restriction does."""
    restricted = one.network()
    for name in set(restricted.variables) - {x, y}:
        restricted.remove(name)
    for line in lines:
        network = restricted.copy()
        try:
            network.add_lines(y, x, [Line(1 / line.slope, -line.intercept / line.slope, not line.strict)])
            network.compose_through(x)
        except Unsatisfiable:
            continue
        return False
    return True


def _inexact(found: integers.Conflict) -> RefusedError:
    one = _linear({found.x: Fraction(1), found.name: -found.first.slope}, False, found.first.intercept)
    other = _linear({found.name: Fraction(1), found.y: -found.second.slope}, False, found.second.intercept)
    return RefusedError(
        f"'{found.name}' can't be eliminated over the integers: '{atom_text(one)}' and '{atom_text(other)}' "
        "may have no integer between them, and monotone constraints can't say for which values there is one",
        hint="use real numbers, or keep the variable",
    )
