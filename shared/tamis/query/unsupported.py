"""SQL features that Tamis knows by name and does not support, each with what to write instead."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from tamis.query.functions import AGGREGATE_FUNCTIONS, SCALAR_FUNCTIONS, replacement
from tamis.wording.names import suggest

Refusal = tuple[str, str]
"""A construct that is not supported, and a hint what to write instead."""

AGGREGATES = frozenset(AGGREGATE_FUNCTIONS) | {
    "approx_count_distinct",
    "array_agg",
    "string_agg",
    "any_value",
    "mode",
    "corr",
    "covar_pop",
    "covar_samp",
}
CURRENT_TIMES = ("now", "current_timestamp", "proctime")
TABLE_FUNCTIONS = frozenset({"table"})
WINDOW_FUNCTIONS = frozenset({"lag", "first_value", "last_value"})
# Window functions whose values depend on all readings since the first one.
_RANKS = frozenset({"row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile"})

AGGREGATES_USAGE = (
    "write count(*), or count, count(DISTINCT), sum, avg, min, max, median, stddev or percentile_cont"
    " of a value"
)
USE_WINDOWS = "write FROM TUMBLE(stream, time, INTERVAL '1' MINUTE) and GROUP BY window_start"
_USE_EQUALITY = "compare with = or IN (…)"
_SEND_TUPLES = "send the values as tuples of a stream"
_USE_EVENT_TIMES = (
    "leave the condition out, since an alert looks at each reading when it comes; to compare readings,"
    " bound their event times; for keys that fall silent, write WHERE NO READING FOR INTERVAL '5' MINUTE"
)
_USE_LIKE = "compare with LIKE or ILIKE, such as x LIKE 'db%', joined by OR"
_GREATEST = "the greatest value of each window is max(x), and the key that has it arg_max(key, x)"
_CURRENT_TIME = (
    "the current time is not supported",
    _USE_EVENT_TIMES,
)
_SUBQUERY = (
    "subqueries are supported only in FROM, WITH, EXISTS and IN",
    "write FROM (SELECT …) AS name, WITH name AS (SELECT …) in front of the query, or EXISTS (SELECT …)",
)
_MEMBERSHIP = (
    "IN (SELECT …) is supported only as a condition of its own",
    "join it to the other conditions by AND; in place of OR, write an alert for each side",
)
_AGGREGATING_SUBQUERY = (
    "subqueries with aggregates are not supported",
    "compare the aggregate with a constant: HAVING avg(x) > 3; or with readings: WITH m AS (SELECT key,"
    " window_end, avg(x) AS mean FROM TUMBLE(…) GROUP BY key, window_end) SELECT … FROM s JOIN m ON s.key ="
    " m.key AND s.ts BETWEEN m.window_end AND m.window_end + INTERVAL '1' MINUTE WHERE s.x > 3 * m.mean",
)
_LATERAL = ("LATERAL is not supported", "join streams with JOIN … ON")
_OVER = "write {}(x) OVER (PARTITION BY key ORDER BY time)"
_TOP_OVER = (
    "for the first of each window, write max(x) and arg_max(key, x) with GROUP BY window_end; for more of"
    " them, compare with a limit in HAVING"
)
_LATEST = (
    "write last(x) or first(x), or arg_max(x, y) for the x of the greatest y, with FROM TUMBLE(stream, time,"
    " INTERVAL '1' MINUTE) and GROUP BY key, window_end; to join the last reading, ASOF JOIN; for one alarm"
    " of each key in some time, CREATE ALERT … WITH (within = '1 minute')"
)
_COUNT_OVER = (
    f"for one reading of each key, {_LATEST}; to count the readings of some time, write count(*)"
    " OVER (PARTITION BY key ORDER BY time RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW)"
)

# Clauses of SELECT by sqlglot's name for them.
CLAUSES: dict[str, Refusal] = {
    "order": ("ORDER BY is not supported: alarms are sent as soon as they arise", "leave ORDER BY out"),
    "limit": ("LIMIT is not supported: a stream has no end", f"leave LIMIT out; {_GREATEST}"),
    "offset": ("OFFSET is not supported: a stream has no end", "leave OFFSET out"),
    "laterals": _LATERAL,
    "into": ("SELECT INTO is not supported", "write CREATE STREAM name AS SELECT …"),
}

MATCH_RECOGNIZE = (
    "MATCH_RECOGNIZE is not supported",
    "to compare a reading with the ones before it, write lag(x) OVER (PARTITION BY key ORDER BY time); for"
    " one reading after another, join the stream with itself: b.time BETWEEN a.time AND a.time + INTERVAL '1'"
    " MINUTE",
)
DISTINCT_WINDOWS = (
    "SELECT DISTINCT over windows is not supported",
    "leave DISTINCT out; alarms of one key within `gap` are one episode",
)
DISTINCT_ON = (
    "DISTINCT ON is not supported",
    f"for one reading of each key, {_LATEST}; if all columns are in DISTINCT ON, write SELECT DISTINCT",
)

FETCH = ("FETCH FIRST is not supported: a stream has no end", f"leave it and ORDER BY out; {_GREATEST}")

# Expressions with a syntax of their own.
EXPRESSIONS: dict[type[exp.Expr], Refusal] = {
    exp.Lateral: _LATERAL,
    exp.Unnest: ("UNNEST is not supported", _SEND_TUPLES),
    exp.Values: ("VALUES is not supported", _SEND_TUPLES),
    exp.Exists: (
        "EXISTS is supported only as a condition of its own",
        "join it to the other conditions by AND; in place of OR, write an alert for each side",
    ),
    exp.Any: ("ANY is not supported", "write IN (…), or conditions joined by OR"),
    exp.All: ("ALL is not supported", "write conditions joined by AND"),
    exp.Distinct: ("DISTINCT inside a function is not supported yet", AGGREGATES_USAGE),
    exp.SimilarTo: ("SIMILAR TO is not supported", _USE_EQUALITY),
    exp.RegexpLike: ("the operator ~ is not supported", _USE_LIKE),
    exp.AtTimeZone: (
        "AT TIME ZONE is not supported: times are in UTC",
        "add the difference of your zone, such as extract(hour FROM ts + INTERVAL '1' HOUR)",
    ),
    exp.Tuple: ("row values are not supported", "write one condition for each value, joined by AND"),
    exp.Kwarg: ("only similar(…) has arguments with names", "write the values without names"),
    exp.CurrentTimestamp: _CURRENT_TIME,
    exp.CurrentDate: _CURRENT_TIME,
    exp.CurrentTime: _CURRENT_TIME,
}


def unsupported_expression(node: exp.Expr) -> Refusal | None:
    """The refusal of an expression by its kind; None if the kind isn't known.

    A derived stream can take the place of a subquery, unless the subquery aggregates.
    """
    if isinstance(node, exp.WithinGroup) and isinstance(node.this, exp.Anonymous):
        return unsupported_function(str(node.this.this).lower())
    if not isinstance(node, exp.Subquery | exp.Select | exp.In):
        return EXPRESSIONS.get(type(node))
    aggregating = node.find(exp.Group) or any(
        str(call.this).lower() in AGGREGATES for call in node.find_all(exp.Anonymous)
    )
    if aggregating:
        return _AGGREGATING_SUBQUERY
    return _MEMBERSHIP if isinstance(node, exp.In) else _SUBQUERY


def unsupported_function(name: str) -> Refusal | None:
    """The refusal of a function that other systems have; None for any other name."""
    if name in AGGREGATE_FUNCTIONS:
        what = f"the aggregate {name}() is not allowed here"
        return what, f"put it into SELECT or HAVING; for windows, {USE_WINDOWS}"
    if name in AGGREGATES:
        return f"the aggregate {name}() is not supported yet", AGGREGATES_USAGE
    if name in ("hop", "tumble", "cumulate", "session"):
        called = name.upper()
        return f"{called} is allowed only in FROM", f"write FROM {called}(stream, …) and use its window_start"
    if name == "table":
        return (
            "TABLE(…) is not supported",
            "write FROM TUMBLE(stream, time, size) or HOP(stream, time, slide, size)",
        )
    if name in WINDOW_FUNCTIONS:
        over = _OVER.format(name)
        if name in ("first_value", "last_value"):
            over += f", or {name.removesuffix('_value')}(x) over the tuples of a window"
        return f"{name}() needs OVER", over
    if name in _RANKS or name == "lead":
        return unsupported_window_function(name, ())
    if name in CURRENT_TIMES:
        return f"{name}() is not supported", _USE_EVENT_TIMES
    if name in ("regexp_matches", "regexp_like", "regexp", "rlike"):
        return f"{name}() is not supported", _USE_LIKE
    if name == "log":
        return "log() is ambiguous: its base differs between systems", "write ln(x) or log10(x)"
    if name == "pi":
        return "pi() is not supported", "write 3.141592653589793"
    return None


def function_of_others(name: str) -> Refusal | None:
    """The refusal of a function that only other systems have; None for any other name. Users may have
    functions with these names.
    """
    instead = replacement(name)
    return None if instead is None else (f"{name}() is a function of other systems", instead)


def unsupported_window_function(name: str, known: Sequence[str], in_windows: bool = False) -> Refusal:
    """The refusal of a function in front of OVER; `known` are those that can be there. `in_windows`: it is
    partitioned by windows.
    """
    if name in _RANKS and in_windows:
        return f"{name}() of the rows of a window is not supported", _TOP_OVER
    if name in _RANKS:
        return f"{name}() is not supported: it would count all readings since the first one", _COUNT_OVER
    if name == "lead":
        what = "lead() is not supported: later readings aren't known yet"
        return what, "write lag(x): the alarm then comes with the later one of the two readings"
    if name == "nth_value":
        return "nth_value() is not supported", "write lag(x, n): the value n readings before"
    if not name:
        return "this isn't a window function", _OVER.format("lag")
    refusal = function_of_others(name)
    if refusal is not None:
        return refusal
    usage = f"the functions with OVER are {', '.join(known)}"
    hint = usage if name in AGGREGATES | SCALAR_FUNCTIONS.keys() else suggest(name, known, usage)
    return f"{name}() can't have OVER", hint
