"""ALTER STREAM and replaced functions while alerts read them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.registry.test_leases import started

from tamis.errors import SqlErrors, TamisError
from tamis.messaging.records import Ack
from tamis.plan.json_form import decode_plan, encode_plan
from tamis.plan.model import Definition, Plan
from tamis_registry.core.plan.planner import PLANNER
from tamis_registry.core.registry import Registry
from tamis_registry.core.state.records import records, recover
from tamis_registry.http.documents.alerts import outcome_document

AIR = """
CREATE FUNCTION f(x DOUBLE) RETURNS DOUBLE AS x * 2;
CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE CHECK (x BETWEEN 30 AND 100), n INT,
  WATERMARK FOR ts AS ts) WITH (keys = 10, rate = '1/s');
"""
JOIN = (
    "CREATE ALERT pair AS SELECT a.k FROM air a JOIN air b ON a.k = b.k "
    "AND a.ts - b.ts BETWEEN INTERVAL '-5' SECOND AND INTERVAL '5' SECOND WHERE a.x / b.x > 2;"
)
MEAN = (
    "CREATE ALERT mean AS SELECT k, avg(x) AS m FROM TUMBLE(air, ts, INTERVAL '1' MINUTE) "
    "GROUP BY k, window_start, window_end HAVING avg(x) > 10;"
)
ONE = "CREATE ALERT one WITH (read_derived = false) AS SELECT k FROM air WHERE f(x) > 90;"


def applied(registry: Registry, sql: str) -> list[Any]:
    outcomes, change = registry.apply(sql, 0)
    registry.done(change, 0)
    return outcomes


def restarted(registry: Registry) -> Registry:
    """A registry that knows what the other one has written, with its first plan."""
    state, found = (recover(records(registry.state)) for _ in range(2))
    assert state is not None
    other = Registry(PLANNER, state, found, registry.plan.version, 0)
    other.done(other.begin(0), 0)
    return other


def running(plan: Plan) -> dict[str, list[int]]:
    """The versions of the definitions of each alert."""
    found: dict[str, list[int]] = {}
    for query in plan.queries:
        found.setdefault(query.alert, []).append(query.version)
    return {name: sorted(versions) for name, versions in found.items()}


def in_order(plan: Plan) -> Plan:
    """The plan with its queries in an order that doesn't depend on when they were replaced."""
    definitions = tuple(sorted(plan.definitions, key=lambda d: (d.alert, d.version)))
    return replace(
        plan,
        definitions=definitions,
        standing=tuple(sorted(plan.standing, key=lambda q: (q.alert, q.version))),
    )


@pytest.fixture
def registry() -> Registry:
    made = started()
    applied(made, AIR + JOIN + MEAN + ONE)
    made.hear(Ack("e1/air", "air", "e1", made.plan.version, 0, "waiting", 0, 0), 0)
    change = made.tick(0)
    assert change is not None
    made.done(change, 0)
    return made


def test_a_changed_domain_replaces_every_alert_and_the_old_ones_keep_theirs(registry: Registry) -> None:
    before = {d.alert: d for d in registry.plan.queries}
    (outcome,) = applied(registry, "ALTER STREAM air ALTER COLUMN x SET CHECK (x BETWEEN -50 AND 100);")
    n = registry.plan.version
    assert outcome.result == "altered"
    assert [(one.verdict.name, one.result) for one in outcome.replanned] == [
        ("pair", "replaced"),
        ("mean", "replaced"),
        ("one", "replaced"),
    ]
    assert running(registry.plan) == {"pair": [2, n], "mean": [2, n], "one": [2, n]}
    assert registry.plan.retiring == {"pair@2": n, "mean@2": n, "one@2": n}
    # The divisor may now be 0: the new definition omits nothing.
    old, new = (d for d in registry.plan.definitions if d.alert == "pair")
    assert isinstance(before["pair"], Definition)
    assert [i.interval for i in old.inputs] == [i.interval for i in before["pair"].inputs] == [10_000_000] * 2
    assert [i.interval for i in new.inputs] == [0, 0]
    (pair,) = (one for one in outcome.replanned if one.verdict.name == "pair")
    assert [change.partition(": no omission")[0] for change in pair.changes[:2]] == [
        "edges omit no tuple of a any more",
        "edges omit no tuple of b any more",
    ]
    # The old one ignores readings that only the altered stream accepts.
    assert all("is_null" in str(i.filter) for i in old.inputs)
    former = registry.plan.stream("air")
    assert former is not None
    assert [one.until for one in former.former] == [n]
    assert former.columns_under(n - 1) == former.former[0].columns
    assert former.columns_under(n) == former.columns
    assert decode_plan(encode_plan(registry.plan)) == registry.plan
    assert {q.version for q in registry.plan.standing} == {2, n}


