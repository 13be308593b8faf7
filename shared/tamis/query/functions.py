"""Names of the built-in functions of Tamis SQL, with the number of their arguments."""

from __future__ import annotations

# Name to the least and the greatest number of arguments.
SCALAR_FUNCTIONS = {
    "abs": (1, 1),
    "sqrt": (1, 1),
    "exp": (1, 1),
    "ln": (1, 1),
    "log10": (1, 1),
    "power": (2, 2),
    "least": (1, 100),
    "greatest": (1, 100),
    "floor": (1, 1),
    "ceil": (1, 1),
    "ceiling": (1, 1),
    "trunc": (1, 1),
    "round": (1, 2),
    "sign": (1, 1),
    "mod": (2, 2),
    "coalesce": (1, 100),
    "ifnull": (2, 2),
    "nullif": (2, 2),
}
AGGREGATE_FUNCTIONS = ("count", "sum", "avg", "min", "max", "median")
# Over the windows of readings that look like a pattern; a user's function of the same name goes before.
SIMILARITY_FUNCTIONS = ("similar", "similarity", "scale", "shift", "pattern")
