"""`tamis doctor` without Kafka: what it checks of the machine and of a registry, and its exit codes."""

from __future__ import annotations

import socket
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from click.testing import CliRunner
from confluent_kafka.admin import AdminClient
from tests.unit.cli.answering import answering

from tamis.cli import main
from tamis.doctor import broker, machine, registry
from tamis.doctor import places as doctor_places
from tamis.doctor.places import Places
from tamis.doctor.table import CHECKS, findings
from tamis.errors import UnavailableError
from tamis.local.service_process import free_ports
from tamis.settings import KafkaSettings
from tamis.web.registry_client import RegistryClient

SHARD = {"shard": "air:roof/mqtt", "state": "active", "plan": 3, "activation": 0, "why": ""}
LATE = {**SHARD, "state": "behind", "why": "shard air:roof/mqtt does not obey plan 4 yet"}
PLANS = [{"version": 3}, {"version": 4}]


def places(url: str) -> Places:
    kafka = KafkaSettings(bootstrap=f"127.0.0.1:{free_ports(1)[0]}")
    return Places(kafka, RegistryClient(url))


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing listens, Kafka's client waits for all of this time."""
    monkeypatch.setattr(doctor_places, "TIMEOUT_SECONDS", 0.5)


def states(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[int, dict[str, dict[str, str]]]:
    """The exit code, and the findings by check."""
    monkeypatch.setattr(machine, "PORTS", {})
    ran = CliRunner().invoke(main, ["doctor", "--format", "json", *arguments])
    return ran.exit_code, {one["check"]: one for one in orjson.loads(ran.stdout)["checks"]}


def test_addresses_without_an_answer_fail_and_the_rest_is_unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    away = f"127.0.0.1:{free_ports(1)[0]}"
    code, found = states(monkeypatch, "--bootstrap", away, "--registry", f"http://{away}")
    assert code == 1 and list(found) == list(CHECKS)
    assert {name for name, one in found.items() if one["state"] == "failed"} >= {"kafka", "registry"}
    assert all(found[name]["todo"] for name in ("kafka", "registry"))
    for name in ("brokers", "topics", "clock", "cluster", "plan"):
        assert found[name]["state"] == "unchecked" and away in found[name]["found"]


def test_a_kafka_that_is_away_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each attempt takes 5 s to fail."""
    attempts: list[float] = []
    ask = AdminClient.list_topics

    def counted(client: AdminClient, timeout: float) -> Any:
        attempts.append(timeout)
        return ask(client, timeout=timeout)

    monkeypatch.setattr(AdminClient, "list_topics", counted)
    with closing(places("http://127.0.0.1:1")) as away:
        told = dict(findings(away))
    for name in ("kafka", "brokers", "topics", "clock"):
        assert told[name].state == "unchecked" and "can't be reached" in told[name].found
    assert len(attempts) == 1


def test_without_addresses_no_fleet_need_run() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # it doesn't listen
        with closing(places(f"http://127.0.0.1:{closed.getsockname()[1]}")) as found:
            assert CHECKS["kafka"](found).state == "unchecked"
            assert CHECKS["registry"](found).state == "unchecked"


def test_a_registry_that_hangs_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request takes 15 s to fail."""
    asked: list[str] = []

    def hangs(client: RegistryClient, method: str, path: str) -> None:
        asked.append(path)
        raise UnavailableError("the registry took the request and did not answer", where="here")

    monkeypatch.setattr(RegistryClient, "request", hangs)
    for name in CHECKS.keys() - {"registry", "plan", "sinks"}:
        monkeypatch.delitem(CHECKS, name)
    found = dict(findings(places("http://127.0.0.1:1")))
    assert asked == ["/v1/alerts"]
    said = "here: the registry took the request and did not answer"
    assert [found[name].found for name in ("registry", "plan", "sinks")] == [said] * 3
    assert found["sinks"].state == "unchecked"


def test_a_taken_port_is_a_warning_unless_a_fleet_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, answering({"/v1/plans": PLANS}) as url:
        port = taken.getsockname()[1]
        monkeypatch.setattr(machine, "PORTS", {port: "Kafka"})
        away = f"http://127.0.0.1:{free_ports(1)[0]}"
        assert machine.ports(places(away)).state == "warning"
        assert f"{port} (Kafka)" in machine.ports(places(away)).found
        assert machine.ports(places(url)).state == "ok"


@pytest.mark.parametrize(
    ("settings", "state", "said"),
    [
        (
            {"socket.request.max.bytes": "104857600", "min.insync.replicas": "2"},
            "ok",
            "min.insync.replicas=2",
        ),
        (
            {"socket.request.max.bytes": "1048576"},
            "failed",
            "broker 1: socket.request.max.bytes=1048576, below",
        ),
        ({"auto.create.topics.enable": "true"}, "warning", "broker 1: auto.create.topics.enable=true"),
        ({"min.insync.replicas": "1"}, "warning", "broker 3: min.insync.replicas=1"),
    ],
)
def test_settings_of_brokers(settings: dict[str, str], state: str, said: str) -> None:
    class Told(Places):
        """Three brokers that have these settings."""

        cluster = SimpleNamespace(brokers={1: None, 2: None, 3: None})  # type: ignore[assignment]

        def settings(self, kind: object, names: list[str]) -> dict[str, dict[str, str]]:
            return dict.fromkeys(names, settings)

    found = broker.brokers(Told(KafkaSettings(), RegistryClient("http://127.0.0.1:1")))
    assert found.state == state and said in found.found


def test_a_data_directory_that_is_missing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAMIS_DATA", "/no/such/directory")
    found = machine.disk(places("http://127.0.0.1:1"))
    assert found.state == "failed" and "/no/such/directory" in found.found


@pytest.mark.parametrize(
    ("shards", "failing", "state", "said"),
    [
        ([SHARD], {}, "ok", "all 1 shards use plan 4"),
        ([], {}, "warning", "roof has no shard"),
        ([], {"mqtt": "refused"}, "warning", "roof has no shard; roof: source mqtt fails: refused"),
        ([SHARD, LATE], {}, "warning", "does not obey plan 4"),
        ([SHARD], {"mqtt": "refused"}, "warning", "roof: source mqtt fails: refused"),
        ([LATE] * 7, {}, "warning", "and 2 more"),
    ],
)
def test_the_plan_and_the_shards(
    shards: list[dict[str, Any]], failing: dict[str, str], state: str, said: str
) -> None:
    edges = [{"name": "roof", "why": ["roof has no shard"], "shards": shards, "failing": failing}]
    with answering({"/v1/plans": PLANS, "/v1/edges": edges}) as url:
        found = registry.plan(places(url))
    assert found.state == state and said in found.found


def test_no_plan_is_checked_before_an_edge_has_reported() -> None:
    with answering({"/v1/plans": PLANS, "/v1/edges": []}) as url:
        found = registry.plan(places(url))
    assert (found.state, found.found) == ("unchecked", "plan 4: no edge has reported")


@pytest.mark.parametrize(
    ("answers", "state", "said"),
    [
        ({"/v1/kafka": {"cluster_id": "one"}}, "ok", "uses this Kafka (cluster one)"),
        ({"/v1/kafka": {"cluster_id": "other"}}, "failed", "uses the Kafka cluster other, and "),
        ({"/v1/kafka": {"cluster_id": None}}, "unchecked", "doesn't tell the id"),
        ({"/v1/plans": PLANS}, "unchecked", "of an older release"),
    ],
)
def test_the_cluster_of_the_registry(answers: dict[str, Any], state: str, said: str) -> None:
    class Told(Places):
        """A cluster that is called one."""

        cluster = SimpleNamespace(cluster_id="one")  # type: ignore[assignment]

    with answering(answers) as url:
        found = registry.cluster(Told(KafkaSettings(), RegistryClient(url)))
    assert found.state == state and said in found.found
    assert bool(found.todo) == (state == "failed")


@pytest.mark.parametrize(
    ("joiner", "state", "said"),
    [
        ({"state": "running", "why": []}, "ok", "reported 2 s ago, and uses plan 4"),
        (
            {"state": "silent", "why": ["the joiner has reported nothing since 2026-03-01T08:29:58Z"]},
            "failed",
            "nothing since 2026-03-01T08:29:58Z",
        ),
        ({"state": "behind", "why": ["partition 1 uses plan 3"]}, "warning", "partition 1 uses plan 3"),
        ({"state": "unknown", "why": ["the joiner has reported nothing yet"]}, "unchecked", "nothing yet"),
    ],
)
def test_the_joiner(joiner: dict[str, Any], state: str, said: str) -> None:
    with answering({"/v1/joiner": {**joiner, "plan": 4, "reported_ago": 2}}) as url:
        found = registry.joiner(places(url))
    assert found.state == state and said in found.found


def counted(**tuples: int) -> dict[str, Any]:
    return {**SHARD, "recent": {"seconds": 400, "tuples": tuples}}


@pytest.mark.parametrize(
    ("shards", "state", "said"),
    [
        ([SHARD], "unchecked", "no edge has told"),
        ([counted(published=0)], "ok", "no reading has come"),
        ([counted(published=900, omitted=1_100, late=2)], "ok", "none of the 2002 newest readings"),
        (
            [counted(published=900, omitted=97, late=3)],
            "warning",
            "3 of 1000 readings were late in the last 400 s",
        ),
        (
            [counted(published=9), counted(published=9, dead=1)],
            "warning",
            "1 of 10 readings became dead letters",
        ),
        ([{**counted(published=9), "doubts": ["column t has no value"]}], "warning", "column t has no value"),
    ],
)
def test_what_became_of_the_readings(shards: list[dict[str, Any]], state: str, said: str) -> None:
    with answering({"/v1/edges": [{"name": "roof", "shards": shards}]}) as url:
        found = registry.readings(places(url))
    assert found.state == state and said in found.found
    assert (state == "warning") == bool(found.todo)


def sink(name: str, state: str = "delivering", *why: str) -> dict[str, Any]:
    return {"name": name, "state": state, "why": list(why)}


@pytest.mark.parametrize(
    ("sinks", "state", "said"),
    [
        ([], "unchecked", "the alerts service has reported nothing yet"),
        ([sink("log"), sink("pager")], "ok", "2 sinks (log, pager) take notifications"),
        ([sink("log"), sink("pager", "failing", "sink pager: 3 wait")], "warning", "sink pager: 3 wait"),
        ([sink(n, "silent", "nothing for 20 s") for n in ("log", "pager")], "failed", "nothing for 20 s"),
    ],
)
def test_the_sinks(sinks: list[dict[str, Any]], state: str, said: str) -> None:
    with answering({"/v1/sinks": sinks}) as url:
        found = registry.sinks(places(url))
    assert found.state == state and said in found.found and found.found.count(said) == 1


@pytest.mark.parametrize(
    ("settings", "state", "said"),
    [
        ({"retention.ms": "-1"}, "ok", "1 topics of sources"),
        ({"retention.ms": "600000", "cleanup.policy": "delete"}, "ok", ""),
        ({"retention.ms": "599999"}, "warning", "raw.air: retention.ms=599999, less than 600000"),
        ({"cleanup.policy": "compact"}, "warning", "drops readings of the same key"),
    ],
)
def test_topics_of_sources_keep_what_edges_read_again(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], state: str, said: str
) -> None:
    shards = [{**SHARD, "shard": name} for name in ("air:raw.air/0", "air:raw.air/1", "air:roof/mqtt")]
    known = SimpleNamespace(topics={"raw.air": None, "other": None})
    monkeypatch.setattr(Places, "cluster", known)
    monkeypatch.setattr(Places, "settings", lambda _, kind, names: dict.fromkeys(names, settings))
    with answering({"/v1/edges": [{"name": "e", "shards": shards}]}) as url, closing(places(url)) as found:
        told = CHECKS["sources"](found)
    assert told.state == state and said in told.found
    assert bool(told.todo) is (state == "warning")
