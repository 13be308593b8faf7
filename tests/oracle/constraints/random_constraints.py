"""Random constraints as SQL text, for theories of order."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

OPERATORS = ("<", "<=", "=", ">=", ">")


def constant(random: Random, denominators: Sequence[int] = (2,), largest: int = 3) -> str:
    """A multiple of a unit fraction, in one of its spellings."""
    below = random.choice(denominators)
    above = random.randint(-below * largest, below * largest)
    decimal = [f"{above / below}"] if below in (1, 2, 4) else []
    return random.choice([f"{above} / {below}", *decimal]) if above % below else f"{above // below}"


def order_atom(random: Random, names: Sequence[str], theory: str, denominators: Sequence[int] = (2,)) -> str:
    """A comparison of one or two variables; of the theory temporal, also of a difference."""
    op = random.choice(OPERATORS)
    if len(names) < 2 or random.random() < 0.4:
        name, value = random.choice(names), constant(random, denominators)
        return random.choice([f"{name} {op} {value}", f"{value} {op} {name}"])
    one, other = random.sample(list(names), 2)
    if theory == "dense" or random.random() < 0.3:
        return f"{one} {op} {other}"
    return f"{one} - {other} {op} {constant(random, denominators)}"


def symbol_atom(random: Random, names: Sequence[str], symbols: str) -> str:
    """An equality or inequality of two symbols."""
    op, one = random.choice(["=", "<>"]), random.choice(names)
    others = [f"'{symbol}'" for symbol in symbols] + [name for name in names if name != one]
    return f"{one} {op} {random.choice(others)}"


def conjunction(
    random: Random, names: Sequence[str], theory: str, most: int = 5, denominators: Sequence[int] = (2,)
) -> str:
    """Some atoms that all hold."""
    count = random.randint(1, most)
    return " AND ".join(order_atom(random, names, theory, denominators) for _ in range(count))


def condition(random: Random, names: Sequence[str], theory: str, depth: int = 3) -> str:
    """A nested condition."""
    if depth == 0 or random.random() < 0.2:
        return order_atom(random, names, theory)
    one = condition(random, names, theory, depth - 1)
    if random.random() < 0.15:
        return f"NOT ({one})"
    other = condition(random, names, theory, depth - 1)
    return f"({one}) {random.choice(['AND', 'OR'])} ({other})"
