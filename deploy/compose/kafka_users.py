"""Creates the users and the ACLs of docker-compose.secure.yml in Kafka.

It runs in the image of the registry, as the user `admin`, and takes the passwords from /run/secrets. Users
and ACLs that exist are written again, which changes nothing.
"""

from __future__ import annotations

from pathlib import Path

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)

from tamis.local.fleet_logins import acl
from tamis.messaging.rights import rights_of
from tamis.settings import KafkaSettings, load

SECRETS = Path("/run/secrets")
USERS = ("registry", "edge", "joiner", "alerts", "reader")
# The least that Kafka takes. The passwords are random, so that more protects nothing.
ITERATIONS = 4096
SECONDS = 30.0


def main() -> None:
    """Create all users, then all ACLs."""
    admin = AdminClient(load(KafkaSettings).client_config())
    changes: list[UserScramCredentialAlteration] = [
        UserScramCredentialUpsertion(
            name,
            ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, ITERATIONS),
            (SECRETS / f"kafka_{name}").read_text(encoding="utf-8").strip().encode(),
        )
        for name in USERS
    ]
    for done in admin.alter_user_scram_credentials(changes).values():
        done.result(SECONDS)
    rights = [right for name in USERS for right in rights_of(name)]
    for made in admin.create_acls([acl(right) for right in rights]).values():
        made.result(SECONDS)
    print(f"{len(USERS)} users and {len(rights)} ACLs are in Kafka")


if __name__ == "__main__":
    main()
