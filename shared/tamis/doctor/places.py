"""The result of one check, and the addresses of a fleet, with what Kafka answers.

Kafka is asked once, however many checks need it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType

from tamis.errors import UnavailableError
from tamis.messaging.connection import Connection, answer_within
from tamis.settings import KafkaSettings
from tamis.web.registry_client import RegistryClient

if TYPE_CHECKING:
    from confluent_kafka.admin._metadata import ClusterMetadata

MOST = 5  # reasons that one finding names

State = Literal["ok", "warning", "failed", "unchecked"]

TIMEOUT_SECONDS = 5.0


@dataclass(frozen=True)
class Finding:
    """A state with what was found, and what to do about it. A check is `unchecked` if something that it needs
    isn't there.
    """

    state: State
    found: str
    todo: str = ""


def listed(reasons: Sequence[str]) -> str:
    """The first reasons, and the number of the others.

    >>> listed(["a", "b"]), listed(["a", "b", "c", "d", "e", "f"])
    ('a; b', 'a; b; c; d; e; and 1 more')
    """
    more = [f"and {len(reasons) - MOST} more"] if len(reasons) > MOST else []
    return "; ".join([*reasons[:MOST], *more])


@dataclass
class Places:
    """The fleet's Kafka and registry. `kafka_named` and `registry_named`: somebody has set the address, so
    that no answer is a failure. At a default address no fleet need run.
    """

    kafka: KafkaSettings
    registry: RegistryClient
    kafka_named: bool = False
    registry_named: bool = False

    @cached_property
    def _connection(self) -> Connection:
        return Connection.of(self.kafka.client_config())

    @cached_property
    def _admin(self) -> AdminClient:
        config: dict[str, Any] = {**self.kafka.client_config(), "error_cb": self._connection}
        return AdminClient(config)

    @cached_property
    def _answer(self) -> ClusterMetadata | UnavailableError:
        """The cluster, or why Kafka doesn't answer, which no check waits for a second time."""
        try:
            return self._admin.list_topics(timeout=TIMEOUT_SECONDS)
        except KafkaException as error:
            self._admin.poll(0)  # calls the error callback, which has the cause
            return self._connection.error(error)

    @property
    def cluster(self) -> ClusterMetadata:
        """The brokers and topics of the cluster. Raises UnavailableError if Kafka doesn't answer."""
        answer = self._answer
        if isinstance(answer, UnavailableError):
            raise answer
        return answer

    def close(self) -> None:
        """End the client of Kafka and its threads."""
        self.__dict__.pop("_admin", None)

    def settings(self, kind: ResourceType, names: list[str]) -> dict[str, dict[str, str]]:
        """The settings of brokers or topics, by name. Raises UnavailableError if Kafka doesn't tell."""
        resources = [ConfigResource(kind, name) for name in names]
        try:
            asked = self._admin.describe_configs(resources, request_timeout=TIMEOUT_SECONDS)
            found = {
                resource.name: answer_within(future, TIMEOUT_SECONDS + 1)
                for resource, future in asked.items()
            }
        except KafkaException as error:
            self._admin.poll(0)
            raise self._connection.error(error) from error
        return {
            name: {key: str(entry.value) for key, entry in entries.items()} for name, entries in found.items()
        }
