"""The authority of this machine: files for its owner only, and new ones before the old ones end."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

import pytest

from tamis.local import broker_security as certificates
from tamis.local.broker_security import Authority
from tamis.local.fleet_logins import FleetLogins
from tamis.messaging.rights import PRINCIPALS


def verified(authority: Authority, certificate: Path) -> bool:
    """OpenSSL's verdict, with the strict rules of Python 3.13."""
    verify = ["openssl", "verify", "-x509_strict", "-CAfile", str(authority.certificate), str(certificate)]
    return subprocess.run(verify, capture_output=True, check=False).returncode == 0


def test_certificates_are_made_once_and_are_for_the_owner_only(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "tls")
    server, client = authority.issue("broker", "server"), authority.issue("admin")
    assert verified(authority, server.certificate) and verified(authority, client.certificate)
    assert not verified(Authority(tmp_path / "other"), server.certificate)
    files = {path: path.read_bytes() for path in (tmp_path / "tls").iterdir()}
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert (tmp_path / "tls").stat().st_mode & 0o777 == 0o700
    assert Authority(tmp_path / "tls").issue("broker", "server") == server
    assert {path: path.read_bytes() for path in (tmp_path / "tls").iterdir()} == files
    # TLS of Python takes the pair.
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(server.certificate, server.key)


def test_an_authority_that_ends_soon_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates, "DAYS", certificates.RENEW_DAYS - 1)
    before = Authority(tmp_path).issue("broker", "server").certificate.read_text()
    first = (tmp_path / "ca.pem").read_text()
    monkeypatch.setattr(certificates, "DAYS", certificates.RENEW_DAYS + 1)
    authority = Authority(tmp_path)
    issued = authority.issue("broker", "server")
    assert authority.certificate.read_text() != first and issued.certificate.read_text() != before
    assert issued.both.read_text() == issued.key.read_text() + issued.certificate.read_text()
    assert verified(authority, issued.certificate)
    assert (
        Authority(tmp_path).issue("broker", "server").certificate.read_text()
        == issued.certificate.read_text()
    )


def test_a_fleet_keeps_its_passwords_for_its_owner_only(tmp_path: Path) -> None:
    passwords = dict(FleetLogins(tmp_path / "logins").security.users)
    again = FleetLogins(tmp_path / "logins")
    assert again.security.users == passwords and len({*passwords.values()}) == len(PRINCIPALS)
    again.write_environments("127.0.0.1:1")
    for path in (tmp_path / "logins").rglob("*"):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path
    for principal in (*PRINCIPALS, "admin"):
        text = again.environment_file(principal).read_text()
        assert not [name for name, password in passwords.items() if password in text]
