"""The registry's HTTP API end to end on a real broker."""

from __future__ import annotations

import base64
import hashlib
import re
import signal
import socket
import time
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewPartitions, NewTopic

from tamis.cli import main
from tamis.doctor.places import Places
from tamis.doctor.table import CHECKS, findings
from tamis.local.broker import EmbeddedKafka
from tamis.messaging.records import Ack
from tamis.messaging.topics import ACKS, DEAD_LETTERS, PLANS
from tamis.settings import KafkaSettings
from tamis.web.registry_client import RegistryClient

CHANGED = (
    "CREATE {}ALERT hot AS SELECT a.k FROM air a JOIN surface s ON a.k = s.k AND s.ts BETWEEN "
    "a.ts - INTERVAL '10' SECOND AND a.ts + INTERVAL '10' SECOND WHERE a.v + s.v > 60;"
)
UNBOUNDED = "CREATE ALERT loose {}AS SELECT a.k FROM air a JOIN surface s ON a.k = s.k WHERE a.v + s.v > 50;"


def problem(answer: Any, status: int) -> Any:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    document = answer.json()
    assert document["status"] == status and document["type"] and document["title"] and document["detail"]
    return document


def test_statements_become_one_plan_in_every_partition(fresh: str, start: Any, hand: Any, sql: Any) -> None:
    registry = start(fresh).ready()
    made = registry.sql(sql() + "SHOW STREAMS; EXPLAIN hot;")
    assert [(m["statement"], m["result"]) for m in made] == [
        ("create stream", "created"),
        ("create stream", "created"),
        ("create alert", "created"),
        ("show streams", "shown"),
        ("explain", "explained"),
    ]
    assert (made[2]["kind"], made[2]["name"], made[2]["verdict"]) == ("alert", "hot", "bounded")
    assert [row["name"] for row in made[3]["rows"]] == ["air", "surface"]
    assert made[4]["explain"]["queries"][0]["name"] == "hot"
    version = made[2]["plan"]
    written = hand(fresh).read(PLANS)
    newest = sorted(((p, plan) for p, plan in written if plan["version"] == version), key=lambda it: it[0])
    assert [p for p, _ in newest] == [0, 1] and newest[0][1] == newest[1][1]
    topics = [t["name"] for s in newest[0][1]["streams"] for t in s["topics"]]
    assert topics == ["tamis.stream.air.1", "tamis.stream.surface.1"]
    assert all(hand(fresh).read(topic) == [] for topic in topics)
    assert registry.get("alerts/HOT")["state"] == "starting"
    assert [m["result"] for m in registry.sql(sql())] == ["unchanged"] * 3
    assert registry.get("plans")[0]["version"] == version
    assert registry.call("DELETE", "/v1/alerts/Hot").json()[0]["result"] == "dropped"
    assert registry.get("alerts") == []


