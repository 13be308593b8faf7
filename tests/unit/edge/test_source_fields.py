"""Texts of a source's configuration that would match nothing are refused when the edge starts."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tamis.errors import InputError
from tamis_edge.settings import AnySource, MqttSource, load_config


def load(folder: Path, **source: object) -> AnySource:
    path = folder / "edge.yaml"
    path.write_text(yaml.safe_dump({"sources": [{"name": "s", **source}]}))
    (found,) = load_config(path).sources
    return found


REFUSED = [
    ("tele/{station}/SENSOR", r"only {stream} may stand in braces.*; write 'tele/\+/SENSOR'"),
    ("tele/{stream}x/SENSOR", r"write 'tele/\+/SENSOR'"),
    ("tele/${x}", r"write 'tele/\+'"),
    ("a/#/b", "# must be the last level, and all of it: 'a/#'"),
    ("a/b#", "# must be the last level"),
    ("a+", r"\+ must be a whole level: '\+'"),
    ("a/b+/c", r"\+ must be a whole level: 'a/\+/c'"),
    ("tele/*/SENSOR", r"\* has no meaning in MQTT: write 'tele/\+/SENSOR'"),
    ("tele/**", "write 'tele/#'"),
    ("", "the topic is empty"),
    ("$share/g", r"no shared subscription: write \$share/GROUP/TOPIC"),
    ("$share//a", "no shared subscription"),
    ("a" * 65_536, "at most 65,535 bytes"),
]


@pytest.mark.parametrize(("topic", "words"), REFUSED, ids=[topic[:20] for topic, _ in REFUSED])
def test_a_filter_that_mqtt_does_not_have_is_refused(tmp_path: Path, topic: str, words: str) -> None:
    with pytest.raises(InputError, match=rf"line \d+: sources\.0\.mqtt\.topic: .*{words}"):
        load(tmp_path, kind="mqtt", topic=topic, stream="air")


def test_the_stream_is_named_once(tmp_path: Path) -> None:
    for topic, stream, words in (
        ("{stream}/{stream}", None, "{stream} stands in 2 levels"),
        ("tele/{stream}", "air", "but not both"),
        ("tele/+", None, "but not both"),
    ):
        with pytest.raises(InputError, match=words):
            load(tmp_path, kind="mqtt", topic=topic, stream=stream)


@pytest.mark.parametrize("topic", ["#", "+", "a/#", "+/b/+", "/a", "a//b", "$SYS/x", "$share/g/a/+", "é/ü b"])
def test_filters_of_mqtt_are_accepted(tmp_path: Path, topic: str) -> None:
    found = load(tmp_path, kind="mqtt", topic=topic, stream="air")
    assert isinstance(found, MqttSource)
    assert found.topic == topic


@pytest.mark.parametrize(
    "topic", ["^raw.*", "raw.*", "a,b", "a/b", "{stream}", "", "..", "x" * 250, "raw air"]
)
def test_a_pattern_or_list_of_kafka_topics_is_refused(tmp_path: Path, topic: str) -> None:
    with pytest.raises(InputError, match=r"kafka\.topic: .* is no name of a topic: .* add a source for each"):
        load(tmp_path, kind="kafka", topic=topic, stream="air")


@pytest.mark.parametrize("kind", ["mqtt", "kafka"])
@pytest.mark.parametrize("stream", ["{stream}", "air*", "a,b", "tamis.stream.air.1", ""])
def test_a_text_that_is_no_name_of_a_stream_is_refused(tmp_path: Path, kind: str, stream: str) -> None:
    with pytest.raises(InputError, match=rf"{kind}\.stream: .* is no name of a stream"):
        load(tmp_path, kind=kind, topic="t", stream=stream)


def test_streams_of_http_and_files_are_names_too(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"'\*' is no name of a stream"):
        load(tmp_path, kind="http", streams=["air", "*"])
    with pytest.raises(InputError, match=r"'\*' is no name of a stream"):
        load(tmp_path, kind="file", path="x.csv", stream="*")


@pytest.mark.parametrize("host", ["mqtt://broker", "broker:1883", "broker/path", "user@broker", "a b", ""])
def test_a_host_is_a_name_or_an_address(tmp_path: Path, host: str) -> None:
    with pytest.raises(InputError, match=r"mqtt\.host: .* is no host: write its name or address alone"):
        load(tmp_path, kind="mqtt", topic="t", stream="air", host=host)


@pytest.mark.parametrize("host", ["broker", "10.0.0.1", "::1", "fe80::1%eth0", "b-1.example.org"])
def test_names_and_addresses_are_hosts(tmp_path: Path, host: str) -> None:
    found = load(tmp_path, kind="mqtt", topic="t", stream="air", host=host)
    assert isinstance(found, MqttSource)
    assert found.host == host


@pytest.mark.parametrize(
    ("path", "words"),
    [("values[0].v", "an element of an array"), ("a.*", "several values"), ("a..b", "several values")],
)
def test_a_path_that_names_no_field_is_refused(tmp_path: Path, path: str, words: str) -> None:
    with pytest.raises(InputError, match=rf"line \d+: sources\.0\.mqtt\.map\.temp: .*{words}"):
        load(tmp_path, kind="mqtt", topic="t", stream="air", map={"temp": path})


def test_brackets_need_no_quotes_in_yaml(tmp_path: Path) -> None:
    path = tmp_path / "edge.yaml"
    path.write_text(
        "sources:\n  - kind: http\n    name: s\n    map:\n"
        '      a: ["1-0:16.7.0"]\n      b: data["a.b"]\n      c: $.data.x\n      d: [\'it is "so"\']\n'
    )
    (source,) = load_config(path).sources
    steps = [source.fields.path(name).steps for name in "abcd"]
    assert steps == [("1-0:16.7.0",), ("data", "a.b"), ("data", "x"), ('it is "so"',)]
    path.write_text("sources:\n  - {kind: http, name: s, map: {a: [x, y]}}\n")
    with pytest.raises(InputError, match=r"sources\.0\.http\.map\.a"):
        load_config(path)
