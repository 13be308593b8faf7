"""The edge's configuration file: YAML, every field checked, each mistake named with its line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from tamis.errors import InputError
from tamis.messaging.schemas.wire_format import Format
from tamis.recordings.times import TimeUnit
from tamis.settings.kafka import Mechanism, Protocol
from tamis.settings.yaml_file import Secret, read_yaml
from tamis.web.tls import CertificateFiles
from tamis_edge.source_fields import (
    STREAM,
    FieldMap,
    FieldPathText,
    Host,
    KafkaTopicName,
    MqttFilter,
    StreamName,
    levels,
)
from tamis_edge.storage.disk import RESERVE

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def _check_name(name: str) -> str:
    # Names are parts of shard ids, `<stream>:<edge>/<source>`, which must read one way only.
    if not _NAME.fullmatch(name):
        raise ValueError("use letters, digits, dots, dashes and underscores only")
    return name


Name = Annotated[str, AfterValidator(_check_name)]
Port = Annotated[int, Field(ge=0, le=65535)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    def beside(self, directory: Path) -> Self:
        """The part of the configuration with its files relative to `directory`."""
        files: dict[str, object] = {
            name: directory / value if isinstance(value, Path) else value.beside(directory)
            for name, value in self
            if isinstance(value, Path | _Part)
        }
        return self.model_copy(update=files)


class _Source(_Part):
    name: Name
    """Name of the source, unique within the edge. It is a part of the ids of its shards, so it must stay the
    same over restarts.
    """
    map: dict[str, FieldPathText] = {}
    """Column: path of its field in a reading. A column that isn't named here has its own name as the path."""
    time_unit: TimeUnit | None = None
    """Unit of TIMESTAMPs that are numbers. By default the unit that the stream declares."""

    @property
    def fields(self) -> FieldMap:
        """The mapping from the fields of a reading to columns."""
        return FieldMap(self.map, self.time_unit)


class HttpSource(_Source):
    """`POST /v1/streams/{stream}`; without `streams`, every stream of the plan."""

    kind: Literal["http"]
    streams: list[StreamName] | None = None
    """The streams that it takes. By default every stream of the plan."""


class MqttTls(_Part):
    """PEM files for the connection to a broker: the authority that signed its certificate (by default those
    of the system are trusted), and the edge's own certificate, if the broker asks for one.
    """

    ca: Path | None = None
    """PEM file of the authority that signed the broker's certificate. By default those of the system."""
    certificate: Path | None = None
    """PEM file of the edge's own certificate, if the broker asks for one."""
    key: Path | None = None
    """PEM file of the key of this certificate."""
    key_password: Secret | None = None
    """Password of this key, if it is encrypted."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.certificate is None) != (self.key is None):
            raise ValueError("a certificate needs its key, and a key its certificate: name both")
        return self

    @property
    def own(self) -> CertificateFiles | None:
        """The edge's certificate."""
        if self.certificate is None or self.key is None:
            return None
        password = self.key_password.get_secret_value() if self.key_password else None
        return CertificateFiles(self.certificate, self.key, password)


class MqttSource(_Source):
    """A subscription with acknowledged delivery. `{stream}` as a level of `topic` stands for the stream's
    name.
    """

    kind: Literal["mqtt"]
    host: Host = "127.0.0.1"
    """Name or address of the broker."""
    port: Port = 1883
    """Port of the broker."""
    topic: MqttFilter
    """Topic to subscribe to. A level `{stream}` of it stands for the name of the stream."""
    stream: StreamName | None = None
    """The stream of all messages, if no level of the topic names it."""
    protocol: Literal["3.1.1", "5"] = "3.1.1"
    """Version of MQTT."""
    username: str | None = None
    """User name, if the broker needs one."""
    password: Secret | None = None
    """Password of this user."""
    tls: bool | MqttTls = False
    """`true` encrypts the connection; a mapping does so with the files that it names."""

    @model_validator(mode="after")
    def _one_way_to_the_stream(self) -> Self:
        if (STREAM in levels(self.topic)) == (self.stream is not None):
            raise ValueError("name the stream, or write {stream} as one level of the topic, but not both")
        if self.password is not None and self.username is None:
            raise ValueError("a password needs a username")
        return self


