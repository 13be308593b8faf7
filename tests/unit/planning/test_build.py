"""The plan of a catalogue: topics, entries, definitions, versions."""

from __future__ import annotations

import pytest
from tests.unit.certificates.catalogs import NEAR, TWO

from tamis.errors import RefusedError
from tamis.expressions.nodes import Expr
from tamis.expressions.sql_text import to_sql
from tamis.plan.model import Plan, TopicPlan
from tamis.planning.build import Retiring, build_plan
from tamis.planning.incremental import Built
from tamis.query.model import Catalog
from tamis.query.parse import catalog_of


def alert(name: str, condition: str, options: str = "", on: str = NEAR) -> str:
    return f"CREATE ALERT {name} {options} AS SELECT a.k FROM a JOIN b ON {on} WHERE {condition};"


def build(catalog: Catalog, version: int = 1, **more: object) -> Built:
    given: dict[str, object] = {"partitions": 4, "versions": {}, "topic_numbers": {}}
    return build_plan(version, catalog, **{**given, **more})  # type: ignore[arg-type]


def topic(plan: Plan, stream: str) -> TopicPlan:
    found = plan.stream(stream)
    assert found is not None
    (only,) = found.topics
    return only


def text(expr: Expr | None) -> str | None:
    return None if expr is None else to_sql(expr)


def test_one_alert() -> None:
    built = build(catalog_of(TWO, alert("q", "a.x > b.x AND a.y > 3", "WITH (max_delay = '5 seconds')")))
    plan = built.plan
    assert (plan.version, plan.partitions) == (1, 4)
    assert built.topic_numbers == {("a", ("k",)): (1,), ("b", ("k",)): (1,)}
    a = topic(plan, "a")
    assert (a.name, a.partition_key, a.columns) == ("tamis.stream.a.1", ("k",), ("x", "y"))
    (entry,) = a.entries
    assert text(entry.filter) == "y > 3 AND x IS NOT NULL"
    assert (text(entry.value), entry.sides, entry.interval) == ("x", "above", 10_000_000)
    assert (entry.omission_key, entry.max_delay, entry.serves) == (("k",), 5_000_000, 1)
    (definition,) = plan.definitions
    assert [(i.alias, i.topic, i.interval) for i in definition.inputs] == [
        ("a", "tamis.stream.a.1", 10_000_000),
        ("b", "tamis.stream.b.1", 10_000_000),
    ]
    assert text(definition.inputs[0].filter) == "a.y > 3"
    assert text(definition.condition) == "a.x > b.x"
    assert definition.select[0][0] == "k"
    assert plan.stream("c") is not None  # edges check streams that no alert reads yet


def test_equal_entries_are_merged_as_in_the_model() -> None:
    near = NEAR.replace("5", "2")
    catalog = catalog_of(
        TWO,
        alert("high", "a.x > b.x", "WITH (max_delay = '5 seconds')"),
        alert("low", "a.x < b.x", "WITH (max_delay = '3 seconds')", near),
        alert("other", "a.y > b.y"),
    )
    plan = build(catalog, 7, versions={"high": 2, "low": 5, "other": 4}).plan
    first, second = topic(plan, "a").entries
    assert (first.interval, first.sides, first.max_delay, first.serves) == (4_000_000, "both", 3_000_000, 5)
    assert (text(second.value), second.serves) == ("y", 4)
    assert {d.alert: d.version for d in plan.definitions} == {"high": 2, "low": 5, "other": 4}


def test_a_reader_of_every_tuple_serves_those_of_narrower_filters() -> None:
    single = "CREATE ALERT {} AS SELECT k FROM a WHERE {};"
    joined = alert("joined", "a.x > b.x AND a.y > 3")
    catalog = catalog_of(
        TWO, joined, single.format("wide", "y > 3"), single.format("narrow", "y > 3 AND x > 1")
    )
    versions = {"joined": 8, "wide": 2, "narrow": 4}
    (entry,) = topic(build(catalog, 9, versions=versions).plan, "a").entries
    assert (text(entry.filter), entry.interval, entry.serves) == ("y > 3", 0, 8)
    del catalog.alerts["wide"]
    second, first = topic(build(catalog, 9, versions=versions).plan, "a").entries
    assert (text(first.filter), first.serves) == ("y > 3 AND x IS NOT NULL", 8)
    assert (text(second.filter), second.serves) == ("y > 3 AND x > 1", 4)


