"""Attacks on a running fleet, with every token and login that a stranger may have got, while readings flow.

Each attack is one function. After each, the registry answers a writer, readings are accepted, and new alarms
come; no service has ended, and none needs much more memory. The last function compares all alarms with those
of DuckDB. A new attack goes between the marks *Attacks* and *The end*, and needs nothing but `fleet`.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import psutil
import pytest
from confluent_kafka import Producer
from tests.faults.loaded_fleet import LoadedFleet
from tests.integration.registry.test_bodies import exchange
from tests.integration.registry.test_poisoned_records import good_records, poisons
from tests.integration.registry.test_silences_http import EPISODE, SPOILED

from tamis.messaging.topics import ACKS, ALARMS, FRONTIERS, HEARTBEATS, SILENCES, SKETCHES
from tamis.settings.token_file import token_entry
from tamis.web.tokens import Token, digest, new_token

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1_800)]

SECRET = "planted-secret-7f3a"
MIB = 2**20
# Of a service with its children, beyond what it had when the attacks began. A registry under load starts a
# second proving process, of about 250 MB.
MOST_GROWTH = 600 * MIB
# A busy machine answers late; an attack that works makes others wait for minutes.
PATIENCE = 60.0
# Readings come at this pace, so that the fleet is under load without falling behind.
PAUSE = 0.5


class AttackedFleet:
    """A loaded fleet with tokens and passwords, and the clients of strangers who have some of them."""

    def __init__(
        self, loaded: LoadedFleet, tokens: dict[str, str], secret: Path, stop_load: Callable[[], None]
    ) -> None:
        """`stop_load` ends the readings."""
        self.loaded, self.secret, self._tokens = loaded, secret, tokens
        self.stop_load = stop_load
        self.registry, self.edge = loaded.fleet.registry_url, loaded.fleet.http_sources["edge"]
        self._before = self._memory()

    def headers(self, who: str | None) -> dict[str, str]:
        return {"authorization": f"Bearer {self._tokens[who]}"} if who else {}

    def client(self, who: str | None) -> httpx.Client:
        """A client of the registry with the token of somebody."""
        return httpx.Client(base_url=self.registry, headers=self.headers(who), timeout=120)

    def produce(self, principal: str, topic: str, records: list[tuple[bytes | None, bytes]]) -> None:
        """Write records with the login of a service."""
        logins = self.loaded.fleet.logins
        assert logins is not None
        producer = Producer(logins.settings(principal).client_config())
        for key, value in records:
            producer.produce(topic, value, key, 0)
        assert producer.flush(60) == 0

    def servers(self) -> list[str]:
        """The addresses of all HTTP servers."""
        return [self.registry, self.edge, *self.loaded.fleet.telemetry.values()]

    def alarms(self) -> int:
        return len(self.loaded.records(ALARMS))

    def check(self) -> None:
        """Assert that the fleet still does its work for everybody else."""
        assert self.loaded.fleet.ended() is None
        with self.client("writer") as writer:
            name, began = f"probe_{time.monotonic_ns()}", time.monotonic()
            made = writer.post(
                "/v1/statements", content=f"CREATE ALERT {name} AS SELECT station FROM air WHERE temp > 69"
            )
            assert made.status_code == 200, made.text
            assert writer.delete(f"/v1/alerts/{name}").status_code == 200
            assert time.monotonic() - began < PATIENCE
            for path in (
                "alerts",
                "edges",
                "streams",
                "silences",
                "acknowledgements",
                "plans",
                "joiner",
                "sinks",
            ):
                assert writer.get(f"/v1/{path}").status_code == 200, path
        before, second = self.alarms(), self.loaded.load.second
        _wait("new readings", lambda: self.loaded.load.second > second)
        _wait("new alarms", lambda: self.alarms() > before)
        grown = {name: size - self._before[name] for name, size in self._memory().items()}
        assert max(grown.values()) < MOST_GROWTH, grown
        for log in (self.loaded.fleet.spec.directory / "logs").iterdir():
            assert SECRET.encode() not in log.read_bytes(), log.name

    def _memory(self) -> dict[str, int]:
        """Bytes of the services that a stranger reaches, with their children."""
        found = {}
        for name in ("registry", "edge", "alerts"):
            process = psutil.Process(self.loaded.fleet.processes[name].pid)
            total = process.memory_info().rss
            for child in process.children(recursive=True):
                with suppress(psutil.NoSuchProcess):
                    total += child.memory_info().rss
            found[name] = total
        return found


def _wait(what: str, condition: Callable[[], bool], seconds: float = 4 * PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {seconds:g} s"
        time.sleep(0.5)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AttackedFleet]:
    directory = tmp_path_factory.mktemp("attacked")
    tokens = {name: new_token() for name in ("reader", "writer", "operator", "sender")}
    rights: dict[str, dict[str, Any]] = {
        "reader": {"role": "reader"},
        "writer": {"role": "writer", "readings": True},
        "operator": {"role": "reader", "operate": True},
        "sender": {"role": "writer", "streams": frozenset({"air", "surface"})},
    }
    entries = [token_entry(Token(name, digest(text), **rights[name])) for name, text in tokens.items()]
    file = directory / "tokens.yaml"
    file.write_text(f"tokens: {json.dumps(entries)}\n")
    file.chmod(0o600)
    secret = directory / "secret.csv"
    secret.write_text(f"station,note\n1,{SECRET}\n")
    environment = {
        "TAMIS_REGISTRY_TOKENS_FILE": str(file),
        "TAMIS_EDGE_TOKENS_FILE": str(file),
        # As behind a proxy on this machine: all requests come from loopback.
        "TAMIS_REGISTRY_TLS": "proxy",
    }
    loaded = LoadedFleet(directory / "loaded", seed=11, environment=environment, secure=True)
    loaded.load.authorize(tokens["sender"])
    patch = pytest.MonkeyPatch()
    patch.setenv("TAMIS_TOKEN", tokens["writer"])
    try:
        loaded.start()
        loaded.begin()
        with ExitStack() as load:
            load.enter_context(loaded.load.running(PAUSE))
            yield AttackedFleet(loaded, tokens, secret, load.close)
    finally:
        patch.undo()
        loaded.close()


@pytest.fixture
def fleet(running: AttackedFleet) -> Iterator[AttackedFleet]:
    """The fleet, which is checked behind each attack."""
    yield running
    running.check()


# ---- Attacks


def test_bodies_without_an_end(fleet: AttackedFleet) -> None:
    """Large, in chunks and slow, with the token of an operator: none is kept, and none is waited for."""
    piece = b"[" * 65_536

    def chunks() -> Iterator[bytes]:
        for _ in range(200 * MIB // len(piece)):
            yield b"%x\r\n%s\r\n" % (len(piece), piece)

    json_text = "content-type: application/json\r\n"
    token = f"authorization: {fleet.headers('operator')['authorization']}\r\n"
    sender = f"authorization: {fleet.headers('sender')['authorization']}\r\n"
    for url, path, head in (
        (fleet.registry, "/v1/silences", token + json_text),
        (fleet.registry, f"/v1/episodes/{EPISODE}/acknowledgement", token + json_text),
        (fleet.registry, "/v1/explain", token),
        (fleet.registry, "/v1/try", token),
        (fleet.registry, "/readyz", ""),
        (fleet.edge, "/v1/streams/air", sender),
    ):
        request = f"POST {path} HTTP/1.1\r\n{head}"
        status, sent, _ = exchange(url, f"{request}transfer-encoding: chunked\r\n", chunks())
        assert status in (0, 400, 405, 413) and sent < 100 * MIB, (path, status, sent)
        announced = f"{request}content-length: {700 * MIB}\r\n"
        status, sent, _ = exchange(url, announced, (piece for _ in range(200 * MIB // len(piece))))
        assert status in (0, 413) and sent < 100 * MIB, (path, status, sent)
        status, _, took = exchange(url, f"{request}content-length: 1000\r\n", iter([b"{"]))
        assert 400 <= status < 500 and took < PATIENCE, (path, status, took)


def test_requests_that_are_two_for_a_proxy(fleet: AttackedFleet) -> None:
    """Content-Length and Transfer-Encoding at once."""
    for url in fleet.servers():
        for path in ("/healthz", "/v1/statements", "/v1/streams/air"):
            head = f"POST {path} HTTP/1.1\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n"
            assert exchange(url, head, iter([b"0\r\n\r\n"]))[0] == 400, (url, path)


def test_a_page_of_another_site_reaches_no_server(fleet: AttackedFleet) -> None:
    """DNS rebinding: the name of the page leads to this machine."""
    for url in fleet.servers():
        port = urlsplit(url).port
        for path in ("/metrics", "/readyz", "/healthz", "/docs", "/", "/v1/alerts"):
            for host in (f"evil.example:{port}", f"intranet:{port}", "ai", "127.0.0.1.evil.example"):
                assert httpx.get(url + path, headers={"host": host}).status_code == 421, (url, path, host)


def test_values_that_spoil_the_topic_of_silences(fleet: AttackedFleet) -> None:
    with fleet.client("operator") as operator:
        for text in SPOILED:
            for path in ("/v1/silences", f"/v1/episodes/{EPISODE}/acknowledgement"):
                answer = operator.post(path, content=text, headers={"content-type": "application/json"})
                assert answer.status_code == 400, (text[:80], answer.text[:300])
        assert operator.get("/v1/silences").json() == []


def test_reports_with_the_login_of_an_edge(fleet: AttackedFleet) -> None:
    """Wrong in every way, in the topics that an edge may write."""
    for good in good_records():
        if good.topic in (ACKS, SKETCHES):
            fleet.produce("edge", good.topic, poisons(good))
    with fleet.client("reader") as reader:
        plan = reader.get("/v1/plans").json()[0]["version"]
        topics = [t["topic"] for t in reader.get("/v1/streams/air/topics").json()]
    envelopes = [
        b'{"_": {"plan": %d, "kind": "progress", "shard": "s", "event_time": 18446744073709551615}}' % plan,
        b'{"_": {"plan": %d, "kind": "progress", "shard": {"s": 1}}}' % plan,
        b'{"_": {"plan": 18446744073709551615, "shard": "s"}}',
        b'{"station": 1, "ts": NaN, "_": {"plan": %d}}' % plan,
        b"[" * 100_000,
        b"\xff",
        b"",
    ]
    for topic in topics:
        fleet.produce("edge", topic, [(b"[1]", value) for value in envelopes])


def test_reports_with_the_logins_of_other_services(fleet: AttackedFleet) -> None:
    """What no service can decode, in the topics of the joiner and of the alerts service."""
    senders = {FRONTIERS: "joiner", HEARTBEATS: "joiner", SILENCES: "alerts"}
    for good in good_records():
        if good.topic in senders:
            garbage = [(good.key, value) for value in (b"", b"\xff", good.value[:-3], b"[]", b"[" * 100_000)]
            fleet.produce(senders[good.topic], good.topic, [*garbage, (b"wrong", good.value)])


def test_more_shards_than_an_edge_can_have(fleet: AttackedFleet) -> None:
    """Of streams that there are not, so that no plan lists them."""
    ack = {"stream": "none", "edge": "flood", "plan": 0, "activation": 0, "state": "active", "time": 1}
    shards = [f"none:flood/{number}" for number in range(12_000)]
    fleet.produce(
        "edge", ACKS, [(one.encode(), json.dumps({**ack, "shard": one}).encode()) for one in shards]
    )


def test_explanations_that_grow_with_the_square_of_the_text(fleet: AttackedFleet) -> None:
    """With the token of a reader. A text of twice as many alerts has at most about twice the answer."""
    sizes = []
    for count in (200, 400):
        alerts = (
            f"CREATE ALERT e{i} AS SELECT a.station FROM air a JOIN surface s ON a.station = s.station"
            f" AND ABS(a.ts - s.ts) <= INTERVAL '5' SECOND WHERE a.temp - s.temp > {i};"
            for i in range(count)
        )
        with fleet.client("reader") as reader:
            answer = reader.post("/v1/explain", content="\n".join(alerts))
        assert answer.status_code in (200, 413, 422, 429, 503), answer.text[:300]
        sizes.append(len(answer.content))
    assert sizes[1] < 2.5 * sizes[0] + 100_000, sizes


def test_readers_don_t_keep_a_writer_waiting(fleet: AttackedFleet) -> None:
    """Readers ask without a pause; `check` asks as a writer meanwhile."""
    text = "\n".join(f"CREATE ALERT r{i} AS SELECT station FROM air WHERE temp > {i};" for i in range(150))
    ending = threading.Event()

    def ask() -> None:
        with fleet.client("reader") as reader:
            while not ending.is_set():
                with suppress(httpx.TransportError):
                    reader.post("/v1/explain", content=text)

    with ThreadPoolExecutor(2) as executor:
        asked = [executor.submit(ask) for _ in range(2)]
        try:
            fleet.check()
        finally:
            ending.set()
    for one in asked:
        one.result()


def test_files_of_the_registry_s_user(fleet: AttackedFleet) -> None:
    """A registry that a proxy on its host serves reads no file for those who ask from elsewhere."""
    path = str(fleet.secret)
    link = fleet.secret.with_name("link.csv")
    link.symlink_to(fleet.secret)
    names = (path, str(link), f"{fleet.secret.parent}/x/../secret.csv", "/etc/passwd", "../secret.csv")
    texts = (
        "CREATE TABLE t (station INT, note VARCHAR) WITH (path = '{}');",
        "CREATE PATTERN p FROM '{}';",
        "CREATE ALERT t AS SELECT * FROM read_csv('{}');",
    )
    asked = [("reader", "/v1/explain"), ("reader", "/v1/try"), ("writer", "/v1/statements")]
    for text in texts:
        for who, place in asked:
            with fleet.client(who) as client:
                for name in names:
                    # A name without the ending of a table is a mistake by itself.
                    absent = f"/nobody/has/this{Path(name).suffix}"
                    missing = client.post(place, content=text.format(absent))
                    answer = client.post(place, content=text.format(name))
                    # Nor does an answer tell which files there are.
                    assert answer.status_code == missing.status_code, (text, place, name, answer.text)
                    assert SECRET not in answer.text and "root:" not in answer.text
                    assert missing.status_code >= 400 or place == "/v1/explain"


def test_nested_arrays_at_an_edge(fleet: AttackedFleet) -> None:
    """Others are served while an edge refuses them."""
    body = b"[" * 7_000_000 + b"]" * 7_000_000
    url = f"{fleet.edge}/v1/streams/air"
    slowest = 0.0
    with ThreadPoolExecutor(1) as executor:
        sent = executor.submit(httpx.post, url, content=body, headers=fleet.headers("sender"), timeout=60)
        while not sent.done():
            began = time.monotonic()
            httpx.post(url, content=b"", headers=fleet.headers("sender"), timeout=60)
            slowest = max(slowest, time.monotonic() - began)
        assert 400 <= sent.result().status_code < 500
    assert slowest < 5


def test_connections_that_say_nothing(fleet: AttackedFleet) -> None:
    """From three addresses to every server, more than it takes at a time."""
    parts = [urlsplit(url) for url in fleet.servers()]
    held = []
    try:
        for one in parts:
            for number in range(300):
                source = (f"127.0.0.{2 + number % 3}", 0)
                with suppress(OSError):
                    held.append(socket.create_connection((one.hostname or "", one.port or 0), 10, source))
        time.sleep(2)  # for a second, new requests don't replace those that say nothing
        fleet.check()
    finally:
        for connection in held:
            connection.close()


# ---- The end


def test_no_alarm_was_lost(running: AttackedFleet) -> None:
    """All accepted readings were joined, whatever happened beside them."""
    running.stop_load()
    loaded = running.loaded
    passed = loaded.finish()
    assert not loaded.crashed
    windows = loaded.windows(passed)
    assert windows.right, windows
    found = loaded.outcome()
    assert found.right and found.expected > 100, found
