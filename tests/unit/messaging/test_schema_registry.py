"""The client of a schema registry, against a server that speaks its API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fixtures.schema_registry import SchemaRegistryServer

from tamis.errors import RefusedError, UnavailableError
from tamis.messaging.dead_letters import Reason
from tamis.messaging.schemas.registry import SchemaRegistry, UnusableSchema, WriterSchema
from tamis.settings.schema_registry import SchemaRegistryAccess, SchemaRegistrySettings


@pytest.fixture
def server() -> Iterator[SchemaRegistryServer]:
    with SchemaRegistryServer() as found:
        yield found


@pytest.fixture
def registry(server: SchemaRegistryServer) -> Iterator[SchemaRegistry]:
    found = SchemaRegistry(SchemaRegistryAccess(url=server.url))
    yield found
    found.close()


def schema(*names: str, default: bool = True) -> str:
    fields = [
        {"name": name, "type": ["null", "double"], **({"default": None} if default else {})} for name in names
    ]
    return json.dumps({"type": "record", "name": "Reading", "fields": fields})


def test_a_schema_is_registered_once_and_found_by_its_number(
    registry: SchemaRegistry, server: SchemaRegistryServer
) -> None:
    number = registry.register("air-value", "AVRO", schema("a"))
    assert registry.register("air-value", "AVRO", schema("a")) == number
    assert registry.register("surface-value", "AVRO", schema("a")) == number
    assert registry.register("air-value", "AVRO", schema("a", "b")) != number
    found = registry.schema(number, "AVRO")
    assert isinstance(found, WriterSchema)
    assert (found.number, found.kind, json.loads(found.text)) == (number, "AVRO", json.loads(schema("a")))
    assert len(server.subjects["air-value"]) == 2


def test_what_a_registry_refuses_is_said(registry: SchemaRegistry) -> None:
    registry.register("air-value", "AVRO", schema("a"))
    with pytest.raises(RefusedError, match=r"isn't compatible with its earlier versions.*without a default"):
        registry.register("air-value", "AVRO", schema("a", "b", default=False))
    with pytest.raises(RefusedError, match="isn't accepted"):
        registry.register("air-value", "AVRO", "{}")


def test_a_schema_that_is_not_there_or_of_another_kind_is_unusable(registry: SchemaRegistry) -> None:
    number = registry.register("air-value", "AVRO", schema("a"))
    absent, other = registry.schema(99, "AVRO"), registry.schema(number, "PROTOBUF")
    assert isinstance(absent, UnusableSchema) and absent.reason is Reason.UNKNOWN_SCHEMA
    assert isinstance(other, UnusableSchema) and other.reason is Reason.UNDECODABLE


def test_a_registry_that_is_away_is_no_answer(registry: SchemaRegistry, server: SchemaRegistryServer) -> None:
    server.away = True
    with pytest.raises(UnavailableError, match="no usable answer: Service Unavailable"):
        registry.schema(1, "AVRO")
    with pytest.raises(UnavailableError):
        registry.register("air-value", "AVRO", schema("a"))
    gone = SchemaRegistry(SchemaRegistryAccess(url="http://127.0.0.1:1"))
    with pytest.raises(UnavailableError, match="check its address"):
        gone.schema(1, "AVRO")
    gone.close()


def test_a_server_that_is_no_schema_registry_is_no_answer(server: SchemaRegistryServer) -> None:
    other = SchemaRegistry(SchemaRegistryAccess(url=f"{server.url}/elsewhere"))
    with pytest.raises(UnavailableError):
        other.schema(1, "AVRO")
    other.close()


@pytest.mark.parametrize("password", ["wrong", "right"])
def test_the_password(password: str) -> None:
    with SchemaRegistryServer("edge", "right") as server:
        access = SchemaRegistryAccess.model_validate(
            {"url": server.url, "username": "edge", "password": password}
        )
        registry = SchemaRegistry(access)
        if password == "right":
            assert isinstance(registry.schema(1, "AVRO"), UnusableSchema)
        else:
            with pytest.raises(UnavailableError, match="it refuses the user or the password") as caught:
                registry.schema(1, "AVRO")
            assert "wrong" not in str(caught.value)
        registry.close()
        assert password not in repr(access)


def test_the_password_may_be_in_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("hush\n")
    file.chmod(0o600)
    monkeypatch.setenv("TAMIS_SCHEMA_REGISTRY_URL", "https://schemas:8081")
    monkeypatch.setenv("TAMIS_SCHEMA_REGISTRY_USERNAME", "edge")
    monkeypatch.setenv("TAMIS_SCHEMA_REGISTRY_PASSWORD_FILE", str(file))
    access = SchemaRegistrySettings().access
    assert access is not None and access.password is not None
    assert access.password.get_secret_value() == "hush"
    assert "hush" not in repr(access)


def test_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    assert SchemaRegistrySettings().access is None
    monkeypatch.setenv("TAMIS_SCHEMA_REGISTRY_URL", "https://schemas:8081")
    monkeypatch.setenv("TAMIS_SCHEMA_REGISTRY_USERNAME", "edge")
    with pytest.raises(ValueError, match="belong together"):
        SchemaRegistrySettings()
    monkeypatch.setenv("TAMIS_SCHEMA_REGISTRY_PASSWORD", "secret")
    access = SchemaRegistrySettings().access
    assert access is not None
    assert access.client_config()["basic.auth.user.info"] == "edge:secret"
    for url in ("schemas:8081", "ftp://schemas", "https://edge:secret@schemas"):
        monkeypatch.setenv("TAMIS_SCHEMA_REGISTRY_URL", url)
        with pytest.raises(ValueError, match="address"):
            SchemaRegistrySettings()