def test_mistakes_are_problem_documents(fresh: str, start: Any, sql: Any) -> None:
    registry = start(fresh).ready()
    registry.sql(sql())
    plans = registry.get("plans")

    def post(text: str, **headers: str) -> Any:
        return registry.call("POST", "/v1/statements", text, **headers)

    document = problem(post("CREATE STREAM s (k VARCHR);\nDROP STREAM nowhere;"), 400)
    assert [(e["line"], e["column"]) for e in document["errors"]] == [(1, 20), (2, 13)]
    assert all(e["what"] and e["hint"] and "file" not in e for e in document["errors"])
    marked = [
        "  CREATE STREAM s (k VARCHR);\n                     ^",
        "  DROP STREAM nowhere;\n              ^",
    ]
    assert [e["marked"] for e in document["errors"]] == marked
    named = registry.call("POST", "/v1/statements?file=my%20alerts.sql", "SHOW NOTHING;")
    document = problem(named, 400)
    assert document["detail"].startswith("my alerts.sql:1:6: ")
    assert document["errors"][0]["file"] == "my alerts.sql"
    named = registry.call("POST", "/v1/explain?file=a.sql", "SHOW NOTHING;")
    assert problem(named, 400)["detail"].startswith("a.sql:1:6: ")
    named = registry.call("POST", "/v1/statements?file=a.sql", UNBOUNDED.format(""))
    assert problem(named, 422)["where"] == "a.sql:1:14"
    problem(registry.call("POST", "/v1/statements?file=a%0Ab", "SHOW ALERTS;"), 400)
    assert "OR REPLACE" in problem(post(CHANGED.format("")), 409)["errors"][0]["hint"]
    assert "alert 'hot'" in problem(post("DROP STREAM air;"), 409)["detail"]
    assert "alert 'hot'" in problem(registry.call("DELETE", "/v1/streams/air"), 409)["detail"]
    document = problem(post(UNBOUNDED.format("")), 422)
    assert document["verdict"] == "unbounded" and document["reason"] and document["repairs"]
    problem(registry.call("DELETE", "/v1/alerts/nobody"), 404)
    problem(registry.call("GET", "/v1/alerts/nobody"), 404)
    problem(registry.call("GET", "/v1/plans/99"), 404)
    problem(registry.call("GET", "/v1/plans/first"), 400)
    problem(registry.call("GET", "/nowhere"), 404)
    problem(registry.call("PUT", "/v1/statements"), 405)
    as_curl_sends_it = {"content-type": "application/x-www-form-urlencoded"}
    assert post("SHOW ALERTS;", **as_curl_sends_it).json()[0]["statement"] == "show alerts"
    problem(post("SHOW ALERTS;" + " " * 2**20), 413)
    problem(post("{}", **{"content-type": "application/json"}), 415)
    problem(post("SHOW ALERTS;", origin="http://elsewhere.example"), 403)
    assert post("SHOW ALERTS;", origin=registry.server.url).status_code == httpx.codes.OK
    document = problem(post("CREATE TABLE r (a INT) WITH (path = '/etc/passwd.csv');"), 422)
    assert (document["where"], document["type"]) == (
        "line 1, column 14: table r",
        "urn:tamis:problem:refused",
    )
    assert "TAMIS_TABLES isn't set" in document["detail"] and "set TAMIS_TABLES" in document["hint"]
    answer = registry.call("POST", "/v1/explain", UNBOUNDED.format(""))
    assert answer.json()["queries"][0]["accepted"] is False
    assert registry.get("plans") == plans
    assert registry.sql(UNBOUNDED.format("WITH (allow_unbounded = true) "))[0]["verdict"] == "unbounded"


def test_what_is_in_service_is_kept_where_that_is_asked_for(fresh: str, start: Any, sql: Any) -> None:
    registry = start(fresh).ready()
    registry.sql(sql())
    made = registry.call(
        "POST", "/v1/statements?existing=keep&file=a.sql", CHANGED.format("OR REPLACE ")
    ).json()
    assert (made[0]["result"], made[0]["where"]) == ("kept", "a.sql:1:25")
    assert made[0]["asked"] + ";" == CHANGED.format("OR REPLACE ")
    assert made[0]["in_service"] == registry.get("alerts/hot")["sql"] != made[0]["asked"]
    problem(registry.call("POST", "/v1/statements?existing=drop", "SHOW ALERTS"), 400)


def test_the_page_of_the_api_loads_nothing_from_elsewhere(fresh: str, start: Any) -> None:
    registry = start(fresh).ready()
    answer = registry.call("GET", "/docs")
    page = answer.text
    # Its one inline script is allowed by its digest, and no other is.
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    (allowed,) = re.findall(r"script-src ([^;]*)", answer.headers["content-security-policy"])
    digests = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts]
    assert allowed.split() == ["'self'", *(f"'sha256-{one}'" for one in digests)] and len(scripts) == 1
    assert answer.headers["x-frame-options"] == "DENY"
    loaded = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert loaded and all(place.startswith("/") for place in loaded)
    for place in loaded:
        assert registry.call("GET", place).status_code == 200
    paths = registry.call("GET", "/openapi.json").json()["paths"]
    assert {"/v1/statements", "/v1/explain", "/v1/alerts/{name}", "/v1/plans"} <= paths.keys()


