"""Constant and overlapping parts that AND, OR and NOT mix into the conditions of random queries."""

from __future__ import annotations

import random

CONSTANTS = (
    "TRUE",
    "FALSE",
    "NULL",
    "1 = 0",
    "0 = 0",
    "2 > 1.5",
    "NULL = 1",
    "NULL IS NULL",
    "1 IN (2, 3)",
    "1 IN (1, NULL)",
    "1 NOT IN (2, NULL)",
    "2 BETWEEN 1 AND 3",
    "4 NOT BETWEEN 1 AND NULL",
    "abs(-1) > 1",
    "floor(1.5) = 1",
    "coalesce(NULL, 1) = 1",
    "nullif(1, 1) IS NULL",
    "length('ab') = 2",
    "'a' LIKE 'b%'",
    "'a' IS DISTINCT FROM 'b'",
    "CASE WHEN 1 = 0 THEN 1 ELSE 2 END = 2",
    "CASE WHEN NULL THEN TRUE END",
)


def constant(r: random.Random) -> str:
    """A condition without columns."""
    one = r.choice(CONSTANTS)
    return f"NOT ({one})" if r.random() < 0.2 else f"({one})"


def with_constants(r: random.Random, condition: str, depth: int = 2) -> str:
    """A condition together with constant ones, with copies of itself, and with parts that overlap it."""
    if depth == 0 or r.random() < 0.1:
        return f"({condition})"
    inner = with_constants(r, condition, depth - 1)
    match r.randrange(10):
        case 0 | 1 | 2:
            parts = r.sample([constant(r), inner], 2)
            return f"({' OR '.join(parts)})"
        case 3 | 4:
            parts = r.sample([constant(r), inner, with_constants(r, condition, depth - 1)], 3)
            return f"({parts[0]} {r.choice(('AND', 'OR'))} {parts[1]} OR {parts[2]})"
        case 5:
            parts = r.sample([constant(r), inner], 2)
            return f"({' AND '.join(parts)})"
        case 6:
            return f"({inner} OR {inner})"
        case 7:
            return f"(NOT ({inner} AND {constant(r)}))"
        case 8:
            return f"(NOT (NOT {inner} OR {constant(r)}))"
        case _:
            return f"(CASE WHEN {constant(r)} THEN {inner} ELSE {constant(r)} END)"
