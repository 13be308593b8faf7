"""Random constraints as SQL text, for theories of order."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

OPERATORS = ("<", "<=", "=", ">=", ">")


def constant(random: Random, largest: int = 3) -> str:
    """A multiple of 1/2, in one of its spellings."""
    halves = random.randint(-2 * largest, 2 * largest)
    return random.choice([f"{halves} / 2", f"{halves / 2}"]) if halves % 2 else f"{halves // 2}"


def order_atom(random: Random, names: Sequence[str], theory: str) -> str:
    """A comparison of one or two variables; of the theory temporal, also of a difference."""
    op = random.choice(OPERATORS)
    if len(names) < 2 or random.random() < 0.4:
        name, value = random.choice(names), constant(random)
        return random.choice([f"{name} {op} {value}", f"{value} {op} {name}"])
    one, other = random.sample(list(names), 2)
    if theory == "dense" or random.random() < 0.3:
        return f"{one} {op} {other}"
    return f"{one} - {other} {op} {constant(random)}"


def symbol_atom(random: Random, names: Sequence[str], symbols: str) -> str:
    """An equality or inequality of two symbols."""
    op, one = random.choice(["=", "<>"]), random.choice(names)
    others = [f"'{symbol}'" for symbol in symbols] + [name for name in names if name != one]
    return f"{one} {op} {random.choice(others)}"


def conjunction(random: Random, names: Sequence[str], theory: str, most: int = 5) -> str:
    """Some atoms that all hold."""
    return " AND ".join(order_atom(random, names, theory) for _ in range(random.randint(1, most)))


def condition(random: Random, names: Sequence[str], theory: str, depth: int = 3) -> str:
    """A nested condition."""
    if depth == 0 or random.random() < 0.2:
        return order_atom(random, names, theory)
    one = condition(random, names, theory, depth - 1)
    if random.random() < 0.15:
        return f"NOT ({one})"
    other = condition(random, names, theory, depth - 1)
    return f"({one}) {random.choice(['AND', 'OR'])} ({other})"