@pytest.mark.parametrize(
    ("wide", "narrow", "entries"),
    [
        ("x NOT BETWEEN -5 AND 20", "x > 30 OR x < -10", 1),
        ("x > 1 OR x <= 1 AND y > 3", "y BETWEEN 4 AND 9 AND x IS NOT NULL", 1),
        ("y > 3 OR y < 3", "y IN (1, 2, 4)", 1),
        ("y > 3", "y >= 2 AND y < 10", 2),
        ("x > 1", "y > 3", 2),
        ("x + y > 1", "x + y > 1 AND x < 5", 1),  # by its conjuncts: it isn't one attribute's comparison
        # Rounding decides, which nobody can say in general: no error, and no sharing.
        ("x - y <= 0.7 AND y < x", "x < y + 0.7 AND y < x", 2),
    ],
)
def test_which_filters_are_narrower(wide: str, narrow: str, entries: int) -> None:
    single = "CREATE ALERT {} AS SELECT k FROM a WHERE {};"
    catalog = catalog_of(TWO, single.format("narrow", narrow), single.format("wide", wide))
    found = topic(build(catalog).plan, "a").entries
    assert len(found) == entries
    if entries == 1:
        (alone,) = topic(build(catalog_of(TWO, single.format("wide", wide))).plan, "a").entries
        assert found[0].filter == alone.filter


def test_what_keeps_all_has_no_value() -> None:
    catalog = catalog_of(TWO, "CREATE ALERT q WITH (max_delay = '5 seconds') AS SELECT k FROM a WHERE x > 3")
    (entry,) = topic(build(catalog).plan, "a").entries
    assert (text(entry.filter), entry.value, entry.interval, entry.max_delay) == ("x > 3", None, 0, None)


def test_another_partition_key_is_another_topic_and_numbers_stay() -> None:
    catalog = catalog_of(
        TWO,
        alert("q", "a.x > b.x"),
        alert("r", "a.x > b.x", on="a.mode = b.mode AND ABS(a.ts - b.ts) < INTERVAL '1' SECOND"),
    )
    built = build(catalog)
    stream = built.plan.stream("a")
    assert stream is not None
    assert [t.name for t in stream.topics] == ["tamis.stream.a.1", "tamis.stream.a.2"]
    assert [t.partition_key for t in stream.topics] == [("k",), ("mode",)]
    del catalog.alerts["q"]
    again = build(catalog, 2, topic_numbers=built.topic_numbers)
    assert topic(again.plan, "a").name == "tamis.stream.a.2"
    assert again.topic_numbers == built.topic_numbers


def test_a_replaced_alert_runs_on_beside_its_successor() -> None:
    catalog = catalog_of(TWO, alert("q", "a.x > b.x"))
    old = catalog.alerts["q"]
    catalog = catalog_of(TWO, alert("q", "a.x < b.x"))
    plan = build(catalog, 7, retiring=[Retiring(old, 3, 7)]).plan
    assert [(d.alert, d.version) for d in plan.definitions] == [("q", 3), ("q", 7)]
    assert plan.retiring == {"q@3": 7}
    (entry,) = topic(plan, "a").entries
    assert (entry.sides, entry.serves) == ("both", 7)


def test_paused_alerts_are_left_out() -> None:
    catalog = catalog_of(TWO, alert("q", "a.x > b.x"), "PAUSE ALERT q")
    plan = build(catalog).plan
    assert plan.definitions == ()
    assert all(stream.topics == () for stream in plan.streams)


def test_a_derived_stream_has_a_topic_of_its_own() -> None:
    catalog = catalog_of(TWO, "CREATE STREAM hot AS SELECT k, ts, x * 2 + y AS z FROM a WHERE x > 30")
    found = topic(build(catalog).plan, "a")
    assert (found.name, found.partition_key, found.columns) == ("tamis.stream.hot.1", ("k",), ())
    assert [(name, text(expr)) for name, expr in found.select] == [
        ("k", "k"),
        ("ts", "ts"),
        ("z", "x * 2 + y"),
    ]
    (entry,) = found.entries
    assert (text(entry.filter), entry.interval) == ("x > 30", 0)


def test_an_alert_over_a_derived_stream_reads_the_base_streams_topic() -> None:
    catalog = catalog_of(
        TWO,
        "CREATE STREAM hot AS SELECT k, ts, x FROM a WHERE x > 30",
        f"CREATE ALERT q AS SELECT h.k FROM hot h JOIN b ON {NEAR.replace('a.', 'h.')} WHERE h.x > b.x",
    )
    plan = build(catalog).plan
    (definition,) = plan.definitions
    assert definition.inputs[0].topic == "tamis.stream.a.1"
    assert text(definition.inputs[0].filter) == "h.x > 30"


def test_the_domain_of_every_column_is_checked() -> None:
    stream = build(catalog_of(TWO)).plan.stream("a")
    assert stream is not None
    checks = {c.name: text(c.check) for c in stream.columns}
    assert checks["x"] == "x >= -1e+100 AND x <= 1e+100"
    assert checks["pos"] == "pos >= 0.1 AND pos <= 100"
    assert checks["n"] == "n >= -2147483648 AND n <= 2147483647"
    assert checks["big"] is None


def test_what_is_refused_makes_no_plan() -> None:
    catalog = catalog_of(TWO, alert("q", "a.x > b.x", on="a.k = b.k"))
    with pytest.raises(RefusedError, match="alert q"):
        build(catalog)
