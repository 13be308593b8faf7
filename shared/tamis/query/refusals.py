"""What is understood and not executed, by name, and what to write instead."""

from __future__ import annotations

from sqlglot import exp

from tamis.query.aggregates import FUNCTIONS

AGGREGATES = frozenset(FUNCTIONS) | {
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "variance",
    "var_pop",
    "var_samp",
    "first_value",
    "last_value",
    "percentile_cont",
    "percentile_disc",
    "approx_count_distinct",
    "array_agg",
    "string_agg",
    "bool_and",
    "bool_or",
    "any_value",
    "mode",
    "corr",
    "covar_pop",
    "covar_samp",
}
TABLES = frozenset({"table", "session", "cumulate"})
RANKS = frozenset({"row_number", "rank", "dense_rank", "ntile", "lag", "lead"})

_SINGLE = "select single tuples and put the threshold into WHERE"
WINDOWED = "write FROM TUMBLE(stream, time, INTERVAL '1' MINUTE) and GROUP BY window_start"
_BOUND = "bound the times instead: s.ts BETWEEN a.ts - INTERVAL '30' SECOND AND a.ts + INTERVAL '30' SECOND"
_INNER = "define the inner query as a stream, CREATE STREAM name AS SELECT …, and read from that"

# Clauses of SELECT by sqlglot's name for them.
CLAUSES: dict[str, tuple[str, str]] = {
    "group": ("GROUP BY over streams with time needs windows", WINDOWED),
    "having": ("HAVING over streams with time needs windows", WINDOWED),
    "order": ("ORDER BY isn't executed: alarms come as they arise", "leave ORDER BY out"),
    "limit": ("LIMIT isn't executed: a stream has no end", "leave LIMIT out"),
    "offset": ("OFFSET isn't executed: a stream has no end", "leave OFFSET out"),
    "with_": ("WITH … AS (SELECT …) isn't executed", _INNER),
    "windows": ("window functions aren't executed", _BOUND),
    "qualify": ("QUALIFY isn't executed", "put the condition into WHERE"),
    "laterals": ("LATERAL isn't executed", "join streams with JOIN … ON"),
    "into": ("SELECT INTO isn't executed", "write CREATE STREAM name AS SELECT …"),
}

WINDOWED_DISTINCT = (
    "SELECT DISTINCT isn't executed over windows",
    "leave DISTINCT out; alarms of one key within `gap` are one episode",
)
DISTINCT = ("DISTINCT ON isn't executed", "write SELECT DISTINCT and the columns")

# Expressions that have a syntax of their own.
EXPRESSIONS: dict[type[exp.Expr], tuple[str, str]] = {
    exp.Subquery: ("a subquery isn't executed", _INNER),
    exp.Select: ("a subquery isn't executed", _INNER),
    exp.Lateral: ("LATERAL isn't executed", "join streams with JOIN … ON"),
    exp.Unnest: ("UNNEST isn't executed", "send the values as tuples of a stream"),
    exp.Values: ("VALUES isn't executed", "send the values as tuples of a stream"),
    exp.Exists: ("a subquery isn't executed", _INNER),
    exp.Any: ("ANY isn't executed", "write IN (…), or conditions joined by OR"),
    exp.All: ("ALL isn't executed", "write conditions joined by AND"),
    exp.Window: ("window functions aren't executed", _BOUND),
    exp.Filter: ("aggregates aren't executed yet", _SINGLE),
    exp.Distinct: ("DISTINCT inside a function isn't executed yet", _SINGLE),
    exp.Like: ("LIKE isn't executed", "compare with = or IN (…)"),
    exp.ILike: ("ILIKE isn't executed", "compare with = or IN (…)"),
    exp.SimilarTo: ("SIMILAR TO isn't executed", "compare with = or IN (…)"),
    exp.RegexpLike: ("the operator ~ isn't executed", "compare with = or IN (…)"),
    exp.Mod: ("the operator % isn't executed", "use + - * / ^ and the functions abs, sqrt, exp, ln, log10"),
    exp.DPipe: ("the operator || isn't executed", "select the parts as columns of their own"),
    exp.NullSafeEQ: ("IS NOT DISTINCT FROM isn't executed", "write a = b OR (a IS NULL AND b IS NULL)"),
    exp.NullSafeNEQ: ("IS DISTINCT FROM isn't executed", "write a != b, and IS NULL where NULL counts"),
    exp.Extract: ("EXTRACT isn't executed", "compare times with times and INTERVAL"),
    exp.Tuple: ("a row of values isn't executed", "write one condition for each value, joined by AND"),
    exp.CurrentTimestamp: ("the current time isn't a value of a tuple", "compare the event times of tuples"),
    exp.CurrentDate: ("the current date isn't a value of a tuple", "compare the event times of tuples"),
    exp.CurrentTime: ("the current time isn't a value of a tuple", "compare the event times of tuples"),
}


def function(name: str) -> tuple[str, str] | None:
    """Why a function that people know isn't executed, and what to write instead."""
    if name in FUNCTIONS:
        what = f"the aggregate {name}() isn't executed here"
        return what, f"put it into SELECT or HAVING; over streams with time, {WINDOWED}"
    if name in AGGREGATES:
        return f"the aggregate {name}() isn't executed yet", _SINGLE
    if name in ("hop", "tumble"):
        return f"{name.upper()} stands in FROM", f"write FROM {name.upper()}(stream, …) and its window_start"
    if name == "table":
        return (
            "TABLE(…) isn't executed",
            "write FROM TUMBLE(stream, time, size) or HOP(stream, time, slide, size)",
        )
    if name in TABLES:
        return f"windows by {name.upper()} aren't executed yet", "write HOP or TUMBLE"
    if name in RANKS:
        return f"the window function {name}() isn't executed", _BOUND
    if name == "similar":
        return "similarity queries, similar(…), aren't executed yet", "compare single values with a threshold"
    if name in ("now", "current_timestamp", "proctime"):
        return f"{name}() isn't a value of a tuple", "compare the event times of tuples"
    if name in ("coalesce", "nullif", "ifnull"):
        return f"{name}() isn't executed", "write CASE WHEN value IS NULL THEN … ELSE … END"
    if name == "log":
        return "log() means different bases in different systems", "write ln(x) or log10(x)"
    if name in ("floor", "ceil", "ceiling", "round", "trunc", "sign", "mod", "pi"):
        return (
            f"{name}() isn't executed",
            "use + - * / ^ and abs, sqrt, exp, ln, log10, power, least, greatest",
        )
    return None
