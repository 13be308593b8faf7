"""Tokens and TLS of HTTP servers: required beyond loopback, checked at start, read again after changes."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs
from tests.fixtures.certificates import issue_server

from tamis.errors import InputError
from tamis.local.broker_security import Authority
from tamis.settings.http_security import HttpSettings, _Watched, http_security
from tamis.settings.token_file import TokenFile, read_tokens, token_entry
from tamis.web.tls import CertificateFiles, Certificates
from tamis.web.tokens import Token, digest


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    path = tmp_path / "tokens.yaml"
    path.write_text(f"tokens:\n- {{name: ci, role: writer, sha256: {digest('tamis_a')}}}\n")
    return path


def settings(**given: Any) -> HttpSettings:
    return HttpSettings.model_construct(**given)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_loopback_needs_nothing(host: str) -> None:
    found = http_security(settings(), host)
    assert (found.tokens, found.certificates) == (None, None)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.168.7.7", "registry"])
def test_other_addresses_need_tokens_and_tls(host: str, tokens: Path, authority: Authority) -> None:
    with pytest.raises(InputError) as caught:
        http_security(settings(), host)
    assert str(caught.value) == (
        f"the address {host or '(all)'}: other machines could use this service without a token or without "
        "TLS; set TOKENS_FILE to a file of tokens (`tamis token` makes them); set TLS_CERTIFICATE and "
        "TLS_KEY (PEM files), or TLS to 'proxy' if a proxy in front terminates TLS; or listen on 127.0.0.1"
    )
    with pytest.raises(InputError, match="set TLS_CERTIFICATE and TLS_KEY") as caught:
        http_security(settings(tokens_file=tokens), host)
    assert "set TOKENS_FILE" not in str(caught.value)
    with pytest.raises(InputError, match="set TOKENS_FILE to"):
        http_security(settings(tls="proxy"), host)
    assert http_security(settings(tokens_file=tokens, tls="proxy"), host).certificates is None
    server = issue_server(authority, "server")
    files = {"tls_certificate": server.certificate, "tls_key": server.key}
    found = http_security(settings(tokens_file=tokens, **files), host)
    assert found.certificates is not None and found.tokens is not None


def test_half_of_tls_is_refused(authority: Authority) -> None:
    server = issue_server(authority, "server")
    with pytest.raises(InputError, match="TLS needs both a certificate and its key"):
        http_security(settings(tls_certificate=server.certificate), "127.0.0.1")
    files = {"tls_certificate": server.certificate, "tls_key": server.key}
    with pytest.raises(InputError, match="says that a proxy terminates TLS, but there is a certificate"):
        http_security(settings(tls="proxy", **files), "127.0.0.1")


def test_certificates_that_cannot_be_used_are_named(authority: Authority, tmp_path: Path) -> None:
    server, other = issue_server(authority, "server"), issue_server(authority, "other")
    locked = issue_server(authority, "locked", password="hush-key")
    text = tmp_path / "text.pem"
    text.write_text("no certificate")
    cases = [
        (CertificateFiles(tmp_path / "missing", server.key), "missing: the file can't be read: No such file"),
        (CertificateFiles(server.certificate, tmp_path), "the file can't be read|can't be used"),
        (CertificateFiles(text, server.key), "text.pem, .*: the certificate and the key can't be used"),
        (CertificateFiles(server.certificate, other.key), "KEY_VALUES_MISMATCH; name the PEM files"),
        (CertificateFiles(locked.certificate, locked.key), "set the password of the key"),
        (CertificateFiles(locked.certificate, locked.key, "hush-wrong"), "set the password of the key"),
    ]
    for files, said in cases:
        with pytest.raises(InputError, match=said) as caught:
            files.context()
        assert "hush" not in f"{caught.value}{files!r}"
    CertificateFiles(locked.certificate, locked.key, "hush-key").context()


def test_the_password_of_the_key_is_a_secret(authority: Authority) -> None:
    locked = issue_server(authority, "locked", password="hush-key")
    files = {"tls_certificate": locked.certificate, "tls_key": locked.key}
    given = settings(**files, tls_key_password=SecretStr("hush-key"))
    assert http_security(given, "127.0.0.1").certificates is not None
    assert "hush" not in repr(given)


def entry(name: str = "a", role: str = "reader", sha256: str = "a" * 64, **more: str) -> str:
    """A line of the file."""
    rest = "".join(f", {field}: {value}" for field, value in more.items())
    return f"- {{name: {name}, role: {role}, sha256: {sha256}{rest}}}\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "tokens: Field required"),
        ("tokens: [", "not YAML"),
        ("tokens:\n" + entry() + entry(name="b"), "'a' and 'b' have the same digest"),
        ("tokens:\n" + entry(sha256="abc"), "line 2: tokens.0.sha256: "),
        ("tokens:\n" + entry(role="boss"), "line 2: tokens.0.role: "),
        ("tokens:\n" + entry(name="a b"), "line 2: tokens.0.name: "),
        ("tokens:\n" + entry(stream="[x]"), "line 2: tokens.0.stream: "),
        ("tokens:\n" + entry(expires="soon"), "line 2: tokens.0.expires: "),
    ],
)
def test_mistakes_in_the_file_of_tokens_are_named(tokens: Path, text: str, said: str) -> None:
    tokens.write_text(text)
    with pytest.raises(InputError, match=said):
        read_tokens(tokens)


def test_an_entry_is_read_as_it_was_written(tokens: Path) -> None:
    made = Token("ci", digest("tamis_b"), "writer", frozenset({"air", "surface"}))
    assert token_entry(made) == {
        "name": "ci",
        "role": "writer",
        "sha256": digest("tamis_b"),
        "streams": ["air", "surface"],
    }
    tokens.write_text(f"tokens:\n- {token_entry(made)}\n" + entry(sha256="b" * 64, expires="2027-01-01"))
    found = read_tokens(tokens)
    assert found.find("tamis_b") == made and len(found) == 2


def test_ten_thousand_tokens_are_read_in_seconds(tokens: Path) -> None:
    lines = (f"- {{name: t{n}, role: reader, sha256: {digest(str(n))}}}\n" for n in range(10_000))
    tokens.write_text("tokens:\n" + "".join(lines))
    began = time.monotonic()
    assert len(read_tokens(tokens)) == 10_000
    assert time.monotonic() - began < 15


@pytest.mark.parametrize("end", ["tokens: *h\n", "tokens: &t [*t]\n"])
def test_aliases_of_a_file_do_not_fill_the_memory(tokens: Path, end: str) -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]\n"]
    for name, earlier in zip("bcdefgh", "abcdefg", strict=True):
        lines.append(f"{name}: &{name} [{', '.join([f'*{earlier}'] * 9)}]\n")
    tokens.write_text("".join(lines) + end)
    with pytest.raises(InputError, match="more than 1,000,000 values, counted with its aliases"):
        read_tokens(tokens)


def test_a_deep_file_is_refused_before_it_is_loaded(tokens: Path) -> None:
    for levels in (101, 200_000):
        tokens.write_text(f"tokens: {'[' * levels}{']' * levels}")
        with pytest.raises(InputError, match="the file has more than 100 levels"):
            read_tokens(tokens)


def test_changed_files_are_read_again_and_broken_ones_are_not_used(
    tokens: Path, authority: Authority
) -> None:
    source = TokenFile(tokens)
    watched = _Watched((tokens,), source.reload)
    watched.look()
    new = entry(name="new", sha256=digest("tamis_new"))
    with capture_logs() as log:
        watched.look()
        tokens.write_text(tokens.read_text() + new)  # both are valid while clients change theirs
        watched.look()
        assert source.current().find("tamis_a") and source.current().find("tamis_new")
        tokens.write_text("tokens: [")
        watched.look()
        watched.look()
        tokens.unlink()
        watched.look()
        os.mkfifo(tokens)  # reading it would wait for ever
        watched.look()
        tokens.unlink()
        assert source.current().find("tamis_new")
        tokens.write_text("tokens:\n" + new)
        watched.look()
    assert source.current().find("tamis_a") is None and source.current().find("tamis_new")
    assert [line["log_level"] for line in log] == ["info", "error", "error", "error", "info"]
    server, other = issue_server(authority, "server"), issue_server(authority, "other")
    certificates = Certificates(CertificateFiles(server.certificate, server.key))
    first = certificates.current()
    watched = _Watched((server.certificate, server.key), certificates.reload)
    watched.look()
    server.certificate.write_bytes(other.certificate.read_bytes())
    with capture_logs() as log:
        watched.look()  # the key is still the old one's
    first, _ = certificates.current(), first
    assert "its old content stays in force" in log[0]["event"]
    server.key.write_bytes(other.key.read_bytes())
    watched.look()
    assert certificates.current() is not first
