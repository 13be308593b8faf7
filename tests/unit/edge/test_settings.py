"""The configuration file: what is right is taken, every mistake is named with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel

from tamis.errors import InputError
from tamis_edge.core.outbox import REFRESH
from tamis_edge.service import EdgeHttpSettings, protection
from tamis_edge.settings import (
    EdgeConfig,
    FileSource,
    HttpSource,
    KafkaSource,
    MqttSource,
    load_config,
    override,
)

EXAMPLE = Path(__file__).parents[3] / "services" / "edge" / "example.yaml"


def load(tmp_path: Path, text: str) -> EdgeConfig:
    path = tmp_path / "edge.yaml"
    path.write_text(text)
    return load_config(path)


def test_without_a_file_every_stream_comes_over_http() -> None:
    config = load_config(None)
    assert config.http.host == "127.0.0.1"
    (source,) = config.sources
    assert isinstance(source, HttpSource)
    assert source.streams is None


def test_the_example_is_right_and_has_every_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQTT_PASSWORD", "hush")
    monkeypatch.setenv("SCHEMA_REGISTRY_PASSWORD", "hush")
    config = load_config(EXAMPLE)
    assert {source.kind for source in config.sources} == {"http", "mqtt", "kafka", "file"}
    mqtt = next(source for source in config.sources if isinstance(source, MqttSource))
    assert mqtt.password is not None
    assert mqtt.password.get_secret_value() == "hush"
    kafka = next(source for source in config.sources if isinstance(source, KafkaSource))
    assert kafka.format == "avro" and kafka.schema_registry is not None
    assert kafka.schema_registry.url == "http://127.0.0.1:8081"
    assert "hush" not in repr(config)


def test_the_example_has_every_field_that_is_not_of_a_source() -> None:
    """With its default, except for names, paths and the protection of HTTP, which have none to show."""
    written = yaml.safe_load(EXAMPLE.read_text())
    assert set(written) == set(EdgeConfig.model_fields)
    for name, default in EdgeConfig():
        if isinstance(default, BaseModel):
            fields = default.model_dump()
            assert set(written[name]) == set(fields), name
            shown = {field: value for field, value in written[name].items() if isinstance(value, int)}
            assert shown == {field: fields[field] for field in shown}, name


def test_tokens_and_tls_come_from_the_file_or_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY_PASSWORD", "hush")
    files = "{certificate: a.pem, key: a.key, key_password: '${KEY_PASSWORD}'}"
    http = load(tmp_path, f"http: {{tokens_file: tokens.yaml, tls: {files}}}\n").http
    found = protection(http, EdgeHttpSettings())
    assert (found.tokens_file, found.tls) == (tmp_path / "tokens.yaml", None)
    assert (found.tls_certificate, found.tls_key) == (tmp_path / "a.pem", tmp_path / "a.key")
    assert found.tls_key_password is not None and found.tls_key_password.get_secret_value() == "hush"
    assert "hush" not in f"{http!r}{found!r}"
    monkeypatch.setenv("TAMIS_EDGE_TLS", "proxy")
    monkeypatch.setenv("TAMIS_EDGE_TOKENS_FILE", "/other.yaml")
    found = protection(http, EdgeHttpSettings())
    assert (found.tokens_file, found.tls, found.tls_certificate) == (Path("/other.yaml"), "proxy", None)
    monkeypatch.setenv("TAMIS_EDGE_TLS", "")
    assert protection(load(tmp_path, "http: {tls: proxy}\n").http, EdgeHttpSettings()).tls == "proxy"
    for wrong in ("{tls: true}", "{tls: {certificate: a.pem}}", "{tls: none}"):
        with pytest.raises(InputError, match=r"line 1: http\.tls"):
            load(tmp_path, f"http: {wrong}\n")


def test_an_empty_file_is_the_default(tmp_path: Path) -> None:
    assert load(tmp_path, "# nothing\n") == EdgeConfig()


def test_nothing_is_shed_unless_the_file_says_so(tmp_path: Path) -> None:
    assert not EdgeConfig().overload.shed
    assert load(tmp_path, "overload: {shed: true}\n").overload.shed


def test_progress_may_be_rarer_than_commits_but_not_rarer_than_its_refresh(tmp_path: Path) -> None:
    assert EdgeConfig().progress.every == 0
    assert load(tmp_path, "progress: {every: 5000}\n").progress.every * 1_000 < REFRESH
    with pytest.raises(InputError, match=r"line 1: progress\.every"):
        load(tmp_path, "progress: {every: 30000}\n")


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    config = load(
        tmp_path, "sources:\n  - {kind: file, name: f, stream: air, path: data/air.csv, speed: 60}\n"
    )
    (source,) = config.sources
    assert isinstance(source, FileSource)
    assert source.path == tmp_path / "data" / "air.csv"
    assert source.speed == 60


def test_the_authorities_of_a_schema_registry_are_relative_to_the_file(tmp_path: Path) -> None:
    registry = "{url: 'https://r', ca: ca.pem}"
    source = f"{{kind: kafka, name: k, topic: t, stream: s, format: avro, schema_registry: {registry}}}"
    (found,) = load(tmp_path, f"sources:\n  - {source}\n").sources
    assert isinstance(found, KafkaSource) and found.schema_registry is not None
    assert found.schema_registry.ca == tmp_path / "ca.pem"


MISTAKES = [
    (
        "sources:\n  - {kind: kafka, name: k, topic: t, stream: s, format: xml}\n",
        "line 2: sources.0.kafka.format",
    ),
    (
        "sources:\n  - {kind: kafka, name: k, topic: t, stream: s, schema_registry: {url: 'http://r'}}\n",
        "schema_registry is for format: avro or protobuf",
    ),
    ("name: [", "not YAML"),
    ("name: a/b\n", "line 1: name: use letters"),
    ("\nnane: x\n", "line 2: nane: there is no such field; did you mean 'name'?"),
    ("http:\n  prot: 1\n", r"line 2: http\.prot: there is no such field; did you mean 'port'\?"),
    (
        "sources:\n  - {kind: mqtt, name: m, host: h, topic: t, stream: s,\n     usrname: u}\n",
        r"line 3: sources\.0\.mqtt\.usrname: there is no such field; did you mean 'username'\?",
    ),
    (
        "sources:\n  - {kind: mqtt, name: m, host: h, topic: t, stream: s, tls: {autority: a.pem}}\n",
        "tls.autority: there is no such field; the fields are: ca, certificate, key, key_password",
    ),
    (
        "sources:\n  - {kind: mqt, name: m}\n",
        "line 2: sources.0: there is no kind 'mqt'; did you mean 'mqtt'?",
    ),
    ("http:\n  port: 99999\n", "line 2: http.port: Input should be less than or equal to 65535"),
    ("http:\n  port: '80'\n", "line 2: http.port"),
    (
        "sources:\n  - kind: http\n    name: a\n  - kind: http\n    name: a\n    streams: [x]\n",
        "two sources are called 'a'",
    ),
    (
        "sources:\n  - {kind: http, name: a}\n  - {kind: http, name: b, streams: [x]}\n",
        "two HTTP sources take every stream|take 'x'",
    ),
    ("sources:\n  - kind: fax\n    name: a\n", "line 2: sources.0"),
    (
        "sources:\n  - kind: file\n    name: a\n    path: x.csv\n",
        "line 2: sources.0.file.stream: Field required",
    ),
    (
        "sources:\n  - kind: file\n    name: a\n    path: x.csv\n    stream: s\n    speed: 0\n",
        "line 6: sources.0.file.speed",
    ),
    ("sources:\n  - kind: mqtt\n    name: a\n    topic: 's/{stream}'\n    stream: x\n", "but not both"),
    (
        "sources:\n  - kind: mqtt\n    name: a\n    topic: s\n    stream: x\n    password: hush\n",
        r"write \$\{NAME\}",
    ),
    (
        "sources:\n  - kind: mqtt\n    name: a\n    topic: s\n    stream: x\n    password: ${NOT_SET}\n",
        "NOT_SET is not set",
    ),
]


@pytest.mark.parametrize(("text", "words"), MISTAKES, ids=[words for _, words in MISTAKES])
def test_mistakes_are_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as error:
        load(tmp_path, text)
    assert "edge.yaml" in str(error.value)
    assert "hush" not in str(error.value)


def test_several_mistakes_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        load(tmp_path, "name: '?'\nbatch:\n  rows: 0\n")
    assert "line 1: name" in str(error.value)
    assert "line 3: batch.rows" in str(error.value)


def test_the_command_line_comes_first(tmp_path: Path) -> None:
    config = override(EdgeConfig(name="a"), "b", tmp_path, 0)
    assert (config.name, config.data, config.http.port) == ("b", tmp_path, 0)
    with pytest.raises(InputError, match="--name"):
        override(config, "b/c", None, None)
