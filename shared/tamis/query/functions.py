"""Names of the functions of Tamis SQL, and of functions of other systems with what to write in their place.

The functions of other systems are those of DuckDB, PostgreSQL and TimescaleDB, Flink SQL, ksqlDB, RisingWave
and eKuiper. A function that a user defines with one of these names comes first.
"""

from __future__ import annotations

import tamis.expressions.functions  # noqa: F401 - fills the table
from tamis.expressions.functions.entry import SPELLINGS

SCALAR_FUNCTIONS = SPELLINGS
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

TIME_OF_DAY = "for a time of day, write extract(hour FROM time) >= 22, or BETWEEN 8 AND 17 (UTC)"
DAY = "for a day, write date_trunc('day', time) = '2026-01-31'"
_DIFFERENCE = "write b - a <= INTERVAL '5' SECOND, or extract(epoch FROM b - a) for the number of seconds"
_SHIFT = "write time + INTERVAL '5' SECOND, or time - INTERVAL '5' SECOND"
_FIELD = "write extract({} FROM time)"
_LIKE = "write text LIKE 'abc%'; % stands for any characters, _ for one"
_TEXT_OF_TIME = "write CAST(time AS VARCHAR), or extract(hour FROM time) for a part of it"
_LAST = "write last(x) over the tuples of a window, or lag(x) OVER (PARTITION BY key ORDER BY time)"
_FIRST = "write first(x) over the tuples of a window"
_CHANGED = "write x IS DISTINCT FROM lag(x) OVER (PARTITION BY key ORDER BY time)"
_PERCENTILE = "write percentile_cont(0.95) WITHIN GROUP (ORDER BY x), or approx_quantile(x, 0.95)"
_RATE = (
    "for the change from one reading to the next, write x - lag(x) OVER (PARTITION BY key ORDER BY time);"
    " for that of a window, last(x) - first(x)"
)
_SLOPE = (
    "for the rise per second of the readings in a frame, write (x - first_value(x) OVER w)"
    " / extract(epoch FROM time - first_value(time) OVER w)"
)
_WINDOWS = "write FROM TUMBLE(stream, time, INTERVAL '1' MINUTE) and GROUP BY window_start"
_CASE = "write CASE WHEN condition THEN x ELSE y END"
_LISTS = "a value can't be a list; write count(DISTINCT x), min(x) or max(x)"

