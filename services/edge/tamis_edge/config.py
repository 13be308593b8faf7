"""The edge's configuration file: YAML, every field checked, each mistake named with its line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from tamis.errors import InputError
from tamis.recordings.json_values import TimeUnit
from tamis.settings.file import Secret, read_yaml
from tamis_edge.decode.decoder import FieldMap

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
STREAM = "{stream}"


def _check_name(name: str) -> str:
    # Names are parts of shard ids, `<stream>:<edge>/<source>`, which must read one way only.
    if not _NAME.fullmatch(name):
        raise ValueError("use letters, digits, dots, dashes and underscores only")
    return name


Name = Annotated[str, AfterValidator(_check_name)]
Port = Annotated[int, Field(ge=0, le=65535)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _Source(_Part):
    name: Name
    map: dict[str, str] = {}  # column: path of its field in a reading, the column's own name where not given
    time_unit: TimeUnit = "us"  # of TIMESTAMPs that are numbers

    @property
    def fields(self) -> FieldMap:
        """How readings become columns."""
        return FieldMap(self.map, self.time_unit)


class HttpSource(_Source):
    """`POST /v1/streams/{stream}`; without `streams`, every stream of the plan."""

    kind: Literal["http"]
    streams: list[str] | None = None


class MqttSource(_Source):
    """A subscription with acknowledged delivery. `{stream}` as a level of `topic` stands for the stream's
    name.
    """

    kind: Literal["mqtt"]
    host: str = "127.0.0.1"
    port: Port = 1883
    topic: str
    stream: str | None = None
    protocol: Literal["3.1.1", "5"] = "3.1.1"
    username: str | None = None
    password: Secret | None = None
    tls: bool = False

    @model_validator(mode="after")
    def _one_way_to_the_stream(self) -> Self:
        if (STREAM in self.topic.split("/")) == (self.stream is not None):
            raise ValueError("name the stream, or write {stream} as one level of the topic: just one of both")
        return self


class KafkaSource(_Source):
    """A topic of readings; edges with the same `group` share its partitions."""

    kind: Literal["kafka"]
    topic: str
    stream: str
    group: str | None = None
    bootstrap: str | None = None  # another cluster than the fleet's


class FileSource(_Source):
    """A recording, replayed once. `speed`: event time over wall time, or `max`."""

    kind: Literal["file"]
    path: Path
    stream: str
    format: Literal["csv", "ndjson", "parquet"] | None = None  # by the path's suffix where not given
    speed: Annotated[float, Field(gt=0)] | Literal["max"] = "max"


AnySource = Annotated[HttpSource | MqttSource | KafkaSource | FileSource, Field(discriminator="kind")]


class Http(_Part):
    """Where the HTTP sources listen."""

    host: str = "127.0.0.1"
    port: Port = 8282
    body_limit: Annotated[int, Field(gt=0)] = 16 * 2**20  # bytes of one request
    hosts: list[str] = []  # names with a dot under which senders reach it


class Batch(_Part):
    """A micro-batch ends when it has `rows`, or after `wait` milliseconds: latency against work saved per
    batch.
    """

    rows: Annotated[int, Field(ge=1, le=100_000)] = 10_000
    wait: Annotated[int, Field(ge=1, le=1_000)] = 20


class Limits(_Part):
    """What may wait on disk, in bytes: readings before they are decided, and retained records while Kafka is
    away.
    """

    journal: Annotated[int, Field(gt=0)] = 2**30
    spool: Annotated[int, Field(gt=0)] = 2**30


class Overload(_Part):
    """What happens where the edge can't keep up, or Kafka is away for longer than there is room on disk.

    Without `shed` sources are paused once the room is full. With it retained tuples are dropped at random
    before that: more and more of them from half of the room on, all of them from nine tenths on.
    """

    shed: bool = False


class EdgeConfig(_Part):
    """All of it; the defaults are an edge that takes every stream of the plan over HTTP."""

    name: Name = "edge"
    data: Path | None = None
    http: Http = Http()
    batch: Batch = Batch()
    limits: Limits = Limits()
    overload: Overload = Overload()
    sources: list[AnySource] = [HttpSource(name="http", kind="http")]

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        names = [source.name for source in self.sources]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two sources are called {name!r}; shards are told apart by these names")
        http: list[str | None] = []
        for source in self.sources:
            if isinstance(source, HttpSource):
                http += source.streams or [None]
        for stream in http:
            if http.count(stream) > 1 or (stream is not None and None in http):
                raise ValueError(f"two HTTP sources take {'every stream' if stream is None else stream!r}")
        return self


def load_config(path: Path | None) -> EdgeConfig:
    """The configuration of a YAML file, the default one without a file; paths in it are relative to it.

    Raises:
        InputError: the file can't be read or says what it must not; every mistake with its line.
    """
    if path is None:
        return EdgeConfig()
    config = read_yaml(path, EdgeConfig, "services/edge/example.yaml")
    sources = [
        source.model_copy(update={"path": path.parent / source.path})
        if isinstance(source, FileSource)
        else source
        for source in config.sources
    ]
    return config.model_copy(update={"sources": sources})


def override(
    config: EdgeConfig,
    name: str | None,
    data: Path | None,
    http_port: int | None,
    http_host: str | None = None,
) -> EdgeConfig:
    """The configuration with what the command line says in place of the file's.

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
