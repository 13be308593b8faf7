"""Monotone constraints against Fourier-Motzkin elimination without pruning, and point by point."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import combinations, pairwise, product

import pytest
from tests.oracle.constraints import fourier_motzkin
from tests.oracle.constraints.fourier_motzkin import Constraint
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.constraints.monotone import network as networks
from tamis.constraints.monotone.lines import Line, compose, envelope
from tamis.constraints.monotone.network import Bound, Network, Unsatisfiable, drop_redundant

SLOPES = [Fraction(1, 2), Fraction(1), Fraction(1), Fraction(2), Fraction(3)]
HALVES = [Fraction(n, 2) for n in range(-7, 8)]


def random_line(r: random.Random) -> Line:
    return Line(r.choice(SLOPES), Fraction(r.randint(-6, 6), 2), r.random() < 0.4)


def random_constraints(r: random.Random, names: list[str], most: int) -> list[Constraint]:
    """Bounds, monotone constraints, and equalities as two of them; often through the same corners."""
    found: list[Constraint] = []
    widest = r.choice((1, 3))
    while len(found) < most:
        strict = r.random() < 0.4
        if r.random() < 0.35:
            constant = Fraction(r.randint(-widest, widest))
            found.append(({r.choice(names): Fraction(r.choice((-1, 1)))}, constant, strict))
            continue
        x, y = r.sample(names, 2)
        slope, intercept = r.choice(SLOPES), Fraction(r.randint(-widest, widest))
        equal = r.random() < 0.15
        found.append(({x: Fraction(1), y: -slope}, intercept, strict and not equal))
        if equal:
            found.append(({x: Fraction(-1), y: slope}, -intercept, False))
    return found


def network_of(constraints: list[Constraint], integer: bool = False) -> Network:
    """Raises `Unsatisfiable` if a variable's bounds exclude each other."""
    network = Network(integer)
    for terms, constant, strict in constraints:
        if len(terms) == 1:
            ((name, sign),) = terms.items()
            (network.add_upper if sign > 0 else network.add_lower)(name, Bound(constant / sign, strict))
            continue
        (x, y) = sorted(terms, key=lambda name: -terms[name])
        network.add_lines(x, y, [Line(-terms[y] / terms[x], constant / terms[x], strict)])
    return network


def constraints_of(network: Network, names: set[str]) -> list[Constraint]:
    found: list[Constraint] = [
        ({name: Fraction(sign)}, sign * bound.value, bound.strict)
        for sign, side in ((-1, network.lower), (1, network.upper))
        for name, bound in side.items()
    ]
    found += [
        ({x: Fraction(1), y: -line.slope}, line.intercept, line.strict)
        for (x, y), lines in network.clusters.items()
        for line in lines
    ]
    return [each for each in found if each[0].keys() <= names]


def same(ones: list[Constraint], others: list[Constraint]) -> bool:
    return fourier_motzkin.implies(ones, others) and fourier_motzkin.implies(others, ones)


@pytest.mark.parametrize("times", also_long(200))
def test_an_envelope_is_the_minimum_and_has_no_redundant_line(times: int) -> None:
    r = random.Random(SEED)
    for _ in range(cases(1 / 60) * times):
        lines = [random_line(r) for _ in range(r.randint(1, 7))]
        pieces = envelope(lines)
        kept = [piece.line for piece in pieces]
        places = _places(lines)
        assert _least(kept, places) == _least(lines, places)
        for piece in pieces:
            assert not same(_cluster(kept), _cluster([line for line in kept if line != piece.line]))
            for value in places:
                inside = (piece.lower is None or piece.lower <= value) and (
                    piece.upper is None or value <= piece.upper
                )
                assert not inside or piece.line.at(value) == min(line.at(value) for line in lines)


def _cluster(lines: list[Line]) -> list[Constraint]:
    return [({"x": Fraction(1), "y": -line.slope}, line.intercept, line.strict) for line in lines]


def _least(lines: list[Line], places: set[Fraction]) -> list[tuple[Fraction, bool]]:
    """The least value of lines at each place, and False if a strict line has it."""
    return [min((line.at(y), not line.strict) for line in lines) for y in sorted(places)]


def _places(lines: list[Line]) -> set[Fraction]:
    """Where two lines cross, and places between and beyond."""
    ends = sorted({one.meets(other) for one, other in combinations(lines, 2) if one.slope != other.slope})
    between = [(one + other) / 2 for one, other in pairwise(ends)]
    return {*ends, *between, *(end + step for end in ends or [Fraction(0)] for step in (-1, 1))}


@pytest.mark.parametrize("times", also_long(200))
def test_compositions_are_all_that_two_clusters_imply_and_less_than_their_sum(times: int) -> None:
    r = random.Random(SEED + 1)
    most = -10
    for _ in range(cases(1 / 60) * times):
        first, second = ([random_line(r) for _ in range(r.randint(1, 6))] for _ in range(2))
        outer, inner = envelope(first), envelope(second)
        made = compose(outer, inner)
        assert len(made) < len(outer) + len(inner)
        most = max(most, len(made) - len(outer) - len(inner))
        between = [({"x": Fraction(1), "y": -a}, b, strict) for a, b, strict in first]
        between += [({"y": Fraction(1), "z": -a}, b, strict) for a, b, strict in second]
        assert same(
            fourier_motzkin.projected(between, "xz"),
            [({"x": Fraction(1), "z": -a}, b, strict) for a, b, strict in made],
        )
    assert most == -1  # the bound of Theorem 3 is reached


