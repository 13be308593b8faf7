"""The topics of streams over HTTP: their entries, and their readers with filters."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from tests.unit.registry.test_openapi import Made, made

from tamis.cli.common.tables import _lines
from tamis_registry.core import leases

__all__ = ["made"]


def topics(made: Made, stream: str) -> dict[str, dict[str, Any]]:
    found = made.client.get(f"/v1/streams/{stream}/topics").json()
    made.check("/v1/streams/{name}/topics", found)
    return {one["topic"]: one for one in found}


def readers(topic: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [(one["kind"], one["name"], one["source"], one["filter"]) for one in topic["readers"]]


def test_they_are_those_of_the_stream(made: Made) -> None:
    streams = made.client.get("/v1/streams").json()
    for stream in streams:
        assert list(topics(made, stream["name"])) == stream["topics"]
    # Every source of every alert that runs reads one of them.
    found = [
        reader["name"]
        for stream in streams
        if stream["kind"] == "raw"
        for topic in topics(made, stream["name"]).values()
        for reader in topic["readers"]
        if reader["kind"] == "alert"
    ]
    assert sorted(found) == ["early", "hot", "hot", "mean", "priced", "rose"]


def test_readers_have_their_filters_and_edges_the_rule_that_serves_them(made: Made) -> None:
    surface = topics(made, "surface")["tamis.stream.surface.1"]
    assert readers(surface) == [("alert", "hot", "s", "v > -50")]
    assert surface["readers"][0]["interval"] == 20_000_000
    assert surface["entries"] == [
        {
            "filter": "v > -50 AND v IS NOT NULL",
            "key": ["k"],
            "value": "v",
            "sides": "above",
            "interval": 20_000_000,
            "max_delay": None,
            "representatives": None,
        }
    ]
    # The aggregate needs every tuple of air, and has partial aggregates on a topic of its own.
    air = topics(made, "air")
    assert readers(air["tamis.stream.air.2"]) == [("alert", "mean", None, None)]
    assert readers(air["tamis.stream.air.1"]) == [
        ("alert", "hot", "a", None),
        ("subscriber", "mine", None, "v > 7"),
    ]
    entries = air["tamis.stream.air.1"]["entries"]
    assert [(one["value"], one["interval"]) for one in entries] == [("v", 20_000_000), (None, 0)]


def test_a_topic_of_a_derived_stream_names_it_and_has_its_columns() -> None:
    one = Made()
    one.sql(
        "CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE CHECK (x BETWEEN 0 AND 100), n INT,"
        " WATERMARK FOR ts AS ts);"
        "CREATE STREAM warm AS SELECT k, ts AS at, x AS v FROM air WHERE x > 80;"
        "CREATE ALERT tropical AS SELECT k FROM air WHERE x > 90;"
    )
    (warm,) = topics(one, "warm").values()
    assert (warm["derived"], warm["columns"]) == ("warm", ["k", "at", "v"])
    assert [entry["filter"] for entry in warm["entries"]] == ["x > 80"]
    assert readers(warm) == [("alert", "tropical", "air", "x > 90")]
    assert topics(one, "air") == {"tamis.stream.warm.1": warm}


def test_a_replaced_definition_reads_until_it_ends() -> None:
    one = Made()
    one.sql(
        "CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, v DOUBLE, WATERMARK FOR ts AS ts);"
        "CREATE ALERT hot AS SELECT k FROM air WHERE v > 5;"
    )
    one.sql("CREATE OR REPLACE ALERT hot AS SELECT k FROM air WHERE v > 7;")
    found = [reader for topic in topics(one, "air").values() for reader in topic["readers"]]
    assert [(reader["retiring"], reader["filter"]) for reader in found] == [(True, "v > 5"), (False, "v > 7")]
    one.sql("PAUSE ALERT hot;")
    found = [reader for topic in topics(one, "air").values() for reader in topic["readers"]]
    assert all(reader["retiring"] for reader in found)


FAST = """
CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, v DOUBLE CHECK (v BETWEEN 0 AND 99), WATERMARK FOR ts AS ts);
CREATE STREAM surface (k VARCHAR KEY, ts TIMESTAMP, v DOUBLE CHECK (v BETWEEN 0 AND 99),
  WATERMARK FOR ts AS ts);
