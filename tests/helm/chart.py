"""The chart's files: its values and examples, the copies of other files, and the kept renderings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from tests.helm.values_table import table

from tamis.messaging.topics import SPECS
from tamis_registry.kafka.topic_admin import topic_config

REPOSITORY = Path(__file__).resolve().parents[2]
CHART = REPOSITORY / "helm" / "tamis"
README = CHART / "README.md"
# The oldest and the newest version of Kubernetes that the objects are checked against.
VERSIONS = ("1.27", "1.37")
# Release and namespace of the kept renderings.
RELEASE, NAMESPACE = "tamis", "plant"

_TABLE = re.compile(r"(?<=<!-- values -->\n).*(?=<!-- end of values -->)", re.DOTALL)
_SOURCE = re.compile(r"^# Source: tamis/templates/(?P<path>\S+)$", re.MULTILINE)
_DIGEST = re.compile(r"(?<=tamis/config-digest: )[0-9a-f]{64}$", re.MULTILINE)

Object = Mapping[str, Any]


@dataclass(frozen=True)
class Example:
    """Values of the chart that stand for a kind of installation, and their kept rendering."""

    name: str

    @property
    def values(self) -> Path:
        """The file of values."""
        return CHART / "examples" / self.name / "values.yaml"

    @property
    def rendered(self) -> Path:
        """The folder of the kept rendering: a file for each template."""
        return CHART / "examples" / self.name / "rendered"

    def files(self) -> dict[str, str]:
        """The kept rendering: path below `rendered` to text."""
        return {
            str(file.relative_to(self.rendered)): file.read_text()
            for file in sorted(self.rendered.rglob("*.yaml"))
        }

    def objects(self) -> list[Object]:
        """The objects of the kept rendering. They are shared: don't change them."""
        return _objects(self)


@cache
def _objects(example: Example) -> list[Object]:
    # The parser in C takes a tenth of the time.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [
        found for text in example.files().values() for found in yaml.load_all(text, Loader=loader) if found
    ]


EXAMPLES = tuple(Example(file.parent.name) for file in sorted(CHART.glob("examples/*/values.yaml")))


# Templates whose rendering isn't kept: rules and dashboards are compared with their sources.
NOT_KEPT = frozenset({"monitoring/prometheusrule.yaml", "monitoring/dashboards.yaml"})


def split_rendering(text: str) -> dict[str, str]:
    """The output of `helm template` by template, without lines that are empty. The digest of a configuration,
    which is in the rendering itself, is left out: two changes that are merged need a third digest.

    >>> split_rendering("---\\n# Source: tamis/templates/a.yaml\\nkind: A\\n\\n---\\n")
    {'a.yaml': 'kind: A\\n'}
    """
    found: dict[str, list[str]] = {}
    for document in re.split(r"^---$", _DIGEST.sub("sha256", text), flags=re.MULTILINE):
        source = _SOURCE.search(document)
        lines = [line for line in _SOURCE.sub("", document).splitlines() if line.strip()]
        if source and lines:
            found.setdefault(source["path"], []).append("\n".join(lines) + "\n")
    return {path: "---\n".join(documents) for path, documents in found.items()}


def pod_specs(objects: list[Object]) -> Iterator[tuple[str, Object]]:
    """The pods of all objects, executor pods of Spark included: a name for messages, and the pod's spec."""
    for found in objects:
        name = f"{found['kind']} {found['metadata']['name']}"
        if found["kind"] in {"Deployment", "StatefulSet", "DaemonSet"}:
            yield name, found["spec"]["template"]["spec"]
        elif found["kind"] == "Pod":
            yield name, found["spec"]
        elif found["kind"] == "ConfigMap" and "executor.yaml" in found["data"]:
            yield f"executor pod in {name}", yaml.safe_load(found["data"]["executor.yaml"])["spec"]


def containers(pod: Object) -> Iterator[Object]:
    """All containers of a pod, those that prepare it included."""
    yield from pod.get("initContainers", [])
    yield from pod["containers"]


def copies() -> dict[Path, str]:
    """The text that each generated file of the chart must have; renderings excepted."""
    files = CHART / "files"
    found = {files / "rules" / rules.name: rules.read_text() for rules in _source("prometheus/rules/*.yml")}
    found |= {
        files / "dashboards" / board.name: board.read_text() for board in _source("grafana/json/*.json")
    }
    found[files / "acls.yaml"] = (REPOSITORY / "deploy" / "kafka" / "acls.yaml").read_text()
    found[files / "topics.yaml"] = _topics()
    found[README] = _TABLE.sub(lambda match: table((CHART / "values.yaml").read_text()), README.read_text())
    return found


def _source(pattern: str) -> Iterator[Path]:
    return (REPOSITORY / "deploy").glob(pattern)


def _topics() -> str:
    """The topics that the registry creates at its start, for KafkaTopic objects."""
    topics = [
        {
            "name": spec.name,
            **({"partitions": spec.partitions} if spec.partitions else {}),
            "config": topic_config(spec),
        }
        for spec in SPECS
        if "<" not in spec.name
    ]
    head = "# Written by `python -m tests.helm.update` from shared/tamis/messaging/topics.py.\n"
    return head + yaml.safe_dump({"topics": topics}, sort_keys=False)
