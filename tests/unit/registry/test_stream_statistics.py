"""Stream statistics from edges decide where new queries are served, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.registry.test_leases import ask, started

from tamis.messaging.records import Observation
from tamis.predicates.sketch import Sketch, observe
from tamis_registry.core.plan.draft_plan import CHANCE, distance
from tamis_registry.core.registry import Registry
from tamis_registry.core.state.records import records, recover
from tamis_registry.kafka.reports import read_observation

STREAM = """CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE CHECK (x BETWEEN 0 AND 100), n INT,
  WATERMARK FOR ts AS ts);"""


def told(shard: str, x: tuple[float, float], seed: int, count: int = 5_000) -> Observation:
    r = np.random.default_rng(seed)
    sketch = observe({"x": r.uniform(*x, count), "n": r.integers(0, 10, count)}, r)
    return Observation(shard, "air", sketch)


@pytest.fixture
def registry() -> Registry:
    made = started()
    made.done(made.apply(STREAM, 0)[1], 0)
    return made


def sharing(registry: Registry, condition: str) -> dict[str, object]:
    (query,) = registry.explain(f"CREATE ALERT e AS SELECT k FROM air WHERE {condition};")
    found: dict[str, object] = query["streams"][0]["sharing"]
    return found


def test_an_observed_distribution_changes_a_decision(registry: Registry) -> None:
    assert ask(registry, "x < 50").topics == {"": 1}
    assert ask(registry, "x > 49", "before").topics == {"": 2}
    # All readings pass both filters, which declared domains can't say.
    registry.observe(told("air:e1/s", (49.2, 49.8), 1))
    assert ask(registry, "x > 49", "after").topics == {"": 1}
    assert registry.state.leases.keys() == {
        lease.id for lease in registry.state.leases.values() if lease.topics
    }


def test_explain_says_what_an_estimate_rests_on(registry: Registry) -> None:
    assert sharing(registry, "x < 50")["estimated_from"] == "declared domains"
    assert str(sharing(registry, "n < 5")["estimated_from"]).startswith("nothing")
    registry.observe(told("air:e1/s", (0, 20), 1))
    registry.observe(told("air:e2/s", (80, 100), 2))
    found = sharing(registry, "x < 50 AND n < 5")
    assert found["estimated_from"] == "10,000 readings"
    assert found["share"] == pytest.approx(0.25, abs=0.06)


def test_explain_says_by_what_an_alert_is_served_that_runs(registry: Registry) -> None:
    made, change = registry.apply("CREATE ALERT q AS SELECT k FROM air WHERE x < 20;", 0)
    registry.done(change, 0)
    assert made[0].query is not None and made[0].query.document()["streams"][0]["sharing"]["how"] == "own"
    registry.observe(told("air:e1/s", (0, 40), 1))
    for found in (registry.explain("EXPLAIN q;"), [o.explained for o in registry.apply("EXPLAIN q;", 0)[0]]):
        assert found[0] is not None
        (source,) = found[0]["streams"]
        assert source["selectivity"] == {
            "share": pytest.approx(0.5, abs=0.06),
            "estimated_from": "5,000 readings",
        }
        assert source["sharing"]["how"] == "kept" and source["sharing"]["topic"] == "tamis.stream.air.1"
        assert str(source["sharing"]["reason"]).startswith("keeps its place on a topic with an estimated ")
    (query,) = registry.explain("EXPLAIN SELECT k FROM air WHERE x > 20;")
    assert query["streams"][0]["selectivity"]["share"] == pytest.approx(0.5, abs=0.06)


def test_estimates_are_durable_and_nobody_moves_by_them(registry: Registry) -> None:
    registry.observe(told("air:e1/s", (0, 100), 1))
    lease = ask(registry, "x < 50")
    plan, known = registry.plan, registry.state.statistics["air"]
    state = recover(records(registry.state))
    assert state is not None and state.statistics == {"air": known}
    again = started(state)
    assert again.plan.streams == plan.streams
    again.observe(told("air:e1/s", (90, 100), 2))
    again.done(
        again.apply("CREATE STREAM other (k VARCHAR KEY, ts TIMESTAMP, WATERMARK FOR ts AS ts);", 0)[1], 0
    )
    assert again.state.statistics["air"] != known
    assert (
        again.plan.stream("air") == plan.stream("air") and again.state.leases[lease.id].topics == lease.topics
    )
    again.done(again.apply("DROP STREAM other;", 0)[1], 0)
    assert set(again.state.statistics) == {"air"}


def test_a_stream_made_anew_with_other_types_is_estimated_anew(registry: Registry) -> None:
    r = np.random.default_rng(1)

    def say(sql: str) -> None:
        registry.done(registry.apply(sql, 0)[1], 0)

    registry.observe(told("air:e1/s", (0, 100), 1))
    say("DROP STREAM air;" + STREAM.replace("x DOUBLE CHECK (x BETWEEN 0 AND 100)", "x BOOLEAN"))
    registry.observe(Observation("air:e2/s", "air", observe({"x": r.random(5_000) < 0.3}, r)))
    say("CREATE ALERT q AS SELECT k FROM air WHERE x;")
    say("CREATE STREAM other (k VARCHAR KEY, ts TIMESTAMP, WATERMARK FOR ts AS ts);")
    assert sharing(registry, "x")["estimated_from"] == "declared domains"  # whose readings are which?
    registry.observe(Observation("air:e1/s", "air", observe({"x": r.random(5_000) < 0.3}, r)))
    found = sharing(registry, "NOT x")
    assert found["estimated_from"] == "10,000 readings"


def test_what_chance_explains_is_no_news(registry: Registry) -> None:
    registry.observe(told("air:e1/s", (0, 100), 1))
    ask(registry, "x < 50")
    known = registry.state.statistics["air"]
    for seed in range(2, 12):
        registry.observe(told("air:e1/s", (0, 100), seed))
        ask(registry, f"x < {seed}")
        assert registry.state.statistics["air"] is known
    registry.observe(told("air:e1/s", (30, 100), 12))
    ask(registry, "x < 30")
    new = registry.state.statistics["air"]
    assert new is not known and distance(known.attributes["x"], new.attributes["x"]) > CHANCE


def test_what_is_no_sketch_is_refused() -> None:
    good = told("air:e1/s", (0, 1), 1)
    assert read_observation(good.shard.encode(), good.to_bytes()) == good
    texts = Sketch(1, (0.5,), {"k": ("secret",)}).to_bytes()
    for bad in (
        Observation("s", "air", texts),
        Observation("s", "air", b"{}"),
        Observation("s", "air", b"1"),
        Observation("s", "air", b'{"count": 1e300, "numbers": [], "values": {}}'),
        Observation("s", "air", b'{"count": 1, "numbers": 7, "values": {}}'),
    ):
        with pytest.raises(ValueError, match=r"\w"):
            read_observation(b"s", bad.to_bytes())
    with pytest.raises(ValueError, match="another key"):
        read_observation(b"s", good.to_bytes())
