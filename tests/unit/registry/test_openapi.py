"""The OpenAPI description: it is the committed one, and real documents are of the types that it declares."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter
from starlette.testclient import TestClient
from tests.unit.registry.openapi_copy import COPY, described, written

from tamis.declarations.file_access import NO_ACCESS
from tamis.messaging.records import Ack, Frontier
from tamis.offline.explain import planned
from tamis.plan.json_form import encode_plan
from tamis.settings import KafkaSettings
from tamis.telemetry import Health, Metrics
from tamis_registry.core import leases
from tamis_registry.core.plan.planner import PLANNER
from tamis_registry.core.registry import Registry
from tamis_registry.core.state.model import State
from tamis_registry.http.api import application
from tamis_registry.http.common.problems import Problem
from tamis_registry.http.documents import Document
from tamis_registry.http.documents.alerts import outcome_document
from tamis_registry.plans import Origin
from tamis_registry.proving.pool import provers_of
from tamis_registry.registry_loop import RegistryLoop

STREAMS = """
CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, v DOUBLE CHECK (v BETWEEN 0 AND 100), WATERMARK FOR ts AS ts)
  WITH (rate = '10/s', keys = 100);
CREATE STREAM surface (k VARCHAR KEY, ts TIMESTAMP, v DOUBLE, WATERMARK FOR ts AS ts);
CREATE STREAM bids (item INT, price BIGINT);
CREATE STREAM asks (item INT, price BIGINT);
CREATE PATTERN knock VALUES (0, 1, 4, 1, 0) WITH (max_gap = '1 second');
CREATE STREAM warm AS SELECT k, ts, v FROM air WHERE v > 30;
"""
ALERTS = """
CREATE ALERT hot AS SELECT a.k, a.v FROM air a JOIN surface s ON a.k = s.k
  AND s.ts BETWEEN a.ts - INTERVAL '10' SECOND AND a.ts + INTERVAL '10' SECOND WHERE a.v + s.v > 50;
CREATE ALERT mean AS SELECT window_end, k, avg(v) AS m FROM TUMBLE(air, ts, INTERVAL '1' MINUTE)
  GROUP BY window_end, k;
CREATE ALERT rose AS SELECT k, v FROM air WHERE v - lag(v) OVER (PARTITION BY k ORDER BY ts) > 5;
CREATE ALERT priced AS SELECT DISTINCT b.item FROM bids b WHERE b.item IN (1, 2);
CREATE ALERT early WITH (from = 'earliest') AS SELECT k FROM surface WHERE v > 90;
"""
REFUSED = "CREATE ALERT loose AS SELECT a.k FROM air a JOIN surface s ON a.k = s.k WHERE a.v + s.v > 50;"


class Made:
    """A registry without its loop, and the API in front of it."""

    def __init__(self) -> None:
        metrics, health = Metrics("registry"), Health()
        self.worker = RegistryLoop(KafkaSettings(), 2, PLANNER, metrics, health)
        self.registry = Registry(PLANNER, State(2), None, 0, 0)
        self.registry.done(self.registry.begin(0), 0)
        for partition in range(2):
            self.registry.follow(Frontier(partition, 0, {}, {}, {}, 0, 0, 0, began=1))
        self.worker._registry, self.worker._away = self.registry, None
        self.app = application(self.worker, provers_of(NO_ACCESS, 1), metrics, health)
        self.openapi = self.app.openapi()
        self.client = TestClient(self.app, base_url="http://localhost", raise_server_exceptions=False)
        self.now = 1

    def sql(self, text: str) -> list[Document]:
        outcomes, change = self.registry.apply(text, self.now)
        self.registry.done(change, self.now)
        view = self.registry.view(self.now)
        return [outcome_document(one, one.explanation(), view) for one in outcomes]

    def check(self, path: str, document: Any, method: str = "get", status: str = "200") -> None:
        """Compare a document with the type of an operation's answer, and find further members."""
        answer = self.openapi["paths"][path][method]["responses"][status]
        schema = closed({**answer["content"]["application/json"]["schema"], **_parts(self.openapi)})
        Draft202012Validator(schema).validate(orjson.loads(orjson.dumps(document)))


def _parts(openapi: dict[str, Any]) -> dict[str, Any]:
    return {"components": openapi["components"]}


