"""Edges that publish representatives: few readings of queries without time travel, and no row is missing.

Edge and joiner are killed meanwhile. The rows are compared with DuckDB's over all readings.
"""

from __future__ import annotations

import time
from pathlib import Path

import orjson
import pytest
from tests.e2e.fed_fleet import until
from tests.e2e.one_fleet.conftest import OneFleet
from tests.e2e.plant import CONFIG, JOINED, STREAMS, Plant, rows

SECONDS = 120.0
QUERIES = {
    "plant_strained": f"{JOINED} > 1990",
    "plant_apart": """SELECT DISTINCT p.id FROM presses p, ovens o
        WHERE p.id = o.id AND abs(p.load - o.heat) > 980""",
    "plant_unlike": """SELECT DISTINCT p.id FROM presses p, ovens o
        WHERE p.id = o.id AND p.mode != o.mode AND p.load != o.heat""",
    "plant_loaded": "SELECT DISTINCT id FROM presses WHERE load > 990",
}
# It is created last: the greatest loads came before it, and don't count for it.
LATER = f"{JOINED} > 1200"


@pytest.mark.timeout(600)
def test_few_readings_travel_and_no_row_is_missing_over_kills(tmp_path: Path, one_fleet: OneFleet) -> None:
    fleet = one_fleet.fleet
    config = tmp_path / "edge.yaml"
    config.write_text(CONFIG)
    plant = Plant(one_fleet.bootstrap)
    one_fleet.apply(STREAMS)
    one_fleet.apply("".join(f"CREATE ALERT {name} AS {sql};" for name, sql in QUERIES.items()))
    with one_fleet.edge("plant", config) as edge:
        plant.send(3_000)
        until(lambda: all(rows(one_fleet, name) == plant.rows(sql) for name, sql in QUERIES.items()), SECONDS)
        for killed in (edge, fleet.processes["joiner"], edge):
            plant.send(500)
            time.sleep(0.5)
            killed.kill()
            plant.send(500)
            killed.start()
        until(lambda: all(rows(one_fleet, name) == plant.rows(sql) for name, sql in QUERIES.items()), SECONDS)
        first = plant.sent
        one_fleet.apply(f"CREATE ALERT plant_later AS {LATER};")
        one_fleet.running("plant_later")
        plant.send(400, most=700)
        wanted = plant.rows(LATER, first)
        assert wanted
        until(lambda: rows(one_fleet, "plant_later") == wanted, SECONDS)
        topics = [f"tamis.stream.{stream}.1" for stream in ("presses", "ovens")]
        sent = [one for topic in topics for one in one_fleet.records(topic) if "id" in orjson.loads(one)]
        assert len(sent) < 0.25 * sum(plant.sent)
