"""Time of projections of temporal tuples, beside Fourier and Motzkin's elimination of variables."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from benchmarks.harness import Cell, Result, Say, medians
from tamis.constraints.atoms import Linear, linear
from tamis.constraints.theories.order import OrderTuple, Temporal
from tamis.constraints.theory import Numbers

NAME = "constraints.projection"
SIZES = (2, 4, 8, 16, 32)
CASES = 50
COLUMNS = ("variables", "constraints", "canonical form, µs", "projection, µs", "elimination, µs", "ratio")

Edge = tuple[str, str]
Bounds = dict[Edge, Fraction]


def run(quick: bool, say: Say) -> Result:
    """Run the benchmark. A quick run only shows that it works: its sizes are too small for figures."""
    repeats = 1 if quick else 5
    cases = 5 if quick else CASES
    rows: list[dict[str, Cell]] = []
    for variables in SIZES[:3] if quick else SIZES:
        say(f"{variables} variables")
        rows.append(_row(variables, cases, repeats))
    return Result(
        NAME,
        "Projection of temporal tuples",
        COLUMNS,
        rows,
        {"cases": cases, "repeats": repeats, "quick": quick},
        (
            f"CPU time for one tuple, medians of {repeats} alternating runs over {cases} tuples on one core",
            "each variable has limits, and is compared with two others at random; half of the variables are"
            " dropped",
            "canonical form: from atoms to the tightmost bounds, once for each tuple",
            "elimination: one dropped variable after the other, with the tightest bound of each pair kept",
            "ratio: elimination to projection; both have the same bounds, which the benchmark checks",
        ),
    )


def _row(variables: int, cases: int, repeats: int) -> dict[str, Cell]:
    theory = Temporal(Numbers.INTEGER)
    names = [f"x{number:02}" for number in range(variables)]
    kept = names[: variables // 2]
    systems = [_system(names, seed) for seed in range(cases)]
    atoms = [_atoms(bounds) for bounds in systems]
    tuples = [found for each in atoms if (found := theory.conjunction(each)) is not None]
    if len(tuples) != cases:
        raise AssertionError("the systems are satisfiable by their making")
    works: dict[str, Callable[[], object]] = {
        "canonical": lambda: [theory.conjunction(each) for each in atoms],
        "ours": lambda: [theory.project(each, kept) for each in tuples],
        "theirs": lambda: [_eliminated(bounds, names[variables // 2 :]) for bounds in systems],
    }
    seconds = {name: spent / cases * 1e6 for name, (spent, _) in medians(works, repeats).items()}
    for bounds, found in zip(systems, tuples, strict=True):
        _compare(theory, theory.project(found, kept), _eliminated(bounds, names[variables // 2 :]))
    return {
        "variables": variables,
        "constraints": len(systems[0]),
        "canonical form, µs": seconds["canonical"],
        "projection, µs": seconds["ours"],
        "elimination, µs": seconds["theirs"],
        "ratio": seconds["theirs"] / seconds["ours"],
    }


def _system(names: list[str], seed: int) -> Bounds:
    """Bounds on differences that a random point satisfies; the empty name is the number zero."""
    r = np.random.default_rng(seed)
    point = {"": 0} | {name: int(r.integers(-100, 100)) for name in names}
    pairs = [(name, "") for name in names] + [("", name) for name in names]
    for name in names:
        pairs += [(name, str(other)) for other in r.choice(names, 2) if other != name]
    return {
        (left, right): Fraction(point[left] - point[right] + int(r.integers(0, 20))) for left, right in pairs
    }


def _atoms(bounds: Bounds) -> list[Linear]:
    found = [
        linear([(name, sign) for name, sign in ((left, 1), (right, -1)) if name], "<=", bound)
        for (left, right), bound in bounds.items()
    ]
    return [atom for atom in found if isinstance(atom, Linear)]


def _eliminated(bounds: Bounds, dropped: list[str]) -> Bounds:
    """The bounds without the dropped variables: each bound from above is added to each one from below."""
    found = dict(bounds)
    for name in dropped:
        above = [(left, bound) for (left, right), bound in found.items() if right == name]
        below = [(right, bound) for (left, right), bound in found.items() if left == name]
        found = {edge: bound for edge, bound in found.items() if name not in edge}
        for left, first in above:
            for right, second in below:
                if left != right:
                    edge, total = (left, right), first + second
                    found[edge] = min(found.get(edge, total), total)
    return found


def _compare(theory: Temporal, found: OrderTuple, bounds: Bounds) -> None:
    if theory.conjunction(_atoms(bounds)) != found:
        raise AssertionError("the projection and the elimination differ")