def test_telemetry_is_on_the_same_port(fresh: str, start: Any, sql: Any) -> None:
    registry = start(fresh).ready()
    registry.sql(sql())
    assert registry.call("GET", "/healthz").status_code == 200
    registry.until(
        lambda: 'tamis_registry_queries{state="starting"} 1.0' in registry.call("GET", "/metrics").text
    )
    text = registry.call("GET", "/metrics").text
    assert 'tamis_registry_statements_total{kind="create alert",outcome="created"} 1.0' in text
    assert 'tamis_registry_topics{stream="air"} 1.0' in text
    assert 'tamis_plan_version{service="registry"} 2.0' in text


def test_doctor_checks_kafka_its_topics_and_the_registry(fresh: str, start: Any, hand: Any, sql: Any) -> None:
    registry = start(fresh).ready()
    registry.sql(sql())
    places = Places(KafkaSettings(bootstrap=fresh), RegistryClient(registry.server.url))

    def states() -> dict[str, str]:
        return {name: finding.state for name, finding in findings(places)}

    first = states()
    del first["memory"], first["disk"], first["ports"]
    assert first == {
        "java": "ok",
        "kafka": "ok",
        "brokers": "ok",
        "topics": "ok",
        "clock": "unchecked",
        "registry": "ok",
        "cluster": "ok",
        "plan": "unchecked",
        "sources": "unchecked",
        "readings": "unchecked",
        "joiner": "unchecked",
        "sinks": "unchecked",
    }
    hand(fresh).ack("air:e/http", 0)
    registry.until(lambda: registry.get("edges"))
    assert states()["plan"] == "warning"
    admin = AdminClient({"bootstrap.servers": fresh})
    (made,) = admin.create_partitions([NewPartitions("tamis.alarms", 5)]).values()
    made.result(10)
    places = Places(places.kafka, places.registry)
    registry.until(
        lambda: len(Places(places.kafka, places.registry).cluster.topics["tamis.alarms"].partitions) == 5
    )
    found = CHECKS["topics"](Places(places.kafka, places.registry))
    assert found.state == "failed" and "tamis.alarms has 5 partitions instead of 2" in found.found
    short = ConfigEntry("retention.ms", "60000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, DEAD_LETTERS, incremental_configs=[short])
    (changed,) = admin.incremental_alter_configs([resource]).values()
    changed.result(10)

    def topics() -> str:
        return CHECKS["topics"](Places(places.kafka, places.registry)).found

    registry.until(lambda: "tamis.dead-letters: retention.ms=60000, less than 604800000" in topics())
    (source,) = admin.create_topics([NewTopic("raw.air", 1, config={"retention.ms": "60000"})]).values()
    source.result(10)
    hand(fresh).ack("air:raw.air/0", 0)
    registry.until(
        lambda: (
            (one := CHECKS["sources"](Places(places.kafka, places.registry))).state == "warning"
            and one.found == "raw.air: retention.ms=60000, less than 600000"
        )
    )
    assert states()["clock"] == "ok"
    ahead = Ack("air:fast/http", "air", "fast", 0, 0, "waiting", time.time_ns() // 1000 + 60_000_000)
    hand(fresh).garbage(ACKS, ahead.to_bytes(), b"air:fast/http")
    clock = registry.until(lambda: (one := CHECKS["clock"](places)).state == "failed" and one)
    assert "ahead of the clock of this machine" in clock.found


def test_doctor_tells_the_kafka_of_another_fleet(fresh: str, start: Any, broker: EmbeddedKafka) -> None:
    registry = start(fresh).ready()
    other = Places(KafkaSettings(bootstrap=broker.bootstrap), RegistryClient(registry.server.url))
    found = CHECKS["cluster"](other)
    assert found.state == "failed" and "--bootstrap" in found.todo
    assert f"{broker.bootstrap} leads to the cluster {other.cluster.cluster_id}" in found.found
    assert registry.get("kafka")["cluster_id"] in found.found


@pytest.mark.parametrize("source", ["file", "standard input"])
def test_the_command_line(fresh: str, start: Any, sql: Any, tmp_path: Any, source: str) -> None:
    registry = start(fresh).ready()
    path = tmp_path / "alerts.sql"
    path.write_text(sql())

    def tamis(*arguments: str, text: str | None = None, code: int = 0) -> str:
        done = CliRunner().invoke(main, [*arguments, "--registry", registry.server.url], input=text)
        assert done.exit_code == code, done.output
        return done.output

    said = tamis("apply", str(path)) if source == "file" else tamis("apply", "-", text=sql())
    assert "alert hot created (plan 2, memory bounded)" in said
    assert re.search(r"^hot +starting +2 .*no shard of stream air has announced itself", tamis("get"), re.M)
    assert re.search(r"^air +raw +0/0 +tamis.stream.air.1 +hot", tamis("get", "streams"), re.M)
    assert '"state": "starting"' in tamis("get", "alerts", "hot", "--json")
    assert '"version": 2' in tamis("get", "plans", "2")
    assert "EDGE" in tamis("get", "edges")
    assert "<stdin>:1:13: there is no stream 'x'" in tamis("apply", "-", text="DROP STREAM x;", code=2)
    wrong = tmp_path / "wrong.sql"
    wrong.write_text("SHOW ALERTS;\nDROP STREAM x;")
    said = tamis("apply", str(wrong), code=2)
    assert f"{wrong}:2:13: there is no stream 'x'" in said and "  DROP STREAM x;\n              ^\n" in said
    assert "<stdin>:1:14: the memory of alert 'loose' is unbounded" in tamis(
        "apply", "-", text=UNBOUNDED.format(""), code=1
    )
    assert "no alert 'nobody'" in tamis("get", "alerts", "nobody", code=2)
    assert "no alert 'hott'; did you mean 'hot'?" in tamis("get", "alerts", "hott", code=2)
    assert "no alert 'hott'; did you mean 'hot'?" in tamis("drop", "alert", "hott", code=2)
    assert "no stream 'airs'; did you mean 'air'?" in tamis("drop", "stream", "airs", code=2)
    assert "stream 'air' is read by alert 'hot'" in tamis("drop", "stream", "air", code=2)
    assert "alert hot dropped (plan 3)" in tamis("drop", "alert", "hot")
    registry.stop()
    assert "does not answer" in tamis("get", code=2)


def test_the_registry_answers_while_a_text_is_read_and_drops_it_with_its_client(
    fresh: str, start: Any, sql: Any
) -> None:
    """The process that reads a text is stopped, as if the text took for ever."""
    registry = start(fresh).ready()
    registry.sql(sql())
    reader = registry.prover.running
    assert reader is not None
    reader.send_signal(signal.SIGSTOP)
    address = registry.server.url.removeprefix("http://").split(":")
    client = socket.create_connection((address[0], int(address[1])))
    text = b";" * 1000
    head = "POST /v1/statements HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: "
    client.sendall(f"{head}{len(text)}\r\n\r\n".encode() + text)
    registry.until(lambda: registry.provers.busy)
    for path in ("/healthz", "/readyz", "/metrics", "/v1/alerts", "/v1/plans", "/v1/streams/air"):
        assert registry.call("GET", path).status_code == httpx.codes.OK, path
    assert registry.call("DELETE", "/v1/alerts/hot").status_code == httpx.codes.OK
    assert registry.lease("air", predicate="v > 3")["topic"]
    assert reader.poll() is None and registry.provers.busy
    client.close()
    registry.until(lambda: reader.poll() is not None)
    assert [row["statement"] for row in registry.sql("SHOW ALERTS;")] == ["show alerts"]
