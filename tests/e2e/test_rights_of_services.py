"""Each right that a running service can miss is taken away from the real service, which names it and goes on.

Every round takes some rights away from all services at once, posts a reading, waits until each service names
its missing rights, gives them back, and waits for the alarm and the episode of that reading.

Not here: the right to create the changelog of the alerts service, which is used once in the life of a fleet
(tests/integration/security/test_rights.py), and the rights of people (reader, operator), who have no service.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import httpx
import orjson
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from tests.e2e.fed_fleet import until
from tests.e2e.feeder import SECOND, STREAMS, hot_alert

from tamis.errors import TamisError
from tamis.local.fleet import EdgeSpec, Fleet, FleetSpec
from tamis.local.fleet_logins import grant, revoke
from tamis.local.service_process import free_ports
from tamis.messaging.rights import RIGHTS, Right
from tamis.messaging.topic_reader import TopicReader
from tamis.messaging.topics import EPISODES, PART_PREFIX

RAW = "raw.air"
SOURCE = Right("edge", "topic", RAW, "Read", "a Kafka source")
EDGE = """
http: {{port: {port}}}
sources:
  - {{kind: http, name: http}}
  - {{kind: kafka, name: raw, stream: air, topic: raw.air}}
"""
SERVICES = ("edge", "registry", "joiner", "alerts")
# A service notices within seconds; busy cores need more.
SECONDS = 120.0
# Services ask Kafka every five seconds. A round takes a few rights of each.
ROUNDS = 5

# Rights that a service notices only when it does something; the test makes it do that. Rights to read the
# newest records have a test of their own (tests/integration/security/test_rights.py).
ON_DEMAND = [
    right for right in RIGHTS if right.principal == "registry" and right.only_for is None and (
        right.operation == "Create" or right.resource == "transactional id"
    )
]  # fmt: skip
CHANGELOG = [right for right in RIGHTS if right.principal == "alerts" and right.operation == "Create"]
NOTICED = [
    right
    for right in (*RIGHTS, SOURCE)
    if right.principal in SERVICES
    and right not in ON_DEMAND
    and right not in CHANGELOG
    and not (right.principal == "registry" and right.only_for)
    # Without these an edge reads whole plans (tests/integration/security/test_rights.py).
    and right.name != PART_PREFIX
]

pytestmark = pytest.mark.recovery


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    directory = tmp_path_factory.mktemp("rights")
    (port,) = free_ports(1)
    config = directory / "edge.yaml"
    config.write_text(EDGE.format(port=port))
    spec = FleetSpec(directory / "fleet", [EdgeSpec("edge", config, (SOURCE,))], partitions=1, secure=True)
    found = Fleet(spec, lambda _: None)
    found.http_sources["edge"] = f"http://127.0.0.1:{port}"
    try:
        found.broker.start()
        admin = AdminClient(found.broker.admin_config())  # it has to live until the topic is there
        admin.create_topics([NewTopic(RAW, 1, 1)])[RAW].result(10)
        found.start({"streams.sql": STREAMS, "alerts.sql": hot_alert("hot", 30)})
        yield found
    finally:
        found.stop()


def what(right: Right) -> str:
    """The beginning of what a service says about a missing right. Behind a prefix it says a whole name."""
    return f"no {right.operation} on {right.resource} {right.name}"


def taken_from(service: str) -> list[list[Right]]:
    """The rights that are taken away from a service in each round. An edge is ready without the rights of its
    sources, and shows them only if nothing else is wrong: each of these has a round of its own.
    """
    rights = [right for right in NOTICED if right.principal == service]
    alone = [right for right in rights if right is SOURCE or right.only_for]
    others, left = [right for right in rights if right not in alone], ROUNDS - len(alone)
    if service == "registry":
        # Each other right on a topic implies Describe, so it is taken together with the only one on a topic.
        others.sort(key=lambda right: right.operation)
    return [*(others[first::left] for first in range(left)), *([right] for right in alone)]


def said_by(fleet: Fleet, service: str) -> tuple[int, str]:
    """Status and text of a service's readiness. A service that has ended is started again."""
    process = fleet.processes[service]
    if process.exit_code() is not None:
        process.start()
    try:
        answer = httpx.get(f"{fleet.telemetry[service]}/readyz", timeout=5)
    except httpx.TransportError:
        return 0, ""
    return answer.status_code, answer.text