class SchemaRegistry(_Part):
    """The schema registry of one source, in place of that of `TAMIS_SCHEMA_REGISTRY_…`."""

    url: str
    """Address of the schema registry of this source, in place of that of `TAMIS_SCHEMA_REGISTRY_URL`."""
    username: str | None = None
    """User name, if it needs one."""
    password: Secret | None = None
    """Password of this user."""
    ca: Path | None = None
    """PEM file of the authorities to trust. By default those of certifi."""


class KafkaSource(_Source):
    """A topic of readings; edges with the same `group` share its partitions. With `bootstrap` the topic is on
    another cluster than the fleet's; the fields after it are the login there.
    """

    kind: Literal["kafka"]
    topic: KafkaTopicName
    """Topic of the readings."""
    stream: StreamName
    """The stream of all readings of the topic."""
    group: str | None = None
    """Consumer group, by default `tamis-edge.STREAM.TOPIC`. Edges of one group share the partitions."""
    bootstrap: str | None = None
    """Addresses of the brokers, if the topic is on another cluster than the fleet's. The fields from
    `security` to `key_password` are the login there.
    """
    security: Protocol | None = None
    """As `TAMIS_KAFKA_SECURITY_PROTOCOL`."""
    mechanism: Mechanism | None = None
    """As `TAMIS_KAFKA_SASL_MECHANISM`."""
    username: str | None = None
    """User name there."""
    password: Secret | None = None
    """Password of this user."""
    token_url: str | None = None
    """Address of the token endpoint, for `OAUTHBEARER`."""
    client_id: str | None = None
    """Name of the client at the token endpoint."""
    client_secret: Secret | None = None
    """Secret of this client."""
    scope: str | None = None
    """Scope of the tokens, if the token endpoint needs one."""
    token_ca: Path | None = None
    """PEM file of the authorities that the token endpoint's certificate rests on."""
    ca: Path | None = None
    """PEM file of the authorities that the brokers' certificates rest on."""
    certificate: Path | None = None
    """PEM file of the edge's certificate, if the brokers ask for one."""
    key: Path | None = None
    """PEM file of the key of this certificate."""
    key_password: Secret | None = None
    """Password of this key, if it is encrypted."""
    format: Format = "json"
    """Form of the readings. Avro and Protobuf are in the wire format of a schema registry."""
    schema_registry: SchemaRegistry | None = None

    @model_validator(mode="after")
    def _registry_is_used(self) -> Self:
        if self.schema_registry is not None and self.format == "json":
            raise ValueError(
                "schema_registry is for format: avro or protobuf; readings in JSON have no schema"
            )
        return self


class FileSource(_Source):
    """A recording, replayed once. `speed`: event time divided by wall time, or `max`."""

    kind: Literal["file"]
    path: Path
    """The recording."""
    stream: StreamName
    """The stream of all its rows."""
    format: Literal["csv", "ndjson", "parquet"] | None = None
    """Form of the file. By default it follows from the suffix of the path."""
    speed: Annotated[float, Field(gt=0)] | Literal["max"] = "max"
    """Event time divided by wall time: 1 replays at the pace of the recording. `max` is as fast as possible.
    """


AnySource = Annotated[HttpSource | MqttSource | KafkaSource | FileSource, Field(discriminator="kind")]


class Tls(_Part):
    """PEM files of the certificate of a server, and of its key."""

    certificate: Path
    """PEM file of the edge's certificate. Required beyond loopback, unless a proxy terminates TLS."""
    key: Path
    """PEM file of the key of this certificate."""
    key_password: Secret | None = None
    """Password of this key, if it is encrypted."""


class Http(_Part):
    """The address at which the HTTP sources listen, and its protection. `tls: proxy` says that a proxy in
    front of the edge terminates TLS.
    """

    host: str = "127.0.0.1"
    """The address on which the HTTP sources listen; also `--http-host`."""
    port: Port = 8282
    """The port on which they listen; also `--http-port`. 0 takes a free port."""
    body_limit: Annotated[int, Field(gt=0)] = 16 * 2**20
    """The most bytes of one request."""
    hosts: list[str] = []
    """Host names under which senders reach the edge. Addresses, `localhost` and the name of the machine are
    always accepted; requests for other host names are refused (421).
    """
    tokens_file: Path | None = None
    """File of the [tokens](security.md#tokens) that senders may use. Required beyond loopback."""
    tls: Literal["proxy"] | Tls | None = None
    """`proxy` says that a proxy in front of the edge terminates TLS; a mapping names the edge's certificate.
    """


