"""From readings over an edge's sample to the registry's decision, on a real Kafka."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any, cast

from tests.integration.edges import Bench

from tamis.messaging.topics import SKETCHES
from tamis_edge.core.sampling import LEAST

STREAM = """CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE CHECK (x BETWEEN 0 AND 100),
  WATERMARK FOR ts AS ts);"""
QUERY = "CREATE ALERT e AS SELECT k FROM air WHERE x > 49;"


def test_readings_change_where_a_query_is_served(fresh: str, start: Any, hand: Any, tmp_path: Any) -> None:
    registry = start(fresh).ready()
    registry.sql(STREAM)
    first = registry.lease("air", predicate="x < 50")
    own = registry.lease("air", predicate="x > 49")
    assert own["topic"] != first["topic"]
    assert registry.call("DELETE", f"/v1/leases/{own['lease']['id']}").is_success
    bench = Bench(cast(Any, SimpleNamespace(bootstrap=fresh)), tmp_path)

    def sharing() -> Any:
        (query,) = registry.call("POST", "/v1/explain", QUERY).json()["queries"]
        return query["streams"][0]["sharing"]

    before = sharing()
    assert before["estimated_from"] == "declared domains"
    try:
        edge = bench.edge("e1").start()
        r = random.Random(1)
        rows = [{"k": "a secret", "ts": at, "x": r.uniform(49.2, 49.8)} for at in range(LEAST)]
        assert edge.post("air", rows).is_success
        registry.until(lambda: "readings" in sharing()["estimated_from"], 40)
        edge.stop()
    finally:
        bench.close()
    after = sharing()
    assert before["share"] < 0.6 < after["share"]
    assert registry.lease("air", predicate="x > 49")["topic"] == first["topic"]
    ((_, told),) = hand(fresh).read(SKETCHES)
    assert set(told["sketch"]["values"]) == {"x"} and told["sketch"]["count"] == LEAST
