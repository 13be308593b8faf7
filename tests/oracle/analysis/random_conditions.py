"""Random linear conditions on three sources a, b and c, which pass limits on from column to column."""

from __future__ import annotations

import random
from itertools import pairwise

_LARGE = ("1e16", "9007199254740993", "9007199254740991", "1e-9", "123456789.1", "100")
_FACTORS = ("2", "3", "0.1", "0.5", "1.1", "7", "1e-5", "10")
_OPS = ("<", "<=", ">", ">=", "<", ">", "=")


def _number(random_: random.Random) -> str:
    form = random_.choice(("digit", "tenths", "tenths", "thousandths", "large"))
    match form:
        case "digit":
            return str(random_.randint(0, 9))
        case "tenths":
            return f"{random_.randint(1, 99) / 10}"
        case "thousandths":
            return f"{random_.randint(1, 9999) / 1000}"
    return random_.choice(_LARGE)


def _term(random_: random.Random, column: str) -> str:
    number = random_.choice(_FACTORS)
    form = random_.choice(("{c}", "{c}", "{c}", "{n} * {c}", "{c} / {n}", "(-{c})", "{c} * {n}"))
    return form.format(c=column, n=number)


def random_conditions(random_: random.Random, *, steps: bool = False) -> list[str]:
    """A limit of one column, and conditions that pass it on from column to column; with `steps` some of
    rounded numbers.
    """
    names = [f"{alias}.{random_.choice('vvvvwnm')}" for alias in random_.sample("abc", 3)]
    op, other = random_.choice(
        (("<", ">"), ("<=", ">="), ("<=", ">="), (">", "<"), (">=", "<="), (">=", "<="))
    )
    if random_.random() < 0.1:
        op = "="
    where = [f"{names[0]} {op} {_number(random_)}"]
    for before, after in pairwise(names):
        term, sign, number = _term(random_, before), random_.choice("+-"), _number(random_)
        forms: tuple[str, ...] = (
            f"{after} {op} {term} {sign} {number}",
            f"{after} {op} {term} {sign} {number}",
            f"{after} {op} {term}",
            f"{after} {sign} {number} {op} {term}",
            f"{term} {sign} {number} {other} {_term(random_, after)}",
            f"{after} - {term} {op} {number}",
            f"ABS({after} - {term}) < {number}",
            f"{after} {op} {names[0]} {sign} {before}",
        )
        if steps and random_.random() < 0.25:
            function = random_.choice(
                ("FLOOR({})", "CEIL({})", "TRUNC(1.0 * ({}))", "CAST(1.0 * ({}) AS BIGINT)")
            )
            forms = (f"{function.format(f'{after} - {term}')} {op} {random_.choice(('3', '0', '2.5'))}",)
        where.append(random_.choice(forms))
    if random_.random() < 0.3:
        where.append(f"{names[2]} {random_.choice(_OPS)} {_number(random_)}")
    return random_.sample(where, random_.randint(2, len(where)))
