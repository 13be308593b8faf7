"""Symbols: operations on equalities and inequalities, by all assignments of enough symbols.

An infinite domain and one with as many further symbols as there are variables satisfy the same conditions.
"""

from __future__ import annotations

from random import Random

import numpy as np
from tests.oracle.constraints.grid_points import axis, code, evaluated, grid, projected
from tests.oracle.constraints.random_constraints import order_atom, symbol_atom
from tests.oracle.random_cases import SEED, cases

from tamis.constraints import Relation

NAMES = ["a", "b", "c", "d"]
SYMBOLS = "pq"
# Two symbols that the texts have, and five more.
DOMAIN = np.array([code(symbol) for symbol in "pqrstuv"])
CASES = cases(1 / 80)


def condition(random: Random, names: list[str], depth: int = 3) -> str:
    if depth == 0 or random.random() < 0.2:
        return symbol_atom(random, names, SYMBOLS)
    one, other = condition(random, names, depth - 1), condition(random, names, depth - 1)
    return f"({one}) {random.choice(['AND', 'AND', 'OR'])} ({other})"


def test_operations() -> None:
    random = Random(SEED + 1)
    points = grid(dict.fromkeys(NAMES, DOMAIN))
    for _ in range(CASES):
        one, two = condition(random, NAMES), condition(random, NAMES)
        first, second = Relation.parse(one, NAMES), Relation.parse(two, NAMES)
        in_one, in_two = evaluated(one, points), evaluated(two, points)
        for found, expected in [
            (first, in_one),
            (first.select(two), in_one & in_two),
            (first.union(second), in_one | in_two),
            (first.difference(second), in_one & ~in_two),
            (first.rename({"a": "d", "d": "a"}), in_one.transpose(3, 1, 2, 0)),
        ]:
            assert np.array_equal(evaluated(found.text(), points), expected)
            assert Relation.parse(found.text(), NAMES).text() == found.text()
        assert first.implies(second) == (not (in_one & ~in_two).any())


def test_projection() -> None:
    random = Random(SEED + 2)
    points = grid(dict.fromkeys(NAMES, DOMAIN))
    for _ in range(CASES):
        text = condition(random, NAMES)
        kept = sorted(random.sample(NAMES, random.randint(1, 3)))
        found = Relation.parse(text, NAMES).project(kept)
        expected = projected(evaluated(text, points), NAMES, kept)
        assert np.array_equal(evaluated(found.text(), grid(dict.fromkeys(kept, DOMAIN))), expected), text


def test_equal_canonical_forms_are_equal_sets_of_points() -> None:
    random = Random(SEED + 3)
    points = grid(dict.fromkeys(NAMES, DOMAIN))
    forms: dict[bytes, object] = {}
    sets: dict[object, bytes] = {}
    for _ in range(10 * CASES):
        text = " AND ".join(symbol_atom(random, NAMES, SYMBOLS) for _ in range(random.randint(1, 7)))
        tuples = Relation.parse(text, NAMES).tuples
        mask = np.packbits(evaluated(text, points)).tobytes()
        form = tuples[0] if tuples else None
        assert forms.setdefault(mask, form) == form, text
        assert sets.setdefault(form, mask) == mask, text


def test_symbols_and_numbers_in_one_relation() -> None:
    random = Random(SEED + 4)
    names = ["a", "b", "x", "y"]
    points = grid({"a": DOMAIN, "b": DOMAIN, "x": axis(-5, 5, 2), "y": axis(-9, 9, 4)})
    for _ in range(CASES):
        parts = [
            random.choice([symbol_atom(random, ["a", "b"], SYMBOLS), order_atom(random, ["x", "y"], "dense")])
            for _ in range(4)
        ]
        text = f"({parts[0]} OR {parts[1]}) AND NOT ({parts[2]} AND {parts[3]})"
        found = Relation.parse(text, names)
        mask = evaluated(text, points)
        assert np.array_equal(evaluated(found.text(), points), mask)
        kept = random.choice([["a", "x"], ["x"], ["b"], ["a", "b", "x"]])
        expected = projected(mask, names, kept)
        values = grid({name: points[name].ravel() for name in kept})
        assert np.array_equal(evaluated(found.project(kept).text(), values), expected)
