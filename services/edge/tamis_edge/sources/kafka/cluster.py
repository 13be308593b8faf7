"""The cluster of a Kafka source: the fleet's, or another one with a login of its own."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from tamis.errors import InputError
from tamis.settings import KafkaSettings
from tamis_edge.settings import KafkaSource

# Fields of KafkaSettings by the names that they have in a source.
_NAMES = {
    "bootstrap": "bootstrap",
    "security_protocol": "security",
    "sasl_mechanism": "mechanism",
    "sasl_username": "username",
    "sasl_password": "password",
    "ssl_ca": "ca",
    "ssl_certificate": "certificate",
    "ssl_key": "key",
    "ssl_key_password": "key_password",
    "oauth_token_url": "token_url",
    "oauth_client_id": "client_id",
    "oauth_client_secret": "client_secret",
    "oauth_scope": "scope",
    "oauth_ca": "token_ca",
}


class _OtherCluster(KafkaSettings):
    """Settings from the source alone. The environment has the login of the fleet's cluster, which must not be
    sent to another one.
    """

    source: str

    def setting(self, field: str) -> str:
        return f"`{_NAMES[field]}` of the source {self.source}"

    @classmethod
    def settings_customise_sources(
        cls, settings_cls: type[BaseSettings], init_settings: PydanticBaseSettingsSource, *_: Any, **__: Any
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (init_settings,)


def cluster_of(source: KafkaSource, fleet: KafkaSettings) -> KafkaSettings:
    """The settings for the cluster of a source. Raises InputError where they are wrong or incomplete."""
    given = {field: value for field, name in _NAMES.items() if (value := getattr(source, name)) is not None}
    where = f"source {source.name}"
    if source.bootstrap is None:
        if given:
            raise InputError(
                f"{', '.join(_NAMES[field] for field in given)} without `bootstrap`",
                where=where,
                hint="name the other cluster by `bootstrap`; TAMIS_KAFKA_… is the login of the fleet's Kafka",
            )
        return fleet
    if source.security is None and fleet.security_protocol != "PLAINTEXT":
        raise InputError(
            "`bootstrap` names another cluster, which doesn't get the login of the fleet's Kafka",
            where=where,
            hint="add `security`: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL, with its login",
        )
    try:
        return _OtherCluster(source=source.name, **given)
    except ValidationError as error:
        faults = [
            f"{'.'.join(_NAMES.get(str(part), str(part)) for part in fault['loc'])}: ".removeprefix(": ")
            + fault["msg"]
            for fault in error.errors(include_url=False, include_input=False)
        ]
        raise InputError("; ".join(faults), where=where) from None