CREATE ALERT wet AS SELECT a.k FROM air a JOIN surface s ON a.k = s.k
  AND s.ts BETWEEN a.ts - INTERVAL '10' SECOND AND a.ts + INTERVAL '10' SECOND WHERE a.v > s.v;
CREATE ALERT fast WITH (max_delay = '0') AS SELECT a.k FROM air a JOIN surface s ON a.k = s.k
  AND s.ts BETWEEN a.ts - INTERVAL '10' SECOND AND a.ts + INTERVAL '10' SECOND WHERE a.v > s.v + 5;
"""


def test_an_alert_names_the_other_readers_of_its_topics_and_those_that_need_every_tuple() -> None:
    """A user asks why edges retain all readings, although this alert has omission."""
    one = Made()
    one.sql(FAST)
    wet = one.client.get("/v1/alerts/wet").json()
    one.check("/v1/alerts/{name}", wet)
    assert [(each["source"], each["stream"], each["topic"]) for each in wet["sharing"]] == [
        ("a", "air", "tamis.stream.air.1"),
        ("s", "surface", "tamis.stream.surface.1"),
    ]
    for each in wet["sharing"]:
        assert [(r["name"], r["max_delay"], r["needs_all"]) for r in each["readers"]] == [
            ("wet", None, None),
            ("fast", 0, "max_delay = 0"),
        ]
    assert "sharing" not in one.client.get("/v1/alerts").json()[0]
    # The same at the stream, where the rule of the edges says it, too.
    (air,) = topics(one, "air").values()
    assert air["readers"] == wet["sharing"][0]["readers"]
    assert [entry["max_delay"] for entry in air["entries"]] == [0]
    lease = leases.new_lease("air", "", "mine", 600, one.registry.state.catalog)
    _, change = one.registry.subscribe(lease, one.now)
    one.registry.done(change, one.now)
    readers_of_air = one.client.get("/v1/alerts/wet").json()["sharing"][0]["readers"]
    assert readers_of_air[-1]["needs_all"] == "subscribers get every tuple"


def test_an_alert_without_waiting_says_what_becomes_of_the_topic_that_it_shares() -> None:
    """It said that it widens the topic from 100 % to 100 % of the stream."""
    one = Made()
    before, alert, fast = FAST.partition("CREATE ALERT fast")
    one.sql(before)
    (query,) = one.client.post("/v1/explain", content=alert + fast).json()["queries"]
    shares = "shares a topic whose readers' filters pass an estimated 100 % of the stream already"
    every = (
        "edges then publish to it every reading that passes its filter, though other readers may need fewer"
    )
    assert [source["sharing"]["reason"] for source in query["streams"]] == [f"{shares}; {every}"] * 2
    waiting = alert + fast.replace("max_delay = '0'", "max_delay = '9 s'")
    (query,) = one.client.post("/v1/explain", content=waiting).json()["queries"]
    assert [source["sharing"]["reason"] for source in query["streams"]] == [shares] * 2


def test_explain_names_the_readers_that_need_every_tuple() -> None:
    one = Made()
    one.sql(FAST)
    (query,) = one.client.post("/v1/explain", content="EXPLAIN wet;").json()["queries"]
    needy = {"kind": "alert", "name": "fast", "filter": None, "why": "max_delay = 0"}
    assert [source["sharing"]["needs_all"] for source in query["streams"]] == [[needy], [needy]]
    shown = list(_lines({"result": "explained", "explain": {"queries": [query]}}))
    line = "    alert fast reads the topic, too, and needs every tuple: max_delay = 0"
    assert shown.count(line) == 2
    (query,) = one.client.post("/v1/explain", content="EXPLAIN fast;").json()["queries"]
    assert [source["sharing"]["needs_all"] for source in query["streams"]] == [[], []]
    # As `tamis sql` asks.
    (outcome,) = one.sql("EXPLAIN ALERT wet;")
    assert outcome["explain"]["queries"][0]["streams"][0]["sharing"]["needs_all"] == [needy]


def test_explain_names_the_first_readers_and_counts_the_others() -> None:
    one = Made()
    one.sql(STREAM + many(11) + "CREATE ALERT other AS SELECT v FROM s WHERE v > 0.5;")
    (query,) = one.client.post("/v1/explain", content="EXPLAIN other;").json()["queries"]
    sharing = query["streams"][0]["sharing"]
    assert [reader["name"] for reader in sharing["needs_all"]] == [f"a{i}" for i in range(10)]
    assert sharing["needs_all_count"] == 11
    shown = list(_lines({"result": "explained", "explain": {"queries": [query]}}))
    assert shown.count("    1 more reader of the topic needs every tuple") == 1
    (query,) = one.client.post("/v1/explain", content="EXPLAIN a3;").json()["queries"]
    sharing = query["streams"][0]["sharing"]
    assert (
        "a3" not in [reader["name"] for reader in sharing["needs_all"]] and sharing["needs_all_count"] == 11
    )


@pytest.mark.parametrize("shape", ["alone", "long", "derived", "explained"])
@pytest.mark.parametrize("applied", [False, True])
def test_an_answer_grows_with_the_number_of_queries_and_no_faster(shape: str, applied: bool) -> None:
    """Each alert named all other readers of its topic."""

    def size(count: int) -> int:
        one = Made()
        text = STREAM + many(count)
        if shape == "long":
            text += f"CREATE ALERT long AS SELECT v FROM s WHERE v IN ({', '.join(map(str, range(200)))});"
        elif shape == "derived":
            text = text.replace("FROM s ", "FROM d ").replace(
                "CREATE ALERT", "CREATE STREAM d AS SELECT v, k, ts FROM s WHERE v > 0.1; CREATE ALERT", 1
            )
        elif shape == "explained":
            text += "".join(f"EXPLAIN a{i};" for i in range(count))
        return len(orjson.dumps(one.sql(text) if applied else one.registry.explain(text)))

    small, large = size(20), size(40)
    assert large < 2.2 * small, (small, large)


STREAM = "CREATE STREAM s (k VARCHAR KEY, ts TIMESTAMP, v DOUBLE, WATERMARK FOR ts AS ts);\n"


def many(count: int) -> str:
    """Alerts over one topic, none of them with omission."""
    return "".join(f"CREATE ALERT a{i} AS SELECT v FROM s WHERE v > {i % 90}.{i};" for i in range(count))


def test_an_alert_is_explained_against_the_fleet_without_being_created() -> None:
    one = Made()
    one.sql(FAST)
    plan = one.registry.plan.version
    (outcome,) = one.sql("EXPLAIN CREATE ALERT hot AS SELECT k FROM air WHERE v > 5;")
    (query,) = outcome["explain"]["queries"]
    assert (outcome["result"], query["name"], query["accepted"]) == ("explained", "hot", True)
    assert (list(one.registry.state.catalog.alerts), one.registry.plan.version) == (["wet", "fast"], plan)


def test_an_unknown_stream_is_not_found(made: Made) -> None:
    answer = made.client.get("/v1/streams/aire/topics")
    assert answer.status_code == 404
    assert "'air'" in answer.json()["hint"]
    assert made.client.get("/v1/streams/AIR/topics").status_code == 200


def test_reasons_of_topics_of_partial_aggregates() -> None:
    one = Made()
    one.sql(
        "CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE CHECK (x BETWEEN 0 AND 100),"
        " WATERMARK FOR ts AS ts);"
    )
    window = "FROM TUMBLE(air, ts, INTERVAL '1' MINUTE) WHERE x > 50 GROUP BY window_end, k"
    sql = f"CREATE ALERT first AS SELECT window_end, k, max(x) AS most {window};"
    second = sql.replace("first", "second").replace("max", "avg")

    def reason(text: str) -> tuple[str, str]:
        (query,) = one.client.post("/v1/explain", content=text).json()["queries"]
        (source,) = query["streams"]
        return source["sharing"]["topic"], source["sharing"]["reason"]

    needed = "the readings that the query needs, an estimated 50 % of the stream's"
    half = f"edges send partial aggregates of {needed}"
    own, told = reason(sql)
    assert told == f"a topic of its own; {half}"
    one.sql(sql)
    shared = f"shares the topic of alerts with the same filter and groups; {half}"
    assert reason(second) == (own, shared)
    assert reason(sql) == (own, f"keeps its topic; {half}")
    other, told = reason(second.replace("AS SELECT", "WITH (edge = 'raw') AS SELECT"))
    assert other != own
    assert told.startswith("a topic of its own with an estimated 50 %")
