"""Start of the joiner with queries that keep synopses: from the nodes of a plan, beside the same from SQL.

SQL is what plans carried before: statements of the streams and of the alert, which each task parsed,
translated and proved once more. Both sides are fresh processes, which import what they need and make all
operators.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import orjson

from benchmarks.harness import Cell, Result, Say
from tamis.plan.json_form import encode_plan
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of

NAME = "standing_start"
QUERIES = 1_000
STREAMS = """
CREATE STREAM air (station VARCHAR KEY, ts TIMESTAMP, temp DOUBLE, rh DOUBLE,
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (keys = 100, rate = '1 / 1 s');
CREATE STREAM surface (station VARCHAR KEY, ts TIMESTAMP, temp DOUBLE,
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (keys = 100, rate = '1 / 1 s');
CREATE STREAM bids (item INT KEY, price INT CHECK (price BETWEEN 0 AND 999)) WITH (keys = 100);
CREATE STREAM asks (item INT KEY, price INT CHECK (price BETWEEN 0 AND 999)) WITH (keys = 100);
"""
FORMS = (
    "SELECT window_end, station, avg(temp) AS mean"
    " FROM HOP(air, ts, INTERVAL '1' MINUTE, INTERVAL '5' MINUTE) WHERE rh > {0}"
    " GROUP BY window_end, station HAVING avg(temp) > 30",
    "SELECT station, max(temp) - min(temp) AS rise"
    " FROM SESSION(air PARTITION BY station, ts, INTERVAL '1' MINUTE, INTERVAL '1' HOUR)"
    " GROUP BY station, window_start HAVING max(temp) > {0}",
    "SELECT a.station, a.ts, s.temp FROM air a ASOF JOIN surface s ON a.station = s.station AND a.ts >= s.ts"
    " WHERE a.temp > {0}",
    "SELECT item, count(*) AS n FROM bids WHERE price > {0} GROUP BY item",
    "SELECT DISTINCT b.item FROM bids b, asks a WHERE b.item = a.item AND b.price < a.price AND a.price > {0}"
    " AND b.item BETWEEN 0 AND 99",
)
FROM_NODES = """
import sys, time; began = time.process_time()
from pathlib import Path
from tamis.operators.build import operator
from tamis.plan.json_form import decode_plan
found = [operator(query.node) for query in decode_plan(Path(sys.argv[1]).read_bytes()).standing]
print(len(found), time.process_time() - began)
"""
FROM_SQL = """
import sys, time; began = time.process_time()
from pathlib import Path
import orjson
from tamis.planning.physical.lowering import standing_evaluator
found = [standing_evaluator(sql, name) for name, sql in orjson.loads(Path(sys.argv[1]).read_bytes()).items()]
print(len(found), time.process_time() - began)
"""


@dataclass(frozen=True)
class Started:
    """Queries that a process has made, and its CPU seconds with all imports."""

    queries: int
    seconds: float


def run(quick: bool, say: Say) -> Result:
    """Run the benchmark. A quick run only shows that it works."""
    queries = 20 if quick else QUERIES
    alerts = {
        f"q{number}": f"CREATE ALERT q{number} AS {FORMS[number % len(FORMS)].format(number)};"
        for number in range(queries)
    }
    plan = encode_plan(first_plan(catalog_of(STREAMS, *alerts.values())))
    texts = orjson.dumps({name: f"{STREAMS}{alert}" for name, alert in alerts.items()})
    rows: list[dict[str, Cell]] = []
    with tempfile.TemporaryDirectory() as directory:
        for what, program, document in (("nodes", FROM_NODES, plan), ("SQL", FROM_SQL, texts)):
            file = Path(directory) / what
            file.write_bytes(document)
            started = _started(program, file)
            assert started.queries == queries, started
            rows.append(
                {
                    "from": what,
                    "CPU, s": started.seconds,
                    "ms a query": started.seconds / queries * 1e3,
                    "bytes a query": len(document) / queries,
                }
            )
            say(f"{what}: {started.seconds:.2f} s")
    return Result(
        NAME,
        "Start of the joiner's queries that keep synopses",
        ("from", "CPU, s", "ms a query", "bytes a query"),
        rows,
        {"queries": queries, "quick": quick},
        (
            "CPU time of a process that imports what it needs, reads the document and makes all operators",
            "nodes: the whole plan, with its streams, topics and inputs; SQL: the statements alone",
            f"nodes take {rows[0]['CPU, s'] / rows[1]['CPU, s']:.2f} of the time of SQL",  # type: ignore[operator]
        ),
    )


def _started(program: str, file: Path) -> Started:
    command = [sys.executable, "-c", program, str(file)]
    told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout.split()
    return Started(int(told[0]), float(told[1]))
