"""HTTPS: versions, slow and wrong clients, renewed certificates, and what clients of the registry say."""

from __future__ import annotations

import socket
import ssl
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from tests.fixtures.certificates import issue_server

from tamis.errors import InputError, UnavailableError
from tamis.local.broker_security import Authority, Certificate
from tamis.telemetry.server import HttpServer
from tamis.web.connection_limits import Limits
from tamis.web.guard import Guard
from tamis.web.registry_client import RegistryClient
from tamis.web.tls import CertificateFiles, Certificates

HEADERS = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n"


async def _answer(request: Request) -> Response:
    body = await request.body()
    return JSONResponse({"bytes": len(body), "scheme": request.url.scheme})


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def issued(authority: Authority) -> Certificate:
    return issue_server(authority, "server")


@contextmanager
def running(issued: Certificate, limits: Limits | None = None) -> Iterator[tuple[HttpServer, Certificates]]:
    app = Starlette(
        routes=[Route("/{path:path}", _answer, methods=["GET", "POST"])],
        middleware=[Middleware(Guard, body_limit=10**6)],
    )
    certificates = Certificates(CertificateFiles(issued.certificate, issued.key))
    server = HttpServer(app, "127.0.0.1", 0, limits, certificates)
    server.start()
    try:
        yield server, certificates
    finally:
        server.stop()


def trust(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=authority.certificate)


def test_requests_and_large_bodies_come_through(authority: Authority, issued: Certificate) -> None:
    with running(issued) as (server, _), httpx.Client(base_url=server.url, verify=trust(authority)) as client:
        assert server.url.startswith("https://")
        for size in (0, 3, 900_000):
            assert client.post("/", content=b"x" * size).json() == {"bytes": size, "scheme": "https"}
        assert client.post("/", content=b"x" * 1_000_001).status_code == 413


def test_old_versions_of_tls_are_refused(authority: Authority, issued: Certificate) -> None:
    with running(issued) as (server, _):
        for version, works in ((ssl.TLSVersion.TLSv1_1, False), (ssl.TLSVersion.TLSv1_2, True)):
            context = trust(authority)
            context.set_ciphers("ALL:@SECLEVEL=0")
            context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # of the old version
                context.maximum_version = version
            with socket.create_connection(("127.0.0.1", server.port), timeout=10) as plain:
                if works:
                    with context.wrap_socket(plain, server_hostname="127.0.0.1") as tls:
                        assert tls.version() == "TLSv1.2"
                else:
                    with pytest.raises(OSError, match=r"(?i)version|alert|reset|protocol"):
                        context.wrap_socket(plain, server_hostname="127.0.0.1")


def test_a_renewed_certificate_is_used_by_new_connections(authority: Authority) -> None:
    server_files = issue_server(authority, "renewed")
    with running(server_files) as (server, certificates):

        def serial() -> str:
            with (
                socket.create_connection(("127.0.0.1", server.port), timeout=10) as plain,
                trust(authority).wrap_socket(plain, server_hostname="127.0.0.1") as tls,
            ):
                return str((tls.getpeercert() or {})["serialNumber"])

        with httpx.Client(base_url=server.url, verify=trust(authority)) as old:
            assert old.get("/").status_code == 200
            before = serial()
            issue_server(authority, "renewed")
            certificates.reload()
            assert serial() != before
            assert old.get("/").status_code == 200


def test_handshakes_that_do_not_come_end_and_hold_nobody_up(
    authority: Authority, issued: Certificate
) -> None:
    limits = Limits(header_seconds=1.0, grace_seconds=1.0)
    with running(issued, limits) as (server, _), ExitStack() as stack:
        for n in range(400):
            slow = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=20))
            if n % 2:
                slow.sendall(b"\x16\x03\x01\x02\x00\x01")  # the beginning of a handshake
        began, served = time.monotonic(), 0
        while served < 20:
            assert time.monotonic() - began < 10
            # Refused until the first handshakes have had their time; without TLS there is no answer.
            with suppress(httpx.ConnectError):
                served += httpx.post(server.url, content=b"x", verify=trust(authority)).status_code == 200
        slow.settimeout(10)
        with suppress(ConnectionResetError):
            assert slow.recv(100) == b""


