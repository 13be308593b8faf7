"""Schemas of a schema registry over HTTP, by confluent-kafka's client."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from tamis.errors import RefusedError, UnavailableError
from tamis.messaging.dead_letters import Reason
from tamis.messaging.schemas.wire_format import Kind
from tamis.settings.schema_registry import SchemaRegistryAccess

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

T = TypeVar("T")

LONGEST = 1_000_000  # characters of one schema
MOST_REFERENCES = 100  # schemas that one schema refers to, directly and indirectly
MOST_CACHED = 1_000

_NOT_FOUND, _CONFLICT, _INVALID, _SERVER_ERROR = 404, 409, 422, 500
_UNAUTHORIZED = (401, 403)
_REFUSING_US = (*_UNAUTHORIZED, 408, 429)  # nothing that is wrong with the question
_SCHEMA_NOT_FOUND = 40403  # the API's own code


@dataclass(frozen=True, eq=False)
class WriterSchema:
    """A schema that values were written with. Two of them are the same only if they are one object.

    `text` is JSON for Avro, and a serialized FileDescriptorProto in base64 for Protobuf. `references` are the
    schemas that it needs, each with the name by which it is imported, the needed before those that need them.
    """

    number: int
    kind: Kind
    text: str
    references: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, eq=False)
class UnusableSchema:
    """The reason why values with the schema of this number can't be read."""

    number: int
    reason: Reason
    error: str


class SchemaRegistry:
    """A connection to one schema registry. All calls wait for its answer."""

    def __init__(self, access: SchemaRegistryAccess) -> None:
        self.url = access.url
        self._client: SchemaRegistryClient | None = None
        self._config = access.client_config()

    def schema(self, number: int, kind: Kind) -> WriterSchema | UnusableSchema:
        """The schema of a number. Raises UnavailableError if the registry doesn't answer or refuses us."""
        try:
            found = self._get(number, kind)
            if found is None:
                what = f"the schema registry at {self.url} has no schema {number}"
                return UnusableSchema(number, Reason.UNKNOWN_SCHEMA, what)
            if found.schema_type != kind:
                what = f"schema {number} is {found.schema_type}, and the source's format is {kind.lower()}"
                return UnusableSchema(number, Reason.UNDECODABLE, what)
            references: dict[str, str] = {}
            self._add_references(found, kind, references, ())
        except _UnusableError as error:
            return UnusableSchema(number, Reason.UNDECODABLE, f"schema {number}: {error}")
        text = found.schema_str or ""
        if len(text) + sum(map(len, references.values())) > LONGEST:
            what = f"schema {number} has more than {LONGEST} characters"
            return UnusableSchema(number, Reason.UNDECODABLE, what)
        return WriterSchema(number, kind, text, tuple(references.items()))

    def register(self, subject: str, kind: Kind, text: str) -> int:
        """Register a schema under a subject, if it isn't there yet; returns its number.

        Raises UnavailableError if the registry doesn't answer, and RefusedError if it refuses the schema.
        """
        from confluent_kafka.schema_registry import Schema, SchemaRegistryError

        try:
            return self._call(lambda client: client.register_schema(subject, Schema(text, kind)))
        except SchemaRegistryError as error:
            reasons = {_CONFLICT: "isn't compatible with its earlier versions", _INVALID: "isn't accepted"}
            what = reasons.get(error.http_status_code, "is refused")
            raise RefusedError(
                f"the schema {what}: {error.error_message}",
                where=f"subject {subject} of the schema registry at {self.url}",
                hint="delete the subject, change its compatibility, or give the stream another name",
            ) from None

    def close(self) -> None:
        """Close the connection."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _get(self, number: int, kind: Kind) -> Schema | None:
        from confluent_kafka.schema_registry import SchemaRegistryError

        try:
            return self._call(lambda client: client.get_schema(number, fmt=_form(kind)))
        except SchemaRegistryError as error:
            if error.error_code == _SCHEMA_NOT_FOUND:
                return None
            # Such as 404 of a server that is no schema registry.
            raise self._away(error) from None

    def _add_references(
        self, schema: Schema, kind: Kind, found: dict[str, str], above: tuple[str, ...]
    ) -> None:
        """Add the schemas that a schema refers to, the needed first. `above`: those that refer to it."""
        from confluent_kafka.schema_registry import SchemaRegistryError

        for reference in schema.references or ():
            name, subject, version = reference.name, reference.subject, reference.version
            if name is None or subject is None or version is None or name in above:
                raise _UnusableError(f"its reference {name!r:.100} can't be followed")
            if name in found:
                continue
            if len(found) + len(above) >= MOST_REFERENCES:
                raise _UnusableError(f"it refers to more than {MOST_REFERENCES} schemas")
            try:
                one = self._version(subject, version, kind)
            except SchemaRegistryError as error:
                if error.http_status_code == _NOT_FOUND:
                    raise _UnusableError(
                        f"it refers to {name!r:.100}, which the schema registry doesn't have"
                    ) from None
                raise self._away(error) from None
            self._add_references(one, kind, found, (*above, name))
            found[name] = one.schema_str or ""

    def _version(self, subject: str, version: int, kind: Kind) -> Schema:
        # Values that are still in Kafka may need a version that was deleted.
        return self._call(
            lambda client: client.get_version(subject, version, deleted=True, fmt=_form(kind)).schema
        )

    def _call(self, ask: Callable[[SchemaRegistryClient], T]) -> T:
        """An answer of the registry. Raises SchemaRegistryError if it refuses the question, and
        UnavailableError if it doesn't answer, or refuses us.
        """
        from confluent_kafka.schema_registry import SchemaRegistryError

        try:
            return ask(self._connect())
        except SchemaRegistryError as error:
            if error.http_status_code in _REFUSING_US or error.http_status_code >= _SERVER_ERROR:
                raise self._away(error) from None
            raise
        # The client doesn't wrap the errors of its HTTP library.
        except Exception as error:
            raise self._away(error) from None

    def _connect(self) -> SchemaRegistryClient:
        if self._client is None:
            # It takes 24 MB, which services without a schema registry can do without.
            from confluent_kafka.schema_registry import SchemaRegistryClient

            self._client = SchemaRegistryClient({**self._config, "cache.capacity": MOST_CACHED})
        return self._client

    def _away(self, error: Exception) -> UnavailableError:
        if getattr(error, "http_status_code", None) in _UNAUTHORIZED:
            what = f"it refuses the user or the password: {error}"
            hint = (
                "check TAMIS_SCHEMA_REGISTRY_USERNAME and TAMIS_SCHEMA_REGISTRY_PASSWORD, "
                "or `schema_registry` of the source"
            )
        else:
            what = f"no usable answer: {str(error) or type(error).__name__}"
            hint = "check its address, and that it is up"
        return UnavailableError(what, where=f"schema registry at {self.url}", hint=hint)


class _UnusableError(Exception):
    """The reason why a schema can't be used."""


def _form(kind: Kind) -> str | None:
    # Text of Protobuf schemas would have to be compiled; registries can send descriptors instead.
    return "serialized" if kind == "PROTOBUF" else None
