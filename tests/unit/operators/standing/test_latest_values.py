"""LEFT ASOF JOIN with a derived stream, whose computed columns are NULL without a partner."""

from __future__ import annotations

import pytest
from tests.operators import standing_evaluator

from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector

STREAMS = "".join(
    f"CREATE STREAM {name} (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE,"
    " WATERMARK FOR ts AS ts - INTERVAL '1' SECOND);"
    for name in ("a", "b")
)


@pytest.mark.parametrize("computed", ["coalesce(x, 0)", "CASE WHEN x > 0 THEN x ELSE 0 END", "0", "x * 2"])
@pytest.mark.parametrize(("where", "rows"), [("", [(1, False), (5, True)]), (" WHERE d.y >= 0", [(5, True)])])
def test_computed_columns_are_null_without_a_partner(
    computed: str, where: str, rows: list[tuple[int, bool]]
) -> None:
    query = standing_evaluator(
        f"{STREAMS} CREATE STREAM d AS SELECT k, ts, {computed} AS y FROM b;"
        " CREATE ALERT q AS SELECT a.ts, d.y FROM a LEFT ASOF JOIN d ON a.k = d.k AND a.ts >= d.ts" + where,
        "q",
    )

    def batch(*times: int) -> dict[str, Vector]:
        count = len(times)
        return {
            "k": Vector.from_list(["p"] * count, Type.VARCHAR),
            "ts": Vector.from_list(list(times), Type.TIMESTAMP),
            "x": Vector.from_list([1.0] * count, Type.DOUBLE),
        }

    query.take("a", batch(1, 5), 2)
    query.take("b", batch(3), 1)
    query.advance("a", 10)
    found = query.advance("b", 10)
    given = list(zip(*(one.to_list() for one in found.columns.values()), strict=True))
    value = {"0": 0.0, "x * 2": 2.0}.get(computed, 1.0)
    assert given == [(ts, value if partner else None) for ts, partner in rows]