_HINTS: dict[str, str] = {
    **dict.fromkeys(("timestampdiff", "datediff", "date_diff", "datesub", "date_sub", "age"), _DIFFERENCE),
    **dict.fromkeys(("timestampadd", "dateadd", "date_add", "timestampsub"), _SHIFT),
    **{name: _FIELD.format(name) for name in ("year", "quarter", "month", "week", "day", "hour", "minute")},
    **{name: _FIELD.format(name) for name in ("second", "millisecond", "microsecond", "isodow", "epoch")},
    **dict.fromkeys(("dayofmonth", "day_of_month"), _FIELD.format("day")),
    **dict.fromkeys(("dayofyear", "day_of_year"), _FIELD.format("doy")),
    **dict.fromkeys(
        ("dayofweek", "day_of_week", "weekday", "dow"),
        "write extract(dow FROM time), which is 0 on Sunday, or extract(isodow FROM time), 1 on Monday to 7",
    ),
    **dict.fromkeys(("unix_timestamp", "to_unixtime", "epoch_s"), _FIELD.format("epoch")),
    **dict.fromkeys(("epoch_ms", "unix_millis"), "write extract(epoch FROM time) * 1000"),
    **dict.fromkeys(("from_unixtime", "to_timestamp_ltz"), "write to_timestamp(seconds)"),
    **dict.fromkeys(("to_char", "date_format", "strftime", "format_datetime"), _TEXT_OF_TIME),
    **dict.fromkeys(("format_date", "format_timestamp"), _TEXT_OF_TIME),
    **dict.fromkeys(("to_date", "date", "datetrunc"), "write date_trunc('day', time)"),
    **dict.fromkeys(("time_bucket", "time_bucket_gapfill", "date_bin", "time_slice"), _WINDOWS),
    **dict.fromkeys(("tumblingwindow", "hoppingwindow", "slidingwindow", "sessionwindow"), _WINDOWS),
    **dict.fromkeys(("if", "iif", "iff", "decode"), _CASE),
    **dict.fromkeys(("nvl", "nvl2"), "write coalesce(x, y)"),
    **dict.fromkeys(("isnull", "is_null", "isnan", "is_nan"), "write x IS NULL; a number is never NaN"),
    **dict.fromkeys(("safe_divide", "try_divide", "div0"), "write x / y, which is NULL where y is 0"),
    **dict.fromkeys(("regexp_matches", "regexp_like", "regexp_full_match", "regexp", "rlike"), _LIKE),
    **dict.fromkeys(("starts_with", "startswith", "ends_with", "endswith", "contains"), _LIKE),
    **dict.fromkeys(("position", "strpos", "instr", "locate"), _LIKE),
    **dict.fromkeys(("left", "right"), "write substring(text, 1, n), or substring(text, -n, n)"),
    **dict.fromkeys(("count_if", "countif"), "write count(*) FILTER (WHERE condition)"),
    **dict.fromkeys(("sum_if", "sumif"), "write sum(x) FILTER (WHERE condition)"),
    **dict.fromkeys(("avg_if", "avgif"), "write avg(x) FILTER (WHERE condition)"),
    **dict.fromkeys(("mean", "average"), "write avg(x)"),
    **dict.fromkeys(("std", "stdev", "stddevs", "standard_deviation"), "write stddev(x)"),
    **dict.fromkeys(("stddevp", "stdevp"), "write stddev_pop(x)"),
    **dict.fromkeys(("var", "vars", "varp"), "write variance(x), or var_pop(x)"),
    **dict.fromkeys(("percentile", "percentile_approx", "quantile", "quantile_cont"), _PERCENTILE),
    **dict.fromkeys(("quantile_disc", "approx_median", "tdigest"), _PERCENTILE),
    **dict.fromkeys(("bitand", "bitwise_and", "bitwiseand"), "write x & y"),
    **dict.fromkeys(("bitor", "bitwise_or", "bitwiseor"), "write x | y"),
    **dict.fromkeys(("bitxor", "bit_xor", "bitwise_xor", "bitwisexor"), "write xor(x, y)"),
    **dict.fromkeys(("bitnot", "bit_not", "bitwise_not", "bitwisenot"), "write ~x"),
    **dict.fromkeys(("shiftleft", "shift_left", "bit_shift_left", "bitwise_left_shift"), "write x << n"),
    **dict.fromkeys(("shiftright", "shift_right", "bit_shift_right", "bitwise_right_shift"), "write x >> n"),
    **dict.fromkeys(("get_bit", "getbit", "bittest", "bit_test"), "write x >> n & 1"),
    **dict.fromkeys(
        ("bit_count", "bitcount", "popcount"), "write (x & 1) + (x >> 1 & 1), and so on for each bit"
    ),
    **dict.fromkeys(("max_by", "argmax"), "write arg_max(x, y)"),
    **dict.fromkeys(("min_by", "argmin"), "write arg_min(x, y)"),
    **dict.fromkeys(("latest_by_offset", "latest", "last_row", "lastvalue"), _LAST),
    **dict.fromkeys(("earliest_by_offset", "earliest", "first_row"), _FIRST),
    **dict.fromkeys(("collect", "collect_list", "collect_set", "list", "topk", "topkdistinct"), _LISTS),
    **dict.fromkeys(("histogram", "array_agg", "group_array"), _LISTS),
    **dict.fromkeys(("had_changed", "changed_col", "changed_cols"), _CHANGED),
    **dict.fromkeys(("rate", "irate", "increase", "delta", "idelta", "deriv", "derivative"), _RATE),
    **dict.fromkeys(("regr_slope", "regr_intercept", "linear_regression"), _SLOPE),
    "every": "write bool_and(condition)",
    "clamp": "write greatest(least(x, high), low)",
    "square": "write x * x",
    "cbrt": "write power(x, 1.0 / 3) where x isn't negative",
    "log2": "write ln(x) / ln(2)",
    "pow": "write power(x, y)",
    "range": "write max(x) - min(x)",
}


def replacement(name: str) -> str | None:
    """The hint for a function of another system, with what to write in its place; None for any other name.

    >>> replacement("hour")
    'write extract(hour FROM time)'
    >>> replacement("abs") is None
    True
    """
    return _HINTS.get(name)
