"""Traffic of a join of three streams with and without implied predicates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.harness import Cell, Result, Say
from tamis.expressions.vectors import Vector
from tamis.operators.time_join.replay import retained_rows
from tamis.planning.build import first_plan
from tamis.planning.join_verdict import judge, learn
from tamis.planning.omission_rules import decide
from tamis.query.parse import catalog_of
from tamis.recordings.typed import Recording

NAME = "sharing.implied"
COLUMNS = ("limit of a", "without, tuples", "with, tuples", "ratio", "a", "b", "c")
STREAMS = ("a", "b", "c")
KEYS = 50
GAP = 1_000_000  # microseconds between two tuples of a key
_SQL = "".join(
    f"CREATE STREAM {name} (k INT KEY, ts TIMESTAMP, v DOUBLE, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)"
    f" WITH (keys = {KEYS}, rate = '2/s');\n"
    for name in STREAMS
)
_ALERT = (
    "CREATE ALERT rising AS SELECT a.k, a.v, b.v AS b, c.v AS c FROM a JOIN b ON a.k = b.k"
    " AND ABS(a.ts - b.ts) <= INTERVAL '{0}' SECOND JOIN c ON b.k = c.k"
    " AND ABS(b.ts - c.ts) <= INTERVAL '{0}' SECOND"
    " AND ABS(a.ts - c.ts) <= INTERVAL '{0}' SECOND"
    " WHERE a.v > {1} AND b.v > a.v + 5 AND c.v > b.v + 5;"
)


def run(quick: bool, say: Say) -> Result:
    """Count the tuples that edges retain of the same readings."""
    tuples = 20_000 if quick else 500_000
    random = np.random.default_rng(1)
    values = {name: random.uniform(0, 100, tuples) for name in STREAMS}
    rows: list[dict[str, Cell]] = []
    for limit in (0, 50, 80):
        say(f"a.v > {limit}")
        sql = _SQL + _ALERT.format(2, limit)
        found, before = (_retained(sql, values, implied) for implied in (True, False))
        total, all_before = sum(found.values()), sum(before.values())
        rows.append(
            {
                "limit of a": limit,
                "without, tuples": all_before,
                "with, tuples": total,
                "ratio": total / all_before,
                **{name: found[name] / before[name] for name in STREAMS},
            }
        )
    return Result(
        NAME,
        "A join of three streams with and without implied predicates",
        COLUMNS,
        rows,
        {"tuples": tuples, "quick": quick},
        (
            f"of {tuples:,} tuples in each stream, uniform in 0 to 100, {KEYS} keys, one a second of each",
            "condition: a.v > limit AND b.v > a.v + 5 AND c.v > b.v + 5, within 2 s; with omission",
            "ratio, a, b, c: retained tuples with implied predicates by those without, in all and by stream",
        ),
    )


def _retained(
    sql: str, values: dict[str, np.ndarray[tuple[int], np.dtype[np.float64]]], implied: bool
) -> dict[str, int]:
    """The tuples of each stream that edges publish."""
    catalog = catalog_of(sql)
    if not implied:
        alert, apart = catalog.alerts["rising"], catalog_of(sql)
        verdict = judge(apart.alerts["rising"], apart)
        analysis = replace(verdict.analysis, implied={})
        omissions = decide(analysis, verdict.keys)
        learn(alert, catalog, replace(verdict, analysis=analysis, omissions=omissions))
    plan = first_plan(catalog)
    found = {}
    for stream in plan.streams:
        own = values[stream.name]
        place = np.arange(len(own))
        recording = Recording(
            catalog.streams[stream.name],
            {
                "k": Vector(place % KEYS),
                "ts": Vector(place // KEYS * GAP),
                "v": Vector(own),
            },
            np.zeros(len(own), np.bool_),
            {},
            0,
        )
        (topic,) = stream.topics
        found[stream.name] = int(retained_rows(topic, recording).sum())
    return found
