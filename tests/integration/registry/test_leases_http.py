"""Leases over HTTP: asked for, given back, and every way in which they are refused."""

from __future__ import annotations

from typing import Any

import httpx
from tests.integration.registry.test_registry_http import problem

SQL = """
CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE, WATERMARK FOR ts AS ts);
CREATE STREAM still (k VARCHAR KEY, x DOUBLE);
CREATE STREAM hot AS SELECT k, ts, x FROM air WHERE x > 30;
"""


def test_leases_over_http(fresh: str, start: Any) -> None:
    registry = start(fresh).ready()
    registry.sql(SQL)

    def ask(stream: str = "air", verb: str = "POST", **parameters: Any) -> httpx.Response:
        url = f"{registry.server.url}/v1/streams/{stream}/topic"
        return httpx.request(verb, url, params=parameters, timeout=40)

    plans = registry.get("plans")
    for refused, status, word in (
        (ask("nowhere"), 404, "no stream 'nowhere'"),
        (ask("s" * 300), 400, "name"),
        (ask("still"), 422, "no event time"),
        (ask(predicate="x >"), 400, "something is missing here"),
        (ask(predicate="y > 1"), 400, "y"),
        (ask(predicate="x > 1; DROP STREAM air"), 400, ""),
        (ask(predicate="x > 1 AND x < 0"), 422, "predicate is never true"),
        (ask(predicate="x > 1 OR " * 1000 + "x > 1"), 400, "predicate"),
        (ask(predicate=f"x NOT IN ({', '.join(map(str, range(300)))})"), 422, "clauses"),
        (ask(lease=9), 400, "lease"),
        (ask(lease=86_401), 400, "lease"),
        (ask(lease="soon"), 400, "lease"),
        (ask(consumer="c" * 101), 400, "consumer"),
        (ask(consumer="a\nb"), 400, "consumer"),
        (ask(predicat="x > 1"), 400, "no parameter 'predicat'"),
        (ask(predicate=["x > 1", "x > 2"]), 400, "2 times"),
    ):
        assert word in str(problem(refused, status)), refused.text
    problem(registry.call("DELETE", "/v1/leases/nobody"), 404)
    assert "must have no body" in str(
        problem(registry.call("POST", "/v1/streams/air/topic", "predicate=x"), 400)
    )
    problem(registry.call("POST", "/v1/streams/air/topic", **{"sec-fetch-site": "cross-site"}), 403)
    assert registry.get("plans") == plans

    look = ask(verb="GET", predicate="x > 5", consumer="report").json()
    assert (look["topic"], look["exists"], look["lease"]) == ("tamis.stream.air.01", False, None)
    assert look["plan"] is None and look["activations"] == {} and look["filter"] == "x > 5"
    problem(ask(verb="GET", predicate="x >"), 400)
    assert registry.get("plans") == plans and registry.get("streams/air")["subscribers"] == []
    assert "tamis.stream.air.01" not in registry.topics()

    told = ask(predicate="x > 5", consumer="report", lease=600).json()
    assert told["topic"] == "tamis.stream.air.01" and told["filter"] == "x > 5" and told["activations"] == {}
    assert told["lease"]["seconds"] == 600 and 0 < told["lease"]["expires_in"] <= 600
    assert ask(predicate="x > 5", consumer="report", lease=600).json()["plan"] == told["plan"]
    look = ask(verb="GET", predicate="x > 5", consumer="report", lease=900).json()
    assert (look["plan"], look["lease"]["seconds"]) == (told["plan"], 600)  # as it is held, and no longer
    assert ask(verb="GET", predicate="x > 6").json()["exists"] is True
    derived = ask("hot", predicate="x < 90").json()
    assert derived["topic"] == "tamis.stream.hot.1"
    (reader,) = registry.get("streams/air")["subscribers"]
    assert (reader["id"], reader["consumer"]) == (told["lease"]["id"], "report")
    problem(registry.call("DELETE", "/v1/streams/hot"), 409)

    def give_back(lease: str) -> Any:
        return registry.call("DELETE", f"/v1/leases/{lease}")

    elsewhere = registry.call("DELETE", f"/v1/leases/{reader['id']}", origin="http://elsewhere.example")
    problem(elsewhere, 403)
    for lease in (told["lease"]["id"], derived["lease"]["id"]):
        answer = give_back(lease)
        assert answer.status_code == httpx.codes.NO_CONTENT and answer.content == b""
        problem(give_back(lease), 404)
    assert registry.get("streams/air")["subscribers"] == registry.get("streams/hot")["subscribers"] == []
    assert [topic["name"] for topic in registry.plan()["streams"][0]["topics"]] == ["tamis.stream.hot.1"]
    assert ask(predicate="x > 5", consumer="report").json()["plan"] > told["plan"]