class Batch(_Part):
    """Size of a micro-batch: it ends when it has `rows`, or after `wait` milliseconds. Larger batches take
    less work, smaller batches have less latency.
    """

    rows: Annotated[int, Field(ge=1, le=100_000)] = 10_000
    """A micro-batch ends when it has so many rows."""
    wait: Annotated[int, Field(ge=1, le=1_000)] = 20
    """Or it ends after so many milliseconds. Larger batches take less work, smaller batches have less
    latency.
    """


class Progress(_Part):
    """Progress records of a shard: at most one in each partition in `every` milliseconds. With 0 there is one
    after each commit, twice a second.
    """

    # The joiner must hear of a shard well before the progress that it has is sent again (`REFRESH`).
    every: Annotated[int, Field(ge=0, le=20_000)] = 0
    """Least milliseconds between two progress records of a shard in one partition. With 0 there is one after
    each commit, twice a second.
    """


class Limits(_Part):
    """Limits of the data that waits on disk, in bytes: `journal` for readings that are not decided, `spool`
    for retained records while Kafka is away. `reserve` is kept free so that both can be emptied when the disk
    is full.
    """

    journal: Annotated[int, Field(gt=0)] = 2**30
    """The most bytes of readings on disk that are not decided."""
    spool: Annotated[int, Field(gt=0)] = 2**30
    """The most bytes of retained records on disk while Kafka is away."""
    reserve: Annotated[int, Field(ge=2**20)] = RESERVE
    """Bytes that are kept free, so that journal and spool can be emptied when the disk is full."""


class Overload(_Part):
    """The behaviour of an edge that can't keep up, or has no more room on disk while Kafka is away.

    Without `shed`, the sources are paused when the room is full. With it, retained tuples are dropped at
    random before that: from half of the room on an increasing fraction, from nine tenths on all of them.
    """

    shed: bool = False
    """Drop retained tuples at random under overload, instead of pausing the sources."""


class EdgeConfig(_Part):
    """The whole configuration. By default an edge takes every stream of the plan over HTTP."""

    name: Name = "edge"
    """Name of the edge, unique in the fleet. It is a part of the ids of its shards, so it must stay the same
    over restarts.
    """
    data: Path | None = None
    """Directory of journal, spool and last plan. By default that of `TAMIS_DATA`."""
    http: Http = Http()
    batch: Batch = Batch()
    progress: Progress = Progress()
    limits: Limits = Limits()
    overload: Overload = Overload()
    sources: list[AnySource] = [HttpSource(name="http", kind="http")]

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        names = [source.name for source in self.sources]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two sources are called {name!r}; shards are distinguished by these names")
        http: list[str | None] = []
        for source in self.sources:
            if isinstance(source, HttpSource):
                http += source.streams or [None]
        for stream in http:
            if http.count(stream) > 1 or (stream is not None and None in http):
                raise ValueError(f"two HTTP sources take {'every stream' if stream is None else stream!r}")
        return self

    @property
    def streams(self) -> frozenset[str] | None:
        """The raw streams that the sources can have; None if a source takes any stream."""
        found: set[str] = set()
        for source in self.sources:
            named = source.streams if isinstance(source, HttpSource) else source.stream and [source.stream]
            if not named:
                return None
            found.update(named)
        return frozenset(found)


def load_config(path: Path | None) -> EdgeConfig:
    """The configuration of a YAML file, or the default without a file. Paths in it are relative to the
    file.

    Raises:
        InputError: the file can't be read, or has mistakes; each is named with its line.
    """
    if path is None:
        return EdgeConfig()
    config = read_yaml(path, EdgeConfig, "services/edge/example.yaml")
    sources = [source.beside(path.parent) for source in config.sources]
    return config.model_copy(update={"sources": sources, "http": config.http.beside(path.parent)})


def override(
    config: EdgeConfig,
    name: str | None,
    data: Path | None,
    http_port: int | None,
    http_host: str | None = None,
) -> EdgeConfig:
    """The configuration with the values of the command line in place of the file's.

    Raises:
        InputError: the name can't be part of shard ids.
    """
    given = {"host": http_host, "port": http_port}
    http = config.http.model_copy(update={key: value for key, value in given.items() if value is not None})
    if name is not None:
        try:
            _check_name(name)
        except ValueError as error:
            raise InputError(f"{name!r} can't be an edge's name", where="--name", hint=str(error)) from None
    return config.model_copy(update={"name": name or config.name, "data": data or config.data, "http": http})
