"""Comparison of the rights that this client has in Kafka with those that its service needs.

Kafka's errors about rights name neither the right nor the principal, and topics that a client may not
describe look to it as if they didn't exist. So the client asks the broker which operations it may do.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AclOperation, AdminClient  # type: ignore[attr-defined]

from tamis.messaging.connection import (
    NOT_AUTHORIZED,
    Cluster,
    NotAuthorizedError,
    answer_within,
    not_authorized,
)
from tamis.messaging.rights import Right, rights_of
from tamis.messaging.topics import PLANS, SPECS
from tamis.settings import KafkaSettings

REQUEST_SECONDS = 4.0
GROUPS_SECONDS = 30.0  # until the next look at groups whose rights were all there

_OPERATIONS = {
    "Read": AclOperation.READ,
    "Write": AclOperation.WRITE,
    "Describe": AclOperation.DESCRIBE,
    "Delete": AclOperation.DELETE,
    "AlterConfigs": AclOperation.ALTER_CONFIGS,
}
# Neither a topic of Tamis nor a name that a broker lets anybody use.
_NO_TOPIC = "tamis/none"
# Errors of a commit into that topic, by a consumer that may read the group.
_ANSWERS = {
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.TOPIC_EXCEPTION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.REBALANCE_IN_PROGRESS,
}
_TOPICS = tuple(spec.name for spec in SPECS if "<" not in spec.name)


class RightsCheck:
    """The rights of one principal of `tamis.messaging.rights`, asked of the broker with `client`.

    Rights to create topics or to delete groups, and those on transactional ids, show only in the operations
    themselves. `optional`: the rights that are needed only for something, instead of those that are always
    needed.
    """

    def __init__(
        self, client: AdminClient, settings: KafkaSettings, principal: str, *, optional: bool = False
    ) -> None:
        self._client = client
        self._config = settings.client_config()
        self._cluster = Cluster.of(self._config, settings.setting)
        self._rights = [
            right
            for right in rights_of(principal)
            if right.operation in _OPERATIONS
            and (right.only_for is not None) is optional
            and right.resource != "transactional id"
            and (right.resource, right.operation) != ("group", "Delete")
        ]
        self._groups_due = 0.0

    def missing(self, known: Iterable[str]) -> NotAuthorizedError | None:
        """The rights that this client lacks; None if it has all of them, or the broker doesn't say.

        `known` are the topics that the client sees or uses. Raises KafkaException if the broker doesn't
        answer.
        """
        lacking = [*self._of_topics(set(known)), *self._of_groups()]
        return not_authorized(self._cluster, f"no {', no '.join(lacking)}") if lacking else None

    def _of_topics(self, known: set[str]) -> Iterator[str]:
        wanted: dict[str, list[Right]] = {}
        for right in self._rights:
            if right.resource == "topic":
                for name in _matching(right, known):
                    wanted.setdefault(name, []).append(right)
        if not wanted:
            return
        answers = self._client.describe_topics(
            TopicCollection(list(wanted)),
            include_authorized_operations=True,
            request_timeout=REQUEST_SECONDS,
        )
        for name, rights in wanted.items():
            allowed = _allowed(answers, name)
            yield from (f"{r.operation} on topic {name}" for r in rights if _lacks(allowed, r))

    def _of_groups(self) -> Iterator[str]:
        """The rights on groups that this client lacks. If it has all, it asks again only after some time.

        `AdminClient.describe_consumer_groups` would tell them all. But if the broker goes away meanwhile,
        librdkafka may end the process (its issue 4605). So a consumer of each group tries what the right
        allows.
        """
        wanted = [right for right in self._rights if right.resource == "group"]
        if not wanted or time.monotonic() < self._groups_due:
            return
        refused = {right: _is_refused(self._config, right) for right in wanted}
        if not any(refused.values()) and None not in refused.values():
            self._groups_due = time.monotonic() + GROUPS_SECONDS
        yield from (f"{right.operation} on group {right.name}" for right in wanted if refused[right])


def _is_refused(config: Mapping[str, Any], right: Right) -> bool | None:
    """True if the broker refuses a consumer what needs this right on a group; None if the group's coordinator
    doesn't answer.
    """
    consumer = Consumer({**config, "group.id": right.name, "enable.auto.commit": False})
    try:
        try:
            found = consumer.committed([TopicPartition(PLANS, 0)], timeout=REQUEST_SECONDS)
            if right.operation == "Read":
                # The broker looks at the right before it looks at the topic, which doesn't exist.
                found = consumer.commit(offsets=[TopicPartition(_NO_TOPIC, 0, 0)], asynchronous=False)
            errors = [partition.error for partition in found or ()]
        except KafkaException as error:
            errors = [error.args[0]]
        errors += [message.error() for message in consumer.consume(100, 0)]
    finally:
        consumer.close()
    codes = {error.code() for error in errors if error is not None}
    if KafkaError.GROUP_AUTHORIZATION_FAILED in codes:
        return True
    return False if codes <= _ANSWERS else None


def _matching(right: Right, known: set[str]) -> Iterator[str]:
    if not right.prefixed:
        yield right.name
    else:
        # A topic that may not be described isn't in `known`, but the names of most are fixed.
        yield from sorted(name for name in known.union(_TOPICS) if name.startswith(right.name))


def _lacks(allowed: set[Any] | None, right: Right) -> bool:
    return allowed is not None and _OPERATIONS[right.operation] not in allowed


def _allowed(answers: Mapping[str, Future[Any]], name: str) -> set[Any] | None:
    """The operations that are allowed on a topic; None if the broker doesn't say."""
    try:
        found = answer_within(answers[name], REQUEST_SECONDS + 1).authorized_operations
    except KafkaException as error:
        code = error.args[0].code()
        if code in NOT_AUTHORIZED:
            return set()
        if code in (KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._ALL_BROKERS_DOWN):
            raise
        return None  # there is no such topic
    return set(found) if found else None


def missing_rights(settings: KafkaSettings, principal: str) -> NotAuthorizedError | None:
    """The rights that this client lacks now; None if it has all of them, or the broker doesn't say."""
    client = AdminClient(settings.client_config())
    try:
        known = client.list_topics(timeout=REQUEST_SECONDS).topics
        return RightsCheck(client, settings, principal).missing(known)
    except KafkaException:
        return None
