"""Alerts that read the topic of a derived stream: the same alarms as from a topic of the base stream.

The same readings go through two fleets of real cores. In one of them, no alert may read derived streams.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import orjson
import pytest
from tests.fixtures.in_process_fleet import InProcessFleet, InProcessRegistry, plan_of
from tests.oracle.random_cases import SEED, cases

from tamis.errors import TamisError

SECOND = 1_000_000
STREAMS = """
CREATE STREAM a (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE CHECK (x BETWEEN 0 AND 100), y DOUBLE, n INT,
  WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH (max_ahead = 'unlimited');
CREATE STREAM b (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE CHECK (x BETWEEN 0 AND 100),
  WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH (max_ahead = 'unlimited');
CREATE STREAM hot AS SELECT y * 2 AS x, k, x AS temp, ts AS at, n FROM a
  WHERE x > 80 AND (n IS NULL OR n <> 1);
"""
NEAR = "p.k = q.k AND q.ts BETWEEN p.ts - INTERVAL '3' SECOND AND p.ts + INTERVAL '2' SECOND"
# Nothing is omitted for this condition, since both ends of a scale fulfil it.
APART = "(p.x - q.x) * (p.x - q.x) BETWEEN 4 AND 300"
ALERTS = {
    "one": "SELECT k, x FROM a WHERE x BETWEEN 85 AND 99 AND n > 1",
    "named": "SELECT k, temp + 1 AS more FROM hot WHERE temp < 99",
    "joined": f"SELECT p.k, p.x + q.x AS sum FROM a p JOIN b q ON {NEAR} "
    f"WHERE p.x > 90 AND p.n IN (0, 2) AND {APART}",
    "itself": f"SELECT p.k FROM a p JOIN hot q ON {NEAR.replace('q.ts', 'q.at')} "
    f"WHERE p.x > 85 AND p.n = 0 AND q.temp > 90 AND {APART.replace('q.x', 'q.temp')}",
    "wider": "SELECT k FROM a WHERE x > 75",
    "more": "SELECT k, y FROM a WHERE x > 85 AND n = 2",
}
READ_HOT = {"one", "named", "joined", "itself"}


def alerts(options: str) -> str:
    return "".join(f"CREATE ALERT {name} {options} AS {select};" for name, select in ALERTS.items())


def readings(r: random.Random, begin: int, count: int) -> list[dict[str, Any]]:
    """Readings of a few keys; some are late, some come twice, and any value but the time may be NULL."""
    found: list[dict[str, Any]] = []
    for at in range(count):
        late = r.choice((0, 0, 0, 0, 4))
        found.append(
            {
                "k": r.choice(("u", "v", None)),
                "ts": max(0, (begin + at // 3 - late)) * SECOND,
                "x": r.choice((None, *[r.choice((80, 85, 90, 99, r.uniform(70, 100)))] * 9)),
                "y": r.choice((None, 1.5)),
                "n": r.choice((None, 0, 1, 2, 3)),
            }
        )
        if r.random() < 0.1:
            found.append(r.choice(found))
    return found


def feed(fleets: list[InProcessFleet], seed: str, begin: int) -> None:
    r = random.Random(seed)
    for step in range(4):
        for stream in "ab":
            some = readings(r, begin + 5 * step, 15)
            if stream == "b":
                some = [{name: one[name] for name in ("k", "ts", "x")} for one in some]
            for fleet in fleets:
                fleet.send(stream, some, (begin + 5 * step) * SECOND)


def tuples(fleet: InProcessFleet, topic: str) -> list[dict[str, Any]]:
    documents = (orjson.loads(value) for name, value in fleet.published if name == topic)
    return [document for document in documents if "kind" not in document["_"]]


def test_alarms_are_the_same_and_tuples_are_published_once() -> None:
    raised = Counter[str]()
    for case in range(cases(1 / 8000)):
        seed = f"{SEED} {case}"
        plans = [plan_of(STREAMS, alerts(f"WITH (read_derived = {flag})")) for flag in ("true", "false")]
        read = {d.alert for d in plans[0].definitions if any("hot" in source.topic for source in d.inputs)}
        assert read == READ_HOT
        assert not any("hot" in source.topic for d in plans[1].definitions for source in d.inputs)
        fleets = [InProcessFleet(plan) for plan in plans]
        feed(fleets, seed, 0)
        assert fleets[0].alarms == fleets[1].alarms, f"seed {seed}"
        assert not fleets[0].dead and fleets[0].dead == fleets[1].dead
        assert tuples(fleets[0], "tamis.stream.hot.1") == tuples(fleets[1], "tamis.stream.hot.1")
        raised.update({alert: len(found) for alert, found in fleets[0].alarms.items()})
    assert raised.keys() == ALERTS.keys() and raised.total() > 50


def test_alarms_are_the_same_while_alerts_change() -> None:
    for case in range(cases(1 / 12000)):
        seed = f"{SEED} {case}"
        both = [
            [
                f"CREATE ALERT q WITH ({option}) AS {ALERTS['one']};"
                f"CREATE ALERT j WITH ({option}) AS {ALERTS['joined']};",
                f"CREATE OR REPLACE ALERT q WITH ({option}) AS {ALERTS['one'].replace('99', '95')};",
                "PAUSE ALERT j;",
                "RESUME ALERT j;",
                f"CREATE OR REPLACE ALERT q WITH (read_derived = false) AS {ALERTS['one']}; DROP ALERT j;",
            ]
            for option in ("read_derived = true", "read_derived = false")
        ]
        fleets, registries = [], []
        for _ in both:
            registry = InProcessRegistry(STREAMS, 0)
            registry.list_shards("ab", 0)
            registries.append(registry)
            fleets.append(InProcessFleet(registry.plan))
        begin = 0
        for step in zip(*both, strict=True):
            feed(fleets, f"{seed} {begin}", begin)
            for sql, registry, fleet in zip(step, registries, fleets, strict=True):
                registry.apply(sql, begin * SECOND)
                fleet.obey(registry.plan, begin * SECOND)
            if "RESUME" in step[0]:
                with pytest.raises(TamisError, match="is read by alert 'j', alert 'q'"):
                    registries[0].apply("DROP STREAM hot;", begin * SECOND)
            begin += 20
        with pytest.raises(TamisError, match="is read by the replaced definition of alert 'q'"):
            registries[0].apply("DROP STREAM hot;", begin * SECOND)
        feed(fleets, f"{seed} end", begin)
        for registry, fleet in zip(registries, fleets, strict=True):
            for _ in range(3):
                registry.hear(fleet, begin * SECOND)
                if registry.tick(begin * SECOND):
                    fleet.obey(registry.plan, begin * SECOND)
            assert not registry.plan.retiring
            registry.apply("DROP STREAM hot;", begin * SECOND)
        assert fleets[0].alarms == fleets[1].alarms, f"seed {seed}"
        assert len(fleets[0].alarms["q"]) > 10 and fleets[0].alarms["j"]
