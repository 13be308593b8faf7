"""Constructs of the language, and the text by which a query that has one is recognised."""

from __future__ import annotations

import re

_PATTERNS = {
    "derived stream": r"CREATE STREAM d",
    "derived stream of a derived stream": r"CREATE STREAM d\d+ AS SELECT .* FROM d\d",
    "WITH": r"WITH d\d+ AS \(",
    "subquery": r"FROM \(SELECT",
    "join": r"FROM \w+ \w+ JOIN \w",
    "join of three": r" a JOIN .* b ON .* JOIN .* c ON",
    "derived join": r" j\d+ JOIN ",
    "ABS of a difference of times": r"ABS\(",
    "TUMBLE": r"\bTUMBLE\(",
    "HOP": r"\bHOP\(",
    "CUMULATE": r"\bCUMULATE\(",
    "SESSION": r"\bSESSION\(",
    "Flink's windows": r"TABLE\((TUMBLE|HOP|CUMULATE|SESSION)\(TABLE",
    "offset": r"INTERVAL '\d+ us', -?INTERVAL '500000 us'\)|, -INTERVAL",
    "joined windows": r"a\.window_start = b\.window_start",
    "rows of aggregates": r"FROM \S+ g\d+.* GROUP BY|\) g\d+.* GROUP BY",
    "windows of windows": r"GROUP BY g\d+\.k, window_end.*GROUP BY (window_end|\w+\.\w+)",
    "aggregates of a derived join": r" j\d+ JOIN .*(TUMBLE|HOP|CUMULATE)\(.*GROUP BY",
    "windows of one joined stream": r"\) a JOIN \S+.* b ON .* GROUP BY",
    "HAVING": r" HAVING ",
    "FILTER": r"FILTER \(WHERE",
    "DISTINCT aggregate": r"count\(DISTINCT",
    "median": r"median\(",
    "percentile": r"percentile_(cont|disc)\(",
    "approximate quantile": r"approx_quantile\(",
    "spread": r"(stddev|var_pop)\(",
    "first and last": r"(first|last|arg_min)\(",
    "bool aggregates": r"bool_(and|or)\(a",
    "group by an expression": r"GROUP BY .*(n % 2|x > 0)",
    "EXISTS": r"(?<!NOT )EXISTS \(",
    "NOT EXISTS": r"NOT EXISTS \(",
    "EXISTS over a derived stream": r"EXISTS \(SELECT 1 FROM (d\d|\()",
    "NO READING": r"NO READING FOR",
    "within": r"within = ",
    "max_delay": r"max_delay = ",
    "ASOF JOIN": r"ASOF (LEFT )?JOIN \S+ b ON",
    "LEFT ASOF JOIN": r"(LEFT ASOF|ASOF LEFT) JOIN",
    "MATCH_CONDITION": r"MATCH_CONDITION",
    "FOR SYSTEM_TIME": r"FOR SYSTEM_TIME AS OF",
    "ASOF over a derived stream": r"ASOF (LEFT )?JOIN (d\d|\()",
    "lag": r"lag\(",
    "frame of rows": r"ROWS BETWEEN",
    "frame of a range": r"RANGE BETWEEN",
    "QUALIFY": r" QUALIFY ",
    "window function in a derived stream": r"OVER \(PARTITION BY o\d",
    "table": r" JOIN r ON",
    "aggregates with a table": r"\) a JOIN r ON .* GROUP BY",
    "DISTINCT": r"SELECT DISTINCT",
    "UNION": r" UNION SELECT",
    "UNION ALL": r" UNION ALL ",
    "CASE": r"CASE WHEN",
    "simple CASE": r"CASE \w+\.n WHEN",
    "CAST": r"CAST\(",
    "LIKE": r" I?LIKE ",
    "BETWEEN SYMMETRIC": r"SYMMETRIC",
    "IS DISTINCT FROM": r"IS DISTINCT FROM",
    "OR": r" OR ",
    "functions of SQL": r"(heat|twice)\(",
    **{
        name: rf"\b{name}\("
        for name in (
            *("round", "floor", "ceil", "trunc", "sign", "mod", "coalesce", "nullif", "concat", "lower"),
            *("upper", "length", "trim", "substring", "extract", "date_part", "date_trunc", "ln", "sqrt"),
            *("power", "abs", "least", "greatest"),
        )
    },
}
NAMES = tuple(_PATTERNS)


def constructs(sql: str) -> list[str]:
    """The constructs that a query has."""
    return [name for name, pattern in _PATTERNS.items() if re.search(pattern, sql)]
