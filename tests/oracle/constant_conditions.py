"""Constant and overlapping parts that AND, OR and NOT mix into the conditions of random queries."""

from __future__ import annotations

import random

TRUE = (
    "TRUE",
    "0 = 0",
    "2 > 1.5",
    "NULL IS NULL",
    "1 IN (1, NULL)",
    "2 BETWEEN 1 AND 3",
    "floor(1.5) = 1",
    "coalesce(NULL, 1) = 1",
    "nullif(1, 1) IS NULL",
    "length('ab') = 2",
    "'a' IS DISTINCT FROM 'b'",
    "CASE WHEN 1 = 0 THEN 1 ELSE 2 END = 2",
)
OTHER = (
    "FALSE",
    "NULL",
    "1 = 0",
    "NULL = 1",
    "1 IN (2, 3)",
    "1 NOT IN (2, NULL)",
    "4 NOT BETWEEN 1 AND NULL",
    "abs(-1) > 1",
    "'a' LIKE 'b%'",
    "CASE WHEN NULL THEN TRUE END",
    "NOT (1 = 1)",
)


def constant(r: random.Random, *, true: bool) -> str:
    """A condition without columns. It is mostly `true` or not, so that the condition beside it matters."""
    usual, unusual = (TRUE, OTHER) if true else (OTHER, TRUE)
    return f"({r.choice(usual if r.random() < 0.9 else unusual)})"


def with_constants(r: random.Random, condition: str, depth: int = 2) -> str:
    """A condition together with constant ones, with copies of itself, and with parts that overlap it."""
    if depth == 0 or r.random() < 0.1:
        return f"({condition})"
    inner = with_constants(r, condition, depth - 1)
    match r.randrange(10):
        case 0 | 1 | 2:
            parts = r.sample([constant(r, true=False), inner], 2)
            return f"({' OR '.join(parts)})"
        case 3 | 4:
            parts = r.sample([constant(r, true=False), inner, with_constants(r, condition, depth - 1)], 3)
            return f"({' OR '.join(parts)})"
        case 5:
            parts = r.sample([constant(r, true=True), inner], 2)
            return f"({' AND '.join(parts)} OR {constant(r, true=False)})"
        case 6:
            return f"({inner} OR {inner})"
        case 7:
            return f"(NOT ({constant(r, true=True)} AND NOT {inner}))"
        case 8:
            return f"(NOT (NOT {inner} OR {constant(r, true=False)}))"
        case _:
            return f"(CASE WHEN {constant(r, true=True)} THEN {inner} ELSE {constant(r, true=False)} END)"
