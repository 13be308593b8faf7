"""Logins and ACLs of a fleet on a secure broker: a password for each principal, and exactly its rights."""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from tamis.local.broker import EmbeddedKafka
from tamis.local.broker_security import ADMIN, REQUEST_SECONDS, BrokerSecurity
from tamis.messaging.rights import PRINCIPALS, RIGHTS, Right
from tamis.settings import KafkaSettings

_RESOURCES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional id": ResourceType.TRANSACTIONAL_ID,
}
_OPERATIONS = {
    "Read": AclOperation.READ,
    "Write": AclOperation.WRITE,
    "Create": AclOperation.CREATE,
    "Describe": AclOperation.DESCRIBE,
    "Delete": AclOperation.DELETE,
    "AlterConfigs": AclOperation.ALTER_CONFIGS,
}


MECHANISM: Literal["SCRAM-SHA-512"] = "SCRAM-SHA-512"


class FleetLogins:
    """Certificates, passwords and settings of clients in `directory`, which only its owner can read. A later
    start goes on with them.

    | file | content |
    |---|---|
    | `passwords/<principal>` | the password of a principal of `tamis.messaging.rights` |
    | `tls/ca.pem` | the certificate of the authority, which clients trust |
    | `<principal>.env` | the settings of a principal, for a shell |
    | `admin.env` | the settings of a client that may do everything; it has a certificate |

    `port` is the port of clients with a password; by default a free one.
    """

    def __init__(self, directory: Path, port: int | None = None) -> None:
        self.directory = directory.resolve()
        self.passwords = self.directory / "passwords"
        self.passwords.mkdir(parents=True, exist_ok=True)
        for folder in (self.directory, self.passwords):
            folder.chmod(0o700)
        users = {principal: self._password(principal) for principal in PRINCIPALS}
        self.security = BrokerSecurity(self.directory / "tls", users, scram_port=port)

    def _password(self, principal: str) -> str:
        file = self.passwords / principal
        file.touch(0o600)
        if not (password := file.read_text(encoding="utf-8")):
            password = secrets.token_urlsafe(24)
            file.write_text(password, encoding="utf-8")
        return password

    @property
    def bootstrap(self) -> str:
        """The address for clients with a password."""
        return self.settings(PRINCIPALS[0]).bootstrap

    def settings(self, principal: str) -> KafkaSettings:
        """The settings of a principal in this process."""
        return self.security.password_settings(principal, MECHANISM)

    def environment(self, principal: str) -> dict[str, str]:
        """The settings of a principal for another process."""
        found = self.settings(principal)
        return {
            "TAMIS_KAFKA_BOOTSTRAP": found.bootstrap,
            "TAMIS_KAFKA_SECURITY_PROTOCOL": found.security_protocol,
            "TAMIS_KAFKA_SASL_MECHANISM": str(found.sasl_mechanism),
            "TAMIS_KAFKA_SASL_USERNAME": principal,
            "TAMIS_KAFKA_SASL_PASSWORD_FILE": str(self.passwords / principal),
            "TAMIS_KAFKA_SSL_CA": str(found.ssl_ca),
        }

    def environment_file(self, principal: str) -> Path:
        """The file with the settings of a principal, or of `admin`."""
        return self.directory / f"{principal}.env"

    def write_environments(self, bootstrap: str) -> None:
        """Write the files of settings. `bootstrap` is the address of the port that takes certificates."""
        made = self.security.certificate_settings(ADMIN, bootstrap)
        admin = {
            "TAMIS_KAFKA_BOOTSTRAP": bootstrap,
            "TAMIS_KAFKA_SECURITY_PROTOCOL": made.security_protocol,
            "TAMIS_KAFKA_SSL_CA": str(made.ssl_ca),
            "TAMIS_KAFKA_SSL_CERTIFICATE": str(made.ssl_certificate),
            "TAMIS_KAFKA_SSL_KEY": str(made.ssl_key),
        }
        for name, values in {ADMIN: admin, **{p: self.environment(p) for p in PRINCIPALS}}.items():
            file = self.environment_file(name)
            file.touch(0o600)
            lines = (f"{variable}={shlex.quote(value)}\n" for variable, value in values.items())
            file.write_text("".join(lines), encoding="utf-8")

    def description(self) -> str:
        """Lines for the user: where the files are."""
        return "\n".join(
            (
                f"  {MECHANISM} over TLS; each principal has only the rights that docs/security.md lists",
                f"  authority  {self.security.authority.certificate}",
                f"  passwords  {self.passwords}/PRINCIPAL",
                f"  settings   {self.environment_file('PRINCIPAL')}",
                f"  PRINCIPAL  {', '.join(PRINCIPALS)}; {ADMIN}.env has a certificate that may do everything",
            )
        )

    def in_shell(self, command: str, principal: str) -> str:
        """A line for a shell that runs a command as a principal."""
        return f"(set -a; . {shlex.quote(str(self.environment_file(principal)))}; {command})"


def grant(broker: EmbeddedKafka, rights: Iterable[Right] = RIGHTS) -> None:
    """Create the ACLs of rights in a secure broker. Raises KafkaException."""
    admin = AdminClient(broker.admin_config())
    for done in admin.create_acls([acl(right) for right in rights]).values():
        done.result(REQUEST_SECONDS)


def revoke(broker: EmbeddedKafka, rights: Iterable[Right]) -> None:
    """Delete the ACLs of rights in a secure broker. Raises KafkaException."""
    admin = AdminClient(broker.admin_config())
    exact = [
        AclBindingFilter(
            found.restype,
            found.name,
            found.resource_pattern_type,
            found.principal,
            found.host,
            found.operation,
            found.permission_type,
        )
        for found in map(acl, rights)
    ]
    for done in admin.delete_acls(exact).values():
        done.result(REQUEST_SECONDS)


def acl(right: Right) -> AclBinding:
    """The ACL of a right, for the user of the principal's name."""
    return AclBinding(
        _RESOURCES[right.resource],
        right.name,
        ResourcePatternType.PREFIXED if right.prefixed else ResourcePatternType.LITERAL,
        f"User:{right.principal}",
        "*",
        _OPERATIONS[right.operation],
        AclPermissionType.ALLOW,
    )