def wait_until_ready(fleet: Fleet) -> None:
    """Wait until all services are ready."""
    until(lambda: all(said_by(fleet, service)[0] == httpx.codes.OK for service in SERVICES), SECONDS)


def post(fleet: Fleet, station: str, second: int) -> None:
    """A reading that raises an alarm."""
    row = {"station": station, "ts": second * SECOND, "temp": 35.0, "rh": 50.0}

    def taken() -> bool:
        url = f"{fleet.http_sources['edge']}/v1/streams/air"
        return httpx.post(url, content=orjson.dumps(row), timeout=60).status_code == httpx.codes.ACCEPTED

    until(taken, SECONDS)


def has_episode(fleet: Fleet, station: str) -> bool:
    """True if the episode of a station is in Kafka."""
    with TopicReader(fleet.kafka_settings().client_config(), [EPISODES]) as reader:
        values = [orjson.loads(record.value) for record in reader.snapshot() if record.value]
    return any(value["key"] == [station] for value in values)


@pytest.mark.timeout(900)  # two minutes; several where others want the cores too
def test_every_missing_right_is_named_by_its_service_until_it_is_back(fleet: Fleet) -> None:
    rounds = [[right for service in SERVICES for right in taken_from(service)[n]] for n in range(ROUNDS)]
    assert sorted(map(what, NOTICED)) == sorted(what(right) for some in rounds for right in some)
    for number, taken in enumerate(rounds):
        began = time.monotonic()
        revoke(fleet.broker, taken)
        post(fleet, f"k{number}", number)
        missing = {(right.principal, what(right)) for right in taken}
        last: dict[str, str] = {}
        while missing:
            assert time.monotonic() < began + SECONDS, (sorted(missing), last)
            for service in {principal for principal, _ in missing}:
                last[service] = said = said_by(fleet, service)[1]
                if f"not authorized: User:{service}: " in said:
                    missing -= {one for one in missing if one[0] == service and one[1] in said}
            time.sleep(0.2)
        grant(fleet.broker, taken)
        wait_until_ready(fleet)
        until(lambda of=f"k{number}": has_episode(fleet, of), SECONDS)  # type: ignore[misc]
    for service in SERVICES:
        log = fleet.processes[service].log.read_text()
        assert not [r for r in NOTICED if r.principal == service and what(r) not in log], (
            "the log says so, too"
        )


@pytest.mark.parametrize("right", ON_DEMAND, ids=what)
def test_the_registry_names_a_right_that_a_statement_needs(fleet: Fleet, right: Right) -> None:
    name = right.resource.replace(" ", "_")
    stream = STREAMS.split(";")[0].replace("STREAM air", f"STREAM {name}") + ";"
    sql = f"{stream}\nCREATE ALERT of_{name} AS SELECT station, ts FROM {name} WHERE temp > 30;"
    said: list[str] = []

    def applied() -> bool:
        try:
            fleet.apply(sql, keep=True)
        except TamisError as error:
            said.append(str(error))
            return False
        return True

    def named() -> bool:
        applied()
        said.append(said_by(fleet, "registry")[1])
        return any(f"not authorized: User:registry: {what(right)}" in text for text in said)

    revoke(fleet.broker, [right])
    until(named, SECONDS)
    grant(fleet.broker, [right])
    until(applied, SECONDS)
    wait_until_ready(fleet)
    answer = httpx.get(f"{fleet.registry_url}/v1/alerts/of_{name}", timeout=10).raise_for_status().json()
    assert answer["name"] == f"of_{name}"
    topics = AdminClient(fleet.broker.admin_config()).list_topics(timeout=10).topics
    assert [topic for topic in topics if topic.startswith(f"tamis.stream.{name}.")]