def test_more_compositions_than_the_bound_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Algorithm I, which composes all pairs, fails the assertion that Algorithm II meets."""
    lines = [Line(Fraction(n), Fraction(-n * n), False) for n in (1, 2, 3)]
    network = Network()
    network.add_lines("x", "y", lines)
    network.add_lines("y", "z", lines)
    network.copy().compose_through("y")
    monkeypatch.setattr(
        networks, "compose", lambda one, other: [a.line.after(b.line) for a, b in product(one, other)]
    )
    with pytest.raises(AssertionError, match="Theorem 3"):
        network.compose_through("y")


@pytest.mark.parametrize("times", also_long(200))
def test_a_consistent_network_restricts_to_every_projection_and_is_canonical(times: int) -> None:
    r = random.Random(SEED + 2)
    found = {True: 0, False: 0}
    for _ in range(cases(1 / 120) * times):
        names = list("wxyz")[: r.randint(2, 4)]
        constraints = random_constraints(r, names, r.randint(2, 8))
        network = _consistent(constraints)
        found[network is not None] += 1
        assert (network is not None) == fourier_motzkin.satisfiable(constraints)
        if network is None:
            continue
        for size in range(1, len(names) + 1):
            for subset in combinations(names, size):
                kept = constraints_of(network, set(subset))
                assert same(fourier_motzkin.projected(constraints, subset), kept)
        for pair in network.clusters:
            kept = constraints_of(network, set(pair))
            for each in kept:
                if len(each[0]) == 2:
                    assert not same(kept, [other for other in kept if other != each])
        rewritten = [*constraints, *(c for c in constraints_of(network, set(names)) if r.random() < 0.5)]
        other = _consistent(r.sample(rewritten, len(rewritten)))
        assert other is not None
        assert (other.lower, other.upper, other.clusters) == (network.lower, network.upper, network.clusters)
    assert min(found.values()) > 0


@pytest.mark.parametrize("times", also_long(50))
def test_equal_sets_of_points_have_equal_networks(times: int) -> None:
    """Two variables between -1 and 1, so that many constraints pass through the same corners."""
    r = random.Random(SEED + 4)
    places = [{"x": x, "y": y} for x, y in product([Fraction(n, 4) for n in range(-5, 6)], repeat=2)]
    known: dict[tuple[bool, ...], list[tuple[list[Constraint], Network]]] = {}
    corners = equal = 0
    for _ in range(cases(1 / 60) * times):
        constraints: list[Constraint] = [
            ({"x": Fraction(1)}, Fraction(r.choice((0, 1))), r.random() < 0.2),
            ({"y": Fraction(-1)}, Fraction(r.choice((0, 1))), r.random() < 0.2),
        ]
        constraints = [each for each in constraints if r.random() < 0.8]
        for _ in range(r.randint(1, 3)):
            slope, through = r.choice(SLOPES), (Fraction(r.choice((0, 1))), Fraction(r.choice((0, -1))))
            constraints.append(
                ({"x": Fraction(1), "y": -slope}, through[0] - slope * through[1], r.random() < 0.7)
            )
        network = _consistent(constraints)
        assert network is not None
        kept = constraints_of(network, {"x", "y"})
        assert same(constraints, kept)
        corners += any(len(lines) > 1 for lines in network.clusters.values())
        signature = tuple(fourier_motzkin.holds(constraints, place) for place in places)
        for others, other in known.setdefault(signature, []):
            same_form = (network.lower, network.upper, network.clusters) == (
                other.lower,
                other.upper,
                other.clusters,
            )
            if not same_form:
                assert not same(kept, others)
        known[signature] = [(kept, network), *known[signature]][:3]
        equal += len(known[signature]) > 1
    assert corners > 0 and equal > 0


def _consistent(constraints: list[Constraint]) -> Network | None:
    try:
        network = network_of(constraints)
        network.make_consistent()
    except Unsatisfiable:
        return None
    drop_redundant(network)
    return network


@pytest.mark.parametrize("times", also_long(200))
def test_elimination_leaves_the_projection(times: int) -> None:
    r = random.Random(SEED + 3)
    for _ in range(cases(1 / 60) * times):
        names = list("vwxyz")[: r.randint(2, 5)]
        constraints = random_constraints(r, names, r.randint(2, 9))
        gone = r.sample(names, r.randint(1, len(names) - 1))
        kept = set(names) - set(gone)
        expected = fourier_motzkin.projected(constraints, kept)
        try:
            network = network_of(constraints)
            for name in gone:
                network.eliminate(name)
        except Unsatisfiable:
            assert not fourier_motzkin.satisfiable(constraints)
        else:
            assert same(expected, constraints_of(network, kept))


def test_a_strict_constraint_with_a_domain_of_one_point_is_not_redundant() -> None:
    """Proposition 1 of goldin-1997 holds for `<=` only: `y < 1 * x` excludes the point (0, 0) here."""
    lines = [
        Line(Fraction(2), Fraction(0), False),
        Line(Fraction(1, 2), Fraction(0), False),
        Line(Fraction(1), Fraction(0), True),
    ]
    middle = envelope(lines)[1]
    assert middle.line == lines[2] and middle.point
    constraints = [({"x": Fraction(1), "y": -a}, b, strict) for a, b, strict in lines]
    constraints.append(({"y": Fraction(1), "z": Fraction(-1)}, Fraction(0), False))
    network = network_of(constraints)
    network.eliminate("y")
    for x, z in product(HALVES, HALVES):
        expected = fourier_motzkin.holds(fourier_motzkin.projected(constraints, "xz"), {"x": x, "z": z})
        assert network.contains({"x": x, "z": z}) == expected
    assert not network.contains({"x": Fraction(0), "z": Fraction(0)})