def closed(schema: Any) -> Any:
    """The schema that allows no further members where some are declared."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: closed(one) for name, one in schema.items()}
    if "properties" in made and made.get("title") != "WholePlan" and made.get("type") == "object":
        made["additionalProperties"] = False
    return made


@pytest.fixture(scope="module")
def made() -> Made:
    """One for all tests of a module."""
    return make()


def make() -> Made:
    """A registry with definitions, shards of two edges, and a reader from outside."""
    one = Made()
    one.sql(STREAMS)
    one.sql(ALERTS)
    for stream in ("air", "surface"):
        ack = Ack(f"{stream}:e1/s", stream, "e1", 0, 0, "waiting", one.now)
        one.registry.hear(ack, one.now)
    change = one.registry.tick(one.now)
    assert change
    one.registry.done(change, one.now)
    version = one.registry.plan.version
    one.registry.hear(Ack("air:e1/s", "air", "e1", version, 100, "active", one.now), one.now)
    lease = leases.new_lease("air", "v > 7", "mine", 600, one.registry.state.catalog)
    _, change = one.registry.subscribe(lease, one.now)
    one.registry.done(change, one.now)
    made = Origin(1_700_000_000_000_000, ("CREATE ALERT hot AS",))
    one.worker.plans.add(one.registry.plan.version, encode_plan(one.registry.plan), made)
    return one


def test_it_is_the_committed_one() -> None:
    """After a change: `python -m tests.unit.registry.openapi_copy`, and a line in docs/http-api.md."""
    assert written(described()) == COPY.read_bytes()


@pytest.mark.parametrize(
    ("kind", "name"),
    [("alerts", "hot"), ("streams", "air"), ("streams", "warm"), ("patterns", "knock"), ("edges", "e1")],
)
def test_lists_and_single_documents_are_of_their_types(made: Made, kind: str, name: str) -> None:
    every = made.client.get(f"/v1/{kind}").json()
    assert every
    made.check(f"/v1/{kind}", every)
    one = made.client.get(f"/v1/{kind}/{name}").json()
    assert one["name"] == name
    made.check(f"/v1/{kind}/{{name}}", one)


def test_the_documents_have_what_they_may_have(made: Made) -> None:
    """Else the comparison with the types says little."""
    alerts = {one["name"]: one for one in made.client.get("/v1/alerts").json()}
    assert "history" in alerts["early"] and alerts["hot"]["activations"] and alerts["hot"]["bound"] is None
    times = {name: made.client.get(f"/v1/alerts/{name}").json()["times"] for name in ("hot", "mean")}
    assert times == {"hot": [], "mean": ["window_end"]}
    streams = {one["name"]: one for one in made.client.get("/v1/streams").json()}
    assert streams["air"]["subscribers"] and streams["air"]["shards"] and streams["warm"]["kind"] == "derived"


@pytest.mark.parametrize("name", ["hot", "mean", "rose", "priced", "early"])
def test_physical_plans_are_of_their_type_and_those_of_explain(made: Made, name: str) -> None:
    plan = made.client.get(f"/v1/alerts/{name}/plan").json()
    made.check("/v1/alerts/{name}/plan", plan)
    assert (plan["name"], plan["accepted"], plan["reason"]) == (name, True, None)
    assert plan["plan"]["runs"] == "joiner"
    (alone,) = planned([made.registry.state.catalog.alerts[name]], made.registry.state.catalog).queries
    # Topics of a fleet may have other numbers, and those of a history have the version of their plan.
    assert without_topics(plan) == without_topics(orjson.loads(orjson.dumps(alone.document())))


def without_topics(document: Any) -> Any:
    if isinstance(document, list):
        return [
            without_topics(one)
            for one in document
            if not isinstance(one, dict) or one.get("name") not in ("topic", "also sent")
        ]
    if isinstance(document, dict):
        return {name: without_topics(one) for name, one in document.items()}
    return document


def test_alert_without_a_plan_says_why(made: Made) -> None:
    assert made.client.get("/v1/alerts/nobody/plan").status_code == 404
    fleet = Made()
    fleet.sql(STREAMS + ALERTS + "PAUSE ALERT hot;")
    plan = fleet.client.get("/v1/alerts/hot/plan").json()
    fleet.check("/v1/alerts/{name}/plan", plan)
    assert (plan["plan"], plan["bound"], plan["accepted"]) == (None, None, True)
    assert plan["reason"] == "the alert is paused: RESUME ALERT starts it again"


def test_plan_of_a_replaced_alert_is_the_new_one() -> None:
    fleet = Made()
    fleet.sql(STREAMS + ALERTS)
    fleet.sql("CREATE OR REPLACE ALERT rose AS SELECT k FROM air WHERE v > 77;")
    plan = fleet.client.get("/v1/alerts/rose/plan").json()
    assert "v > 77" in str(plan) and "lag" not in str(plan)


def test_plans_and_leases_are_of_their_types(made: Made) -> None:
    summaries = made.client.get("/v1/plans").json()
    made.check("/v1/plans", summaries)
    plan = made.client.get(f"/v1/plans/{summaries[0]['version']}")
    made.check("/v1/plans/{version}", plan.json())
    topic = "/v1/streams/{name}/topic"
    asked = {"predicate": "v > 7", "consumer": "mine"}
    lent = made.client.get("/v1/streams/air/topic", params=asked).json()
    assert lent["lease"] is not None
    made.check(topic, lent)
    looked = made.client.get("/v1/streams/air/topic", params={"predicate": "v > 8"}).json()
    assert looked["lease"] is None
    made.check(topic, looked)


def test_outcomes_and_explanations_are_of_their_types() -> None:
    made = Made()
    outcomes = made.sql(STREAMS + ALERTS)
    outcomes += made.sql("SHOW ALERTS; SHOW STREAMS; SHOW PATTERNS; EXPLAIN hot; PAUSE ALERT hot;")
    outcomes += made.sql("ALTER STREAM air ADD COLUMN w DOUBLE; DROP ALERT mean;")
    assert {"rows", "explain", "verdict", "replanned"} <= {name for one in outcomes for name in one}
    made.check("/v1/statements", outcomes, "post")
    made.check("/v1/alerts/{name}", outcomes, "delete")
    explained = made.registry.snapshot().explain(REFUSED + "EXPLAIN hot; EXPLAIN rose; EXPLAIN priced;")
    assert [one["accepted"] for one in explained] == [False, True, True, True]
    made.check("/v1/explain", {"queries": explained}, "post")


def test_names_are_those_of_the_definitions(made: Made) -> None:
    names = made.client.get("/v1/names").json()
    made.check("/v1/names", names)
    streams = {one["name"]: one for one in names["streams"]}
    assert set(streams) == {"air", "surface", "bids", "asks", "warm"}
    assert streams["air"]["columns"][0] == {"name": "k", "type": "VARCHAR", "key": True}
    assert (streams["air"]["time"], streams["bids"]["time"]) == ("ts", None)
    assert [one["name"] for one in streams["warm"]["columns"]] == ["k", "ts", "v"]
    assert set(names["alerts"]) == {"hot", "mean", "rose", "priced", "early"}
    assert names["patterns"] == ["knock"] and names["functions"] == []
    assert {"abs", "avg", "similar"} <= set(names["builtin"])
    assert {"SELECT", "GROUP BY", "CREATE"} <= set(names["keywords"])


def test_a_member_that_is_not_declared_is_found(made: Made) -> None:
    """The comparison itself."""
    every = made.client.get("/v1/edges").json()
    every[0]["shards"][0]["colour"] = "red"
    with pytest.raises(Exception, match="colour"):
        made.check("/v1/edges", every)


def test_problems_are_of_their_type(made: Made) -> None:
    problem = TypeAdapter(Problem)
    for path, status in (("/v1/alerts/nobody", 404), ("/v1/plans/first", 400), ("/nowhere", 404)):
        answer = made.client.get(path)
        assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
        assert problem.validate_json(answer.content, strict=True) == answer.json()


def test_every_operation_has_types_tags_and_a_summary() -> None:
    document = described()
    tags = {tag["name"] for tag in document["tags"]}
    used = set()
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            assert operation["summary"] and len(operation["tags"]) == 1, (method, path)
            used.add(operation["tags"][0])
            good = next(answer for status, answer in operation["responses"].items() if status < "300")
            schemas = [content["schema"] for content in good.get("content", {}).values()]
            assert all(schemas) and (schemas or "204" in operation["responses"]), (method, path)
    assert used == tags


def test_the_page_of_the_api_lists_every_operation() -> None:
    page = COPY.with_name("http-api.md").read_text()
    for path, operations in described()["paths"].items():
        shown = path.replace("{name}", "NAME").replace("{version}", "VERSION").replace("{episode}", "EPISODE")
        shown = shown.replace("{lease}", "ID").replace("{silence}", "ID")
        for method in operations:
            assert f"| `{method.upper()} {shown}` |" in page, (method, path)
