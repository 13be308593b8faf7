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
    **dict.fromkeys(("lower", "upper"), (1, 1)),
    **dict.fromkeys(("trim", "ltrim", "rtrim"), (1, 2)),
    **dict.fromkeys(("length", "char_length", "character_length"), (1, 1)),
    **dict.fromkeys(("substring", "substr"), (2, 3)),
    "concat": (1, 100),
    "date_part": (2, 2),
    "date_trunc": (2, 2),
    "to_timestamp": (1, 1),
    **dict.fromkeys(("bit_and", "bit_or", "xor"), (2, 2)),
}
PERCENTILES = ("percentile_cont", "percentile_disc")
# Two names of one aggregate; users may have functions with these names, which then come first.
APPROXIMATE_PERCENTILES = ("approx_quantile", "approx_percentile")
# Users may have functions with these names, which then come first.
VALUES_AT_EXTREMES = ("first", "last", "arg_min", "arg_max")
AGGREGATE_FUNCTIONS = (
    *("count", "sum", "avg", "min", "max", "median"),
    *("stddev", "stddev_pop", "stddev_samp", "variance", "var_pop", "var_samp"),
    *("bool_and", "bool_or", *PERCENTILES, *APPROXIMATE_PERCENTILES, *VALUES_AT_EXTREMES),
)
# Over the windows of readings that look like a pattern; a user's function of the same name goes before.
SIMILARITY_FUNCTIONS = ("similar", "similarity", "scale", "shift", "pattern")
