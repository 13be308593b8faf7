"""The schema of the chart's values refuses texts that Kubernetes, or a service, would refuse later."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator
from tests.helm.chart import REPOSITORY
from tests.unit.repository.test_helm_chart import SCHEMA, VALUES, merged

VALIDATOR = Draft7Validator(SCHEMA)
SERVICES = ("registry", "edge", "joiner", "alerts")

MEMORY = ("128Mi", "1Gi", "1.5Gi", "500M", "1e9", "2E", 1073741824)
NO_MEMORY = ("abc", "", "1gi", "1 Gi", "512m", "1GB", "-1Gi", "Gi", "1Gib", "1_000", "0x10", True, -1, None)
CPU = ("1", "0.5", "250m", "1.5", 2, 0.25)
NO_CPU = ("abc", "", "1Gi", "250 m", "0.5m", "-1", "1,5", "1cpu", "0.0001", True, -0.5, None)


def at(path: str, value: Any) -> dict[str, Any]:
    """Values that set one of them."""
    for part in reversed(path.split(".")):
        value = {part: value}
    found: dict[str, Any] = value
    return found


def fits(path: str, value: Any) -> bool:
    return VALIDATOR.is_valid(merged(VALUES, at(path, value)))


RESOURCES = [f"{service}.resources.{part}" for service in SERVICES for part in ("limits", "requests")]


@pytest.mark.parametrize("path", RESOURCES)
def test_quantities_of_resources_are_those_of_kubernetes(path: str) -> None:
    for name in ("memory", "ephemeral-storage", "hugepages-2Mi"):
        assert [value for value in MEMORY if not fits(f"{path}.{name}", value)] == [], name
        assert [value for value in NO_MEMORY if fits(f"{path}.{name}", value)] == [], name
    assert [value for value in CPU if not fits(f"{path}.cpu", value)] == []
    assert [value for value in NO_CPU if fits(f"{path}.cpu", value)] == []
    assert fits(path, {"nvidia.com/gpu": 1}) and not fits(path, {"nvidia.com/gpu": "1.5"})
    for name in ("cpus", "mem", "Memory"):
        assert not fits(f"{path}.{name}", "1"), name


@pytest.mark.parametrize("path", ["edge.persistence.size", "joiner.persistence.size"])
def test_sizes_of_volumes(path: str) -> None:
    assert all(fits(path, value) for value in ("5Gi", "100M", "1.5Ti", "1e12", "2Ei"))
    assert not any(fits(path, value) for value in (*NO_MEMORY, "0", "0Gi", "0.0Gi", "5 Gi", "5GiB"))


@pytest.mark.parametrize(
    ("path", "right", "wrong"),
    [
        (
            "serviceMonitor.interval",
            ["15s", "1m", "1m30s", "500ms", "1h"],
            ["15", "abc", "", "1.5m", "15 s", "s"],
        ),
        ("joiner.memory", ["2g", "512m"], ["2Gi", "2", "0g", "abc"]),
        ("joiner.spark.executorMemory", ["1g"], ["1Gi", ""]),
        ("joiner.spark.executorMemoryOverhead", ["1g"], ["1Gi", ""]),
        ("edge.maxUnavailable", [1, "25%", "100%"], [0, "0%", "101%", "1", "abc", "%"]),
        ("alerts.maxUnavailable", [1, "25%"], [0, "0%", "200%", "abc"]),
        ("registry.service.port", [443], [0, 65536, "443", "http"]),
        ("edge.service.port", [443], [0, 65536, "8282"]),
        ("edge.hostPort", [0, 8282], [-1, 65536, "8282"]),
        ("joiner.spark.driverPort", [7078], [0, 70000, "7078"]),
        ("joiner.spark.blockManagerPort", [7079], [0, 70000, "7079"]),
        ("networkPolicy.kafkaPorts", [[], [9092, 9093]], [[0], [65536], ["9092"], 9092]),
        ("networkPolicy.apiServerPorts", [[443]], [[0], [65536], ["https"]]),
        (
            "kafka.bootstrap",
            ["kafka:9092", "a.example:1,b.example:65535", "[::1]:9092"],
            [
                "kafka",
                "kafka:",
                "kafka:0",
                "kafka:65536",
                "kafka:99999",
                "http://kafka:9092",
                "a:1, b:2",
                "a:1,",
            ],
        ),
        (
            "kafka.sasl.oauthTokenUrl",
            ["", "https://id.example/token"],
            ["id.example", "https://", "ftp://id.example"],
        ),
        (
            "prometheusRule.runbookBase",
            ["", "https://wiki.example/tamis"],
            ["wiki.example", "https://", "http:// x"],
        ),
        (
            "joiner.checkpoint",
            ["", "s3a://bucket/x", "hdfs://nn:8020/x"],
            ["bucket", "/data", "s3a://", "s3a://a b"],
        ),
        (
            "image.registry",
            ["", "registry.example.com/tamis", "localhost:5000", "localhost:5000/a/b/"],
            ["https://registry.example.com", "registry example", "registry.example.com//x", "a:port", "-a"],
        ),
        ("image.tag", ["", "1.2.3", "v1_x"], ["a b", ":1", "-1", "sha256:abc", "x" * 129, "a/b"]),
        ("clusterDomain", ["cluster.local"], ["", "Cluster.local", "a b", ".local", "local."]),
        ("nameOverride", ["", "plant"], ["Plant", "a_b", "-a", "a-"]),
        ("fullnameOverride", ["", "plant-1"], ["Plant", "1plant", "a.b", "-a", "a-"]),
        ("imagePullSecrets", [["login"]], [[""], ["A"], ["a_b"]]),
        ("functions", ["", "plant.functions", "a,b.c", "a b"], ["a-b", "1a", "a.py/b", ",a"]),
        (
            "registry.hosts",
            [["tamis.example.com"]],
            [["https://tamis.example.com"], ["a b"], [""], ["a:1"], ["tamis"]],
        ),
        (
            "commonLabels",
            [{"example.com/team": "plant"}],
            [{"a b": "x"}, {"team": "a b"}, {"team": "x" * 64}],
        ),
        ("edge.nodeSelector", [{"example.com/disk": "ssd"}], [{"disk": "s s"}, {"a/b/c": "x"}]),
        ("registry.podAnnotations", [{"example.com/note": "any text"}], [{"a note": "x"}]),
        ("edge.persistence.storageClass", ["", "fast"], ["Fast", "a_b"]),
        ("edge.hostPath.path", ["/var/lib/tamis"], ["var/lib", "", "/a/../b"]),
        (
            "edge.extraEnv",
            [[{"name": "TZ", "value": "a b"}]],
            [[{"name": "T Z", "value": ""}], [{"name": "1A"}]],
        ),
        ("podSecurityContext.runAsUser", [10001], ["abc", "10001", -1, 1.5]),
        ("podSecurityContext.fsGroup", [0, 10001], ["abc"]),
        ("podSecurityContext.runAsNonRoot", [True], ["yes", "true"]),
        ("containerSecurityContext.readOnlyRootFilesystem", [True, False], ["yes", 1]),
        (
            "registry.tolerations",
            [[], [{"key": "example.com/gateway", "operator": "Exists", "effect": "NoSchedule"}]],
            [
                [{"effect": "Never"}],
                [{"operator": "exists"}],
                [{"key": "a b"}],
                [{"tolerationSeconds": "60"}],
                [{"keys": "a"}],
            ],
        ),
        ("joiner.priorityClassName", ["", "plant"], ["Plant", "a b"]),
        ("alerts.resources.claims", [[{"name": "gpu"}]], [[{}], ["gpu"]]),
    ],
)
def test_texts_with_a_format(path: str, right: list[Any], wrong: list[Any]) -> None:
    assert [value for value in right if not fits(path, value)] == []
    assert [value for value in wrong if fits(path, value)] == []


def test_the_examples_of_configurations_are_values() -> None:
    for service in ("edge", "alerts"):
        text = (REPOSITORY / f"services/{service}/example.yaml").read_text()
        assert fits(f"{service}.config", yaml.safe_load(text)), service


@pytest.mark.parametrize("service", SERVICES)
def test_repositories_and_digests_of_images(service: str) -> None:
    path = f"{service}.image"
    for right in ("tamis-edge", "ghcr.io/plant/tamis-edge", "localhost:5000/tamis"):
        assert fits(f"{path}.repository", right)
    for wrong in ("", "Tamis", "tamis:1", "https://ghcr.io/tamis", "a b", "tamis@sha256:abc", "/tamis"):
        assert not fits(f"{path}.repository", wrong), wrong
    assert fits(f"{path}.digest", "") and fits(f"{path}.digest", f"sha256:{'0a' * 32}")
    for wrong in ("sha256:abc", "0a" * 32, f"sha256:{'0A' * 32}", f"sha512:{'0a' * 32}"):
        assert not fits(f"{path}.digest", wrong), wrong


def texts(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every part of the schema that takes a text, with its path."""
    types = schema.get("type", [])
    if "string" in ([types] if isinstance(types, str) else types):
        yield path, schema
    for name, part in schema.get("properties", {}).items():
        yield from texts(part, f"{path}.{name}" if path else name)
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), Mapping):
            yield from texts(schema[word], f"{path}.*")
    for word in ("anyOf", "oneOf", "allOf"):
        for part in schema.get(word, []):
            yield from texts(part, path)


def test_every_text_has_a_format_or_is_free() -> None:
    found = [*texts(SCHEMA)]
    for name, part in SCHEMA["definitions"].items():
        found += [(f"{name}{path}", text) for path, text in texts(part)]
    without = {path for path, text in found if not {"pattern", "enum"} & text.keys()}
    assert {
        path for path, text in found if path in without and text.get("description") != "Any text"
    } == set()
