"""Security of the embedded broker: TLS, logins and the authorizer, with one port for each kind of login."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)
from pydantic import SecretStr

from tamis.errors import UnavailableError
from tamis.local.broker_settings import HOST, Listener
from tamis.local.service_process import free_ports
from tamis.settings import KafkaSettings
from tamis.settings.kafka import jaas_string

DAYS = 365
# An authority that ends within so many days is replaced when it is next used, with all its certificates.
RENEW_DAYS = 30
HERE = "IP:127.0.0.1, DNS:localhost"

# Python 3.13 refuses certificates without the identifiers of their keys.
_IDENTIFIERS = "subjectKeyIdentifier = hash\nauthorityKeyIdentifier = keyid\n"
_EXTENSIONS = f"""\
[server]
{_IDENTIFIERS}extendedKeyUsage = serverAuth, clientAuth
[client]
{_IDENTIFIERS}extendedKeyUsage = clientAuth
"""
_SUFFIXES = ("key", "csr", "pem", "both.pem")
# Elliptic curves: an RSA key takes up to a second. No password: the broker would need it in its settings.
_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")

Login = Literal["PLAIN", "SCRAM", "OAUTHBEARER"]

# Names in the certificates of the broker itself and of the client that may do everything.
BROKER, ADMIN = "broker", "admin"

_MODULES = "org.apache.kafka.common.security"
_SCRAM = {
    "SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256,
    "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512,
}
# The least that Kafka takes.
_ITERATIONS = 4096
REQUEST_SECONDS = 10.0


@dataclass(frozen=True)
class Certificate:
    """The PEM files of one certificate: the certificate, its key, and both in one file for Kafka's broker."""

    certificate: Path
    key: Path
    both: Path


class Authority:
    """A certificate authority whose files are in `directory`. Only the owner can read them."""

    def __init__(self, directory: Path) -> None:
        """Raises UnavailableError without the command `openssl`."""
        self.directory = directory
        self.certificate = directory / "ca.pem"
        directory.mkdir(parents=True, exist_ok=True)
        directory.chmod(0o700)
        if not self.certificate.exists() or self._ends_soon():
            self._make()

    def _ends_soon(self) -> bool:
        end = ("-noout", "-checkend", str(RENEW_DAYS * 24 * 3600))
        return _run("x509", "-in", str(self.certificate), *end).returncode != 0

    def _make(self) -> None:
        for signed in self.directory.glob(f"*.{_SUFFIXES[-1]}"):
            signed.unlink()
        _openssl(
            *("req", "-x509", *_NEW_KEY, "-days", str(DAYS), "-subj", "/CN=tamis-authority"),
            *("-addext", "keyUsage=critical,keyCertSign,cRLSign"),
            *("-keyout", str(self.directory / "ca.key"), "-out", str(self.certificate)),
        )

    def issue(self, name: str, kind: str = "client", names: str = HERE) -> Certificate:
        """The certificate with the subject `CN=name`, made where it doesn't exist. `kind`: "client", or
        "server" for the `names`, which are in the notation of OpenSSL.
        """
        key, request, pem, both = (self.directory / f"{name}.{suffix}" for suffix in _SUFFIXES)
        if not both.exists():
            extensions = self.directory / f"{name}.cnf"
            alternatives = f"[server]\nsubjectAltName = {names}\n" if kind == "server" else ""
            _write(extensions, alternatives + _EXTENSIONS)
            subject = ("-subj", f"/CN={name}")
            _openssl("req", "-new", *_NEW_KEY, *subject, "-keyout", str(key), "-out", str(request))
            _openssl(
                *("x509", "-req", "-in", str(request), "-out", str(pem), "-days", str(DAYS)),
                *("-CA", str(self.certificate), "-CAkey", str(self.directory / "ca.key"), "-CAcreateserial"),
                *("-extfile", str(extensions), "-extensions", kind),
            )
            _write(both, key.read_text(encoding="utf-8") + pem.read_text(encoding="utf-8"))
        return Certificate(pem, key, both)


def _write(path: Path, text: str) -> None:
    path.touch(0o600)
    path.write_text(text, encoding="utf-8")


