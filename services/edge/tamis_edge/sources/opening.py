"""The sources that an edge's configuration names, and the Kafka clusters that they read from."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from tamis.errors import InputError
from tamis.plan.model import Plan
from tamis.settings import KafkaSettings
from tamis.settings.http_security import HttpSecurity
from tamis.web.authentication import Reason
from tamis_edge.core.commit import Commit
from tamis_edge.settings import EdgeConfig, FileSource, HttpSource, KafkaSource, MqttSource
from tamis_edge.sources.base import Source
from tamis_edge.storage.journal import Journal

if TYPE_CHECKING:
    from tamis_edge.sources.kafka.schemas import FetchedSchemas

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


class KafkaAccess(NamedTuple):
    """The parameters of Kafka sources. `last_commit` returns the commit of a shard that moves to another
    edge. `count_lost` is called with a stream and the number of its readings that Kafka deleted before they
    were read. `stopping` tells whether the edge stops.
    """

    settings: KafkaSettings
    last_commit: Callable[[str], Commit | None]
    count_lost: Callable[[str, int], None]
    stopping: Callable[[], bool] = lambda: False


class HttpAccess(NamedTuple):
    """The protection of HTTP sources. `count_refused` gets the reason of each request without the right."""

    security: HttpSecurity
    count_refused: Callable[[Reason], None]


_UNPROTECTED = HttpAccess(HttpSecurity(), lambda _: None)


def open_sources(
    config: EdgeConfig,
    journal: Journal,
    *,
    plan: Callable[[], Plan | None],
    planned: Callable[[str], bool | None],
    wake: Callable[[], None],
    kafka: KafkaAccess,
    access: HttpAccess = _UNPROTECTED,
) -> list[Source]:
    """All sources of a configuration, before they are started. Only the libraries of these sources are
    imported.

    `plan` returns the present plan. `planned` tells whether the plan has a stream, None while no plan is
    known. `wake` is called when readings have arrived.
    """
    sources: list[Source] = []
    http = [source for source in config.sources if isinstance(source, HttpSource)]
    if http:
        from tamis_edge.sources.http import HttpSources

        sources.append(
            HttpSources(
                http,
                edge=config.name,
                http=config.http,
                journal=journal,
                plan=plan,
                wake=wake,
                security=access.security,
                count_refused=access.count_refused,
            )
        )
    files = [source for source in config.sources if isinstance(source, FileSource)]
    if files:
        sources.append(_recordings(files, config.name, journal))
    for source in config.sources:
        if isinstance(source, MqttSource):
            from tamis_edge.sources.mqtt import MqttShards

            limit = config.limits.journal
            sources.append(
                MqttShards(source, edge=config.name, journal=journal, limit=limit, planned=planned, wake=wake)
            )
        elif isinstance(source, KafkaSource):
            sources.append(_topic(source, kafka, wake))
    return sources


def open_again(
    source: KafkaSource | FileSource,
    *,
    edge: str,
    journal: Journal,
    wake: Callable[[], None],
    kafka: KafkaAccess,
) -> Source:
    """A source for a backfill stream, before it is started. Raises TamisError if it can't be read."""
    if isinstance(source, KafkaSource):
        return _topic(source, kafka, wake)
    return _recordings([source], edge, journal)


def _recordings(files: list[FileSource], edge: str, journal: Journal) -> Source:
    from tamis_edge.sources.file import FileSources

    return FileSources(files, edge, journal)


def _topic(source: KafkaSource, kafka: KafkaAccess, wake: Callable[[], None]) -> Source:
    from tamis_edge.sources.kafka.topic import KafkaTopic

    lost = partial(kafka.count_lost, source.stream)
    schemas = _schemas(source, wake)
    return KafkaTopic(
        source,
        cluster_of(source, kafka.settings),
        kafka.last_commit,
        lost,
        schemas=schemas,
        stopping=kafka.stopping,
    )


def _schemas(source: KafkaSource, wake: Callable[[], None]) -> FetchedSchemas | None:
    """The schemas of a source's readings; None for JSON. Raises InputError without a usable registry."""
    if source.format == "json":
        return None
    from tamis.messaging.schemas.registry import SchemaRegistry
    from tamis.messaging.schemas.wire_format import KINDS
    from tamis.settings import load
    from tamis.settings.schema_registry import SchemaRegistryAccess, SchemaRegistrySettings
    from tamis_edge.sources.kafka.schemas import FetchedSchemas

    if source.schema_registry is None:
        access = load(SchemaRegistrySettings).access
    else:
        try:
            access = SchemaRegistryAccess(**source.schema_registry.model_dump())
        except ValidationError as error:
            what = "; ".join(fault["msg"] for fault in error.errors(include_url=False, include_input=False))
            raise InputError(what, where=f"`schema_registry` of the source {source.name}") from None
    if access is None:
        raise InputError(
            f"readings with the format {source.format} need a schema registry, and none is configured",
            where=f"source {source.name}",
            hint="set TAMIS_SCHEMA_REGISTRY_URL, or `schema_registry: {url: …}` of the source",
        )
    return FetchedSchemas(SchemaRegistry(access), KINDS[source.format], wake=wake)