@pytest.mark.parametrize("sent", [b"", HEADERS, HEADERS + b"\r\n{"])
def test_slow_requests_over_tls_are_answered(authority: Authority, issued: Certificate, sent: bytes) -> None:
    with (
        running(issued, Limits(header_seconds=1.0, grace_seconds=1.0)) as (server, _),
        socket.create_connection(("127.0.0.1", server.port), timeout=10) as plain,
        trust(authority).wrap_socket(plain, server_hostname="127.0.0.1") as tls,
    ):
        tls.sendall(sent)
        assert tls.recv(4096).startswith(b"HTTP/1.1 408 Request Timeout\r\n")


def test_a_refused_client_that_stays_loses_its_connection(
    authority: Authority, issued: Certificate, caplog: pytest.LogCaptureFixture
) -> None:
    """asyncio waited for half a minute for its end of TLS, and the server failed when it refused it again."""
    limits = Limits(header_seconds=1.0, grace_seconds=1.0, per_address=4, safe_seconds=0.1)
    with running(issued, limits) as (server, _), ExitStack() as stack:
        for _ in range(40):
            plain = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=10))
            with suppress(OSError):  # refused during the handshake
                tls = trust(authority).wrap_socket(plain, server_hostname="127.0.0.1")
                stack.enter_context(tls)
                tls.sendall(HEADERS)
            time.sleep(0.05)
        deadline = time.monotonic() + 20
        while left := server._server.server_state.connections:
            assert time.monotonic() < deadline, left
            time.sleep(0.1)
    assert "Traceback" not in caplog.text


def test_headers_have_a_limit(authority: Authority, issued: Certificate) -> None:
    with running(issued) as (server, _), httpx.Client(base_url=server.url, verify=trust(authority)) as client:
        assert client.get("/", headers={"x-large": "x" * 200_000}).status_code == 400
        assert client.get("/", headers={f"x-{n}": "x" * 100 for n in range(2000)}).status_code == 400
        assert client.get("/").status_code == 200


def test_clients_say_what_is_wrong_with_a_certificate(authority: Authority, tmp_path: Path) -> None:
    other = Authority(tmp_path)
    with running(issue_server(authority, "elsewhere", "DNS:elsewhere.example")) as (server, _):
        with pytest.raises(InputError, match=r"certificate is not trusted: .*; set TAMIS_CA to the PEM file"):
            RegistryClient(server.url).request("GET", "/v1/alerts")
        with pytest.raises(InputError, match="certificate is not trusted: "):
            RegistryClient(server.url, ca=other.certificate).request("GET", "/v1/alerts")
        with pytest.raises(
            InputError, match=r"not trusted: IP address mismatch.*use the name or address that"
        ):
            RegistryClient(server.url, ca=authority.certificate).request("GET", "/v1/alerts")
        plain = server.url.replace("https", "http")
        with pytest.raises(UnavailableError, match="if it uses TLS, give its address with https://"):
            RegistryClient(plain).request("GET", "/v1/alerts")


@pytest.mark.parametrize("token", ["tamis_é", "tamis_a\ntamis_b"])
def test_clients_say_that_a_token_cannot_be_in_a_header(token: str) -> None:
    with pytest.raises(InputError, match="the token has line ends or characters that are not ASCII") as found:
        RegistryClient("http://127.0.0.1:1", token=token)
    assert token not in str(found.value)


def test_clients_trust_the_authority_that_they_are_told(authority: Authority, issued: Certificate) -> None:
    with running(issued) as (server, _):
        answer = RegistryClient(server.url, ca=authority.certificate).request("GET", "/v1/alerts")
        assert answer["scheme"] == "https"


def test_an_authority_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    for name, said in (("missing.pem", "No such file or directory"), ("ca.pem", "it has no PEM certificate")):
        with pytest.raises(InputError, match=rf"TAMIS_CA=.*{name}: .*{said}; name the PEM file"):
            RegistryClient("https://127.0.0.1:1", ca=tmp_path / name)