def test_a_new_column_leaves_windows_alone(registry: Registry) -> None:
    applied(registry, "ALTER STREAM air ADD COLUMN y DOUBLE;")
    n = registry.plan.version
    assert running(registry.plan) == {"pair": [2, n], "mean": [2], "one": [2, n]}
    applied(registry, "CREATE ALERT wet AS SELECT k FROM air WHERE y > 1;")
    assert applied(registry, "ALTER STREAM air ADD COLUMN y DOUBLE;")[0].result == "unchanged"


def test_options_change_bounds_and_keep_joins(registry: Registry) -> None:
    (outcome,) = applied(
        registry,
        "ALTER STREAM air SET (rate = '2/s', max_stall = '10 minutes'), "
        "ALTER WATERMARK FOR ts AS ts - INTERVAL '3' SECOND;",
    )
    n = registry.plan.version
    assert running(registry.plan) == {"pair": [2], "mean": [2, n], "one": [2]}
    stream = registry.plan.stream("air")
    assert stream is not None
    assert (stream.delay, stream.max_stall, stream.former) == (3_000_000, 600_000_000, ())
    (pair,) = (one for one in outcome.replanned if one.verdict.name == "pair")
    assert pair.result == "kept" and "the bound of its memory was" in pair.changes[0]
    applied(registry, "ALTER STREAM air SET (idle_timeout = '5 s'), RESET (rate);")
    assert "rate" not in registry.state.statements["stream/air"].sql


def test_what_would_not_hold_is_listed_and_nothing_changes(registry: Registry) -> None:
    applied(registry, "CREATE ALERT far AS SELECT k FROM air WHERE x > 80;")
    before = records(registry.state)
    with pytest.raises(SqlErrors) as error:
        applied(registry, "ALTER STREAM air ALTER COLUMN x SET CHECK (x BETWEEN 30 AND 35);")
    told = [one.what for one in error.value.errors]
    assert [what.partition(" would no longer be accepted")[0] for what in told] == [
        "alert 'pair'",
        "alert 'one'",
        "alert 'far'",
    ]
    assert records(registry.state) == before
    with pytest.raises(SqlErrors, match="alert 'one' would no longer be valid"):
        applied(registry, "CREATE OR REPLACE FUNCTION f(x VARCHAR) RETURNS VARCHAR AS x;")
    assert records(registry.state) == before


def test_a_replaced_function_replaces_the_alerts_that_call_it(registry: Registry) -> None:
    (outcome,) = applied(registry, "CREATE OR REPLACE FUNCTION f(x DOUBLE) RETURNS DOUBLE AS x * 3;")
    n = registry.plan.version
    assert outcome.result == "replaced" and running(registry.plan)["one"] == [2, n]
    old, new = (d for d in registry.plan.definitions if d.alert == "one")
    assert "value=2," in str(old.inputs[0].filter) and "value=3," in str(new.inputs[0].filter)
    again = restarted(registry)
    assert replace(again.plan, version=n) == registry.plan
    same = applied(registry, "CREATE OR REPLACE FUNCTION f(x DOUBLE) RETURNS DOUBLE AS x * 3;")
    assert same[0].result == "unchanged" and registry.plan.version == n


def test_a_function_may_call_one_that_was_made_later(registry: Registry) -> None:
    applied(registry, "CREATE FUNCTION g(x DOUBLE) RETURNS DOUBLE AS x + 1;")
    applied(registry, "CREATE OR REPLACE FUNCTION f(x DOUBLE) RETURNS DOUBLE AS g(x) * 2;")
    again = restarted(registry)
    assert replace(again.plan, version=registry.plan.version) == registry.plan
    assert all(one.refusal is None for one in again.state.statements.values())


def test_the_topic_of_a_derived_stream_does_not_change_while_it_is_read(registry: Registry) -> None:
    applied(registry, "DROP ALERT pair; DROP ALERT mean; DROP ALERT one;")
    applied(registry, "CREATE STREAM hot AS SELECT k, ts, x FROM air WHERE f(x) > 150 AND x > 80;")
    applied(registry, "CREATE ALERT hotter AS SELECT k FROM hot WHERE x > 90;")
    with pytest.raises(SqlErrors, match="alert 'hotter' reads the topic of stream 'hot'"):
        applied(registry, "CREATE OR REPLACE FUNCTION f(x DOUBLE) RETURNS DOUBLE AS x * 3;")
    applied(registry, "ALTER STREAM air ALTER COLUMN x SET CHECK (x BETWEEN 0 AND 200);")
    inputs = [d.inputs[0] for d in registry.plan.definitions if d.alert == "hotter"]
    assert [one.topic for one in inputs] == ["tamis.stream.hot.1"] * 2
    applied(registry, "DROP ALERT hotter;")
    applied(registry, "CREATE OR REPLACE FUNCTION f(x DOUBLE) RETURNS DOUBLE AS x * 3;")
    assert registry.state.statements["derived/hot"].topics == {"": 2}