def _openssl(*arguments: str) -> None:
    done = _run(*arguments)
    if done.returncode:
        raise UnavailableError(f"openssl {arguments[0]} failed: {done.stderr.strip()}", where=arguments[-1])


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run openssl. Only the owner can read the files that it makes."""
    command = shutil.which("openssl")
    if command is None:
        raise UnavailableError(
            "the command `openssl` is missing",
            where="PATH",
            hint="install OpenSSL: it makes the certificates",
        )
    return subprocess.run([command, *arguments], capture_output=True, text=True, check=False, umask=0o077)


@dataclass(frozen=True)
class BrokerSecurity:
    """TLS on all ports, and ACLs: what no ACL allows is refused.

    The broker's own port takes certificates of the authority in `directory`; the name in ACLs is the one in
    the certificate. `users` maps names to passwords of PLAIN and SCRAM. `keys_url` is the URL of the JSON Web
    Key Set with which OAUTHBEARER's tokens are checked. `scram_port` is the port of SCRAM; by default a free
    one.
    """

    directory: Path
    users: Mapping[str, str] = field(default_factory=dict)
    logins: Sequence[Login] = ("SCRAM",)
    keys_url: str | None = None
    audience: str = "kafka"
    scram_port: int | None = None

    @cached_property
    def authority(self) -> Authority:
        """The authority of all certificates."""
        return Authority(self.directory)

    @cached_property
    def ports(self) -> Mapping[Login, int]:
        """The port of each kind of login."""
        ports = dict(zip(self.logins, free_ports(len(self.logins)), strict=True))
        return ports | ({"SCRAM": self.scram_port} if self.scram_port else {})

    def listeners(self) -> list[Listener]:
        """The ports beside the broker's own."""
        return [
            Listener(login, self.ports[login], "SASL_SSL", settings=self._listener(login))
            for login in self.logins
        ]

    def _listener(self, login: Login) -> dict[str, str]:
        if login == "SCRAM":
            required = f"{_MODULES}.scram.ScramLoginModule required;"
            return {
                "sasl.enabled.mechanisms": ",".join(_SCRAM),
                **{f"{name.lower()}.sasl.jaas.config": required for name in _SCRAM},
            }
        if login == "PLAIN":
            users = "".join(f" user_{name}={jaas_string(password)}" for name, password in self.users.items())
            return {
                "sasl.enabled.mechanisms": "PLAIN",
                "plain.sasl.jaas.config": f"{_MODULES}.plain.PlainLoginModule required{users};",
            }
        handler = f"{_MODULES}.oauthbearer.OAuthBearerValidatorCallbackHandler"
        return {
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "oauthbearer.sasl.jaas.config": f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required;",
            "oauthbearer.sasl.server.callback.handler.class": handler,
            "oauthbearer.sasl.oauthbearer.jwks.endpoint.url": self.keys_url or "",
            "oauthbearer.sasl.oauthbearer.expected.audience": self.audience,
        }

    def broker_settings(self) -> dict[str, str]:
        """Settings of the broker as a whole."""
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.authority.issue(BROKER, "server").both),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.certificate),
            "listener.name.broker.ssl.client.auth": "required",
            "listener.name.controller.ssl.client.auth": "required",
            "ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/,DEFAULT",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:{BROKER};User:{ADMIN}",
        }

    def java_options(self) -> list[str]:
        """Options of the broker's JVM."""
        # Kafka calls no URL for keys that isn't listed here.
        return [f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={self.keys_url}"] if self.keys_url else []

    def certificate_settings(self, name: str, bootstrap: str) -> KafkaSettings:
        """Settings of a client that shows a certificate to the broker's own port, `bootstrap`."""
        made = self.authority.issue(name)
        return KafkaSettings(
            bootstrap=bootstrap,
            security_protocol="SSL",
            ssl_ca=self.authority.certificate,
            ssl_certificate=made.certificate,
            ssl_key=made.key,
        )

    def password_settings(
        self, name: str, mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
    ) -> KafkaSettings:
        """Settings of a client that logs in with the password of a user."""
        return KafkaSettings(
            bootstrap=f"{HOST}:{self.ports['PLAIN' if mechanism == 'PLAIN' else 'SCRAM']}",
            security_protocol="SASL_SSL",
            sasl_mechanism=mechanism,
            sasl_username=name,
            sasl_password=SecretStr(self.users[name]),
            ssl_ca=self.authority.certificate,
        )

    def create_users(self, bootstrap: str) -> None:
        """Store the users' SCRAM passwords in the broker. Raises KafkaException."""
        if "SCRAM" not in self.logins or not self.users:
            return
        admin = AdminClient(self.certificate_settings(ADMIN, bootstrap).client_config())
        # One request takes each user once.
        for mechanism in _SCRAM.values():
            changes: list[UserScramCredentialAlteration] = [
                UserScramCredentialUpsertion(
                    name, ScramCredentialInfo(mechanism, _ITERATIONS), password.encode()
                )
                for name, password in self.users.items()
            ]
            for done in admin.alter_user_scram_credentials(changes).values():
                done.result(REQUEST_SECONDS)
