"""Readings of a Kafka source wait for their schemas, and no reading is lost for a registry that is away."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from pydantic import SecretStr
from tests.unit.edge.plans import air, topic

from tamis.errors import InputError, UnavailableError
from tamis.messaging.dead_letters import Reason
from tamis.messaging.schemas.registry import MOST_CACHED, UnusableSchema, WriterSchema
from tamis.messaging.schemas.wire_format import Kind, header
from tamis.settings import KafkaSettings
from tamis_edge.core.commit import Commit
from tamis_edge.decode.decoder import Decoder
from tamis_edge.settings import EdgeConfig, KafkaSource, SchemaRegistry
from tamis_edge.source_fields import FieldMap
from tamis_edge.sources.base import Source
from tamis_edge.sources.kafka import schemas as module
from tamis_edge.sources.kafka.schemas import ABSENT_FOR, FetchedSchemas
from tamis_edge.sources.kafka.shard import KafkaShard
from tamis_edge.sources.kafka.topic import KafkaTopic
from tamis_edge.sources.opening import KafkaAccess, open_sources
from tamis_edge.storage.journal import Journal

SOURCE = KafkaSource(name="k", kind="kafka", topic="raw", stream="air", format="avro")
TEXT = '{"type": "record", "name": "r", "fields": [{"name": "ok", "type": "boolean"}]}'


@dataclass
class Registry:
    """Answers at once; while `away`, it doesn't answer. Schemas from 900 on don't exist."""

    away: bool = False
    asked: list[int] = field(default_factory=list)
    closed: bool = False

    def schema(self, number: int, kind: Kind) -> WriterSchema | UnusableSchema:
        self.asked.append(number)
        if self.away:
            raise UnavailableError("no usable answer", where="schema registry at http://schemas")
        if number >= 900:
            return UnusableSchema(number, Reason.UNKNOWN_SCHEMA, f"there is no schema {number}")
        return WriterSchema(number, kind, TEXT)

    def close(self) -> None:
        self.closed = True


@dataclass
class Clock:
    """Monotonic seconds."""

    seconds: float = 0.0


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def schemas(registry: Registry, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[FetchedSchemas]:
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.01)
    found = FetchedSchemas(registry, "AVRO", clock=lambda: clock.seconds)
    yield found
    found.close()
    wait(lambda: registry.closed or found._thread is None)


@pytest.fixture
def shard(schemas: FetchedSchemas) -> Iterator[KafkaShard]:
    """A partition that nobody fills but the test."""
    owner = KafkaTopic(
        SOURCE, KafkaSettings(bootstrap="127.0.0.1:1"), lambda _: None, lambda _: None, schemas=schemas
    )
    shard = KafkaShard(owner, SOURCE, 0, Commit(), time.monotonic, schemas=schemas)
    owner._shards[0] = shard
    shard.started, shard.paused = True, False
    yield shard
    owner.close()


def wait(condition: Callable[[], Any]) -> Any:
    until = time.monotonic() + 10
    while not (found := condition()):
        assert time.monotonic() < until
        time.sleep(0.002)
    return found


def put(shard: KafkaShard, *numbers: int) -> None:
    first = shard.next or 0
    values = [header(number) + b"\1" for number in numbers]
    shard.put(list(range(first, first + len(numbers))), values, 5)


def test_readings_wait_for_their_schemas_in_order(shard: KafkaShard, registry: Registry) -> None:
    put(shard, 7, 7, 8, 7)
    assert shard.poll(100, 5) is None
    assert not shard.caught_up
    found = wait(lambda: shard.poll(100, 5))
    assert found.offsets.tolist() == [0, 1]
    found = wait(lambda: shard.poll(100, 5))
    assert found.offsets.tolist() == [2, 3]
    assert (shard.waiting, shard.bytes, shard.buffer) == (0, 0, type(shard.buffer)())
    assert registry.asked == [7, 8]
    put(shard, 8, 7)
    assert shard.poll(1, 5) is not None
    assert shard.poll(1, 5) is not None


def test_a_registry_that_is_away_loses_nothing(
    shard: KafkaShard, schemas: FetchedSchemas, registry: Registry
) -> None:
    registry.away = True
    put(shard, 7)
    assert shard.poll(100, 5) is None
    wait(lambda: len(registry.asked) > 2)
    assert shard.poll(100, 5) is None
    assert schemas.trouble == "schema registry at http://schemas: no usable answer"
    registry.away = False
    found = wait(lambda: shard.poll(100, 5))
    assert found.offsets.tolist() == [0]
    assert schemas.trouble is None


def test_readings_without_a_usable_schema_are_dead_letters(shard: KafkaShard) -> None:
    put(shard, 900)
    shard.put([1], [b"{}"], 5)
    found = wait(lambda: shard.poll(100, 5))
    decoded = found.decode(Decoder(air([topic([])]), FieldMap()), 5)
    assert [(one.row, one.reason) for one in decoded.offences] == [
        (0, Reason.UNKNOWN_SCHEMA),
        (1, Reason.UNDECODABLE),
    ]
    assert [found.payload(row) for row in range(2)] == [header(900) + b"\1", b"{}"]


def test_a_schema_that_was_absent_is_asked_for_again(
    schemas: FetchedSchemas, registry: Registry, clock: Clock
) -> None:
    payload = header(900)
    wait(lambda: schemas.find([payload])[0])
    clock.seconds += ABSENT_FOR
    assert schemas.find([payload])[0] == 0
    wait(lambda: schemas.find([payload])[0])
    assert registry.asked == [900, 900]


def test_the_schemas_that_are_kept_are_bounded(schemas: FetchedSchemas) -> None:
    for number in range(MOST_CACHED):
        schemas._keep(number, WriterSchema(number, "AVRO", TEXT))
    schemas.find([header(0)])  # used last
    schemas._keep(MOST_CACHED, WriterSchema(MOST_CACHED, "AVRO", TEXT))
    assert len(schemas._known) == MOST_CACHED
    assert 0 in schemas._known and 1 not in schemas._known


def test_more_schemas_than_are_kept_come_through(
    shard: KafkaShard, schemas: FetchedSchemas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_CACHED", 2)
    numbers = [1, 2, 3, 4, 5, 6, 1, 3, 5]
    put(shard, *numbers)
    came: list[int] = []
    while len(came) < len(numbers):
        came += wait(lambda: shard.poll(100, 5)).offsets.tolist()
    assert came == list(range(len(numbers)))


def test_a_source_without_schemas_has_no_thread(shard: KafkaShard) -> None:
    assert not any(thread.name == "schemas" for thread in threading.enumerate())


def opened(source: KafkaSource) -> list[Source]:
    """The sources of an edge that has this one."""
    access = KafkaAccess(KafkaSettings(bootstrap="127.0.0.1:1"), lambda _: None, lambda _, __: None)
    journal = cast(Journal, None)  # Kafka sources have no readings in it
    return open_sources(
        EdgeConfig(sources=[source]),
        journal,
        plan=lambda: None,
        planned=lambda _: None,
        wake=lambda: None,
        kafka=access,
    )


def test_a_source_with_schemas_needs_a_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="readings with the format avro need a schema registry"):
        opened(SOURCE)
    monkeypatch.setenv("TAMIS_SCHEMA_REGISTRY_URL", "schemas:8081")
    with pytest.raises(InputError, match="must begin with http"):
        opened(SOURCE)
    monkeypatch.setenv("TAMIS_SCHEMA_REGISTRY_URL", "http://schemas:8081")
    (found,) = opened(SOURCE)
    found.close()


def test_a_wrong_registry_of_a_source_is_named_without_its_password() -> None:
    own = SchemaRegistry.model_construct(
        url="ftp://schemas", username="edge", password=SecretStr("hush"), ca=None
    )
    with pytest.raises(InputError, match="`schema_registry` of the source k") as caught:
        opened(SOURCE.model_copy(update={"schema_registry": own}))
    assert "hush" not in str(caught.value)


def test_an_edge_without_schemas_loads_none_of_their_libraries() -> None:
    code = (
        "import sys, tamis_edge.service, tamis_edge.sources.kafka.topic\n"
        "names = ('fastavro', 'google.protobuf', 'confluent_kafka.schema_registry', 'httpx2')\n"
        "assert not [name for name in names if name in sys.modules]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