def test_documents_say_what_was_planned_again(registry: Registry) -> None:
    outcomes = applied(registry, "ALTER STREAM air ADD COLUMN y DOUBLE;")
    document = outcome_document(outcomes[0], None, registry.view(0))
    assert document["result"] == "altered" and document["kind"] == "stream"
    assert [(one["name"], one["result"]) for one in document["replanned"]] == [
        ("pair", "replaced"),
        ("mean", "kept"),
        ("one", "replaced"),
    ]


def test_explain_of_a_change_changes_nothing(registry: Registry) -> None:
    before = records(registry.state)
    queries = registry.explain("ALTER STREAM air ALTER COLUMN x SET CHECK (x BETWEEN 30 AND 35);")
    assert [(one["name"], one["accepted"]) for one in queries] == [
        ("pair", False),
        ("mean", True),
        ("one", False),
    ]
    assert records(registry.state) == before


def test_a_pattern_alert_follows_a_new_column_and_no_other_domain(registry: Registry) -> None:
    applied(
        registry,
        "CREATE PATTERN dip VALUES (0, -1, 0);"
        "CREATE ALERT shape AS SELECT k FROM air WHERE similar(x, 'dip', 0.3);",
    )
    applied(registry, "ALTER STREAM air ADD COLUMN y DOUBLE;")
    watched = [s for s in registry.plan.streams if s.base == "air"]
    assert [column.name for column in watched[0].columns][:5] == ["k", "ts", "x", "n", "y"]
    with pytest.raises(SqlErrors, match="alert 'shape' reads series of 'air'"):
        applied(registry, "ALTER STREAM air ALTER COLUMN n SET CHECK (n > 0);")
    assert replace(restarted(registry).plan, version=registry.plan.version) == registry.plan


CHANGES = (
    "ALTER STREAM air ALTER COLUMN x SET CHECK (x BETWEEN {0} AND {1});",
    "ALTER STREAM air ALTER COLUMN x DROP CHECK;",
    "ALTER STREAM air ALTER COLUMN x SET NOT NULL, ALTER COLUMN n SET CHECK (n > {0});",
    "ALTER STREAM air ALTER COLUMN x DROP NOT NULL;",
    "ALTER STREAM air ADD COLUMN c{1} DOUBLE CHECK (f(c{1}) > {0});",
    "ALTER STREAM air SET (keys = {1}, rate = '{1}/s');",
    "ALTER STREAM air RESET (keys), SET (max_stall = '{1} minutes');",
    "ALTER STREAM air ALTER WATERMARK FOR ts AS ts - INTERVAL '{1}' SECOND;",
    "CREATE OR REPLACE FUNCTION f(x DOUBLE) RETURNS DOUBLE AS x * {1};",
    "CREATE OR REPLACE ALERT one WITH (read_derived = false) AS SELECT k FROM air WHERE f(x) > {1};",
    "CREATE OR REPLACE STREAM air (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE, n INT, WATERMARK FOR ts AS ts);",
    "DROP ALERT pair;" + JOIN,
    "PAUSE ALERT one;",
    "RESUME ALERT one;",
)


def changes(seed: int) -> Iterator[str]:
    r = random.Random(seed)
    for _ in range(7):
        yield r.choice(CHANGES).format(r.randint(-9, 9), r.randint(10, 200))


@pytest.mark.parametrize("seed", range(4))
def test_any_changes_leave_what_the_resulting_statements_mean(registry: Registry, seed: int) -> None:
    """The same alerts as in a fleet that was made from the resulting statements, and no need of history."""
    done = 0
    for sql in changes(seed):
        try:
            done += applied(registry, sql)[0].result != "unchanged"
        except TamisError:
            continue
    assert done
    again = restarted(registry)
    assert in_order(again.plan) == in_order(replace(registry.plan, version=again.plan.version))
    fresh = started()
    stored = again.state.of_kind("function", "stream", "alert")
    functions = [one for one in stored if one.kind == "function"]
    applied(fresh, ";".join(one.sql.rstrip(";") for one in [*functions, *stored[len(functions) :]]))
    for name in again.state.catalog.paused:
        applied(fresh, f"PAUSE ALERT {name};")
    now = [d for d in again.plan.queries if f"{d.alert}@{d.version}" not in again.plan.retiring]
    plain = [_without_version(query) for query in (*now, *fresh.plan.queries)]
    assert sorted(plain[: len(now)], key=str) == sorted(plain[len(now) :], key=str)


def _without_version(query: Any) -> Any:
    """A definition without what depends on history: its version and the numbers of topics."""
    inputs = tuple(replace(one, topic="") for one in query.inputs)
    return replace(query, version=1, inputs=inputs)
