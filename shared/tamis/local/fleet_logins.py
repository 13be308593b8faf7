"""Logins and ACLs of a fleet on a secure broker: a password for each principal, and exactly its rights."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from pathlib import Path

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
from tamis.local.broker_security import REQUEST_SECONDS, BrokerSecurity
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


class FleetLogins:
    """Certificates and passwords under `directory`, made anew for each fleet. SCRAM-SHA-512 over TLS."""

    def __init__(self, directory: Path) -> None:
        self._passwords = directory / "passwords"
        self._passwords.mkdir(parents=True, exist_ok=True)
        self._passwords.chmod(0o700)
        users = {principal: secrets.token_urlsafe(24) for principal in PRINCIPALS}
        for principal, password in users.items():
            file = self._passwords / principal
            file.touch(0o600)
            file.write_text(password, encoding="utf-8")
        self.security = BrokerSecurity(directory / "tls", users)

    def settings(self, principal: str) -> KafkaSettings:
        """The settings of a principal in this process."""
        return self.security.password_settings(principal, "SCRAM-SHA-512")

    def environment(self, principal: str) -> dict[str, str]:
        """The settings of a principal for another process."""
        found = self.settings(principal)
        return {
            "TAMIS_KAFKA_BOOTSTRAP": found.bootstrap,
            "TAMIS_KAFKA_SECURITY_PROTOCOL": found.security_protocol,
            "TAMIS_KAFKA_SASL_MECHANISM": str(found.sasl_mechanism),
            "TAMIS_KAFKA_SASL_USERNAME": principal,
            "TAMIS_KAFKA_SASL_PASSWORD_FILE": str(self._passwords / principal),
            "TAMIS_KAFKA_SSL_CA": str(found.ssl_ca),
        }


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
