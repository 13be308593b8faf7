"""The chart under helm: kept renderings, `helm lint`, and the messages for values that don't fit together."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from tests.helm.chart import CHART, EXAMPLES, NOT_KEPT, REPOSITORY, VERSIONS, Example, split_rendering
from tests.helm.helm_command import find_helm, render

MINIMAL = Example("minimal").values
each_example = pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)


@pytest.fixture(scope="module")
def helm() -> str:
    """The path of helm. These tests are run where it was installed, so that its absence is an error."""
    found = find_helm()
    assert found is not None, "there is no helm: run tests/containers/install_helm.sh, and set TAMIS_HELM"
    return found


def kept(rendering: str) -> dict[str, str]:
    return {path: text for path, text in split_rendering(rendering).items() if path not in NOT_KEPT}


@each_example
def test_the_rendering_is_the_kept_one(helm: str, example: Example) -> None:
    done = render(helm, "-f", example.values)
    assert done.returncode == 0, done.stderr
    # `python -m tests.helm.update` writes it. The difference shows what a change of the chart does here.
    assert kept(done.stdout) == example.files()


@each_example
def test_the_oldest_version_gets_the_same_objects(helm: str, example: Example) -> None:
    done = render(helm, "-f", example.values, version=VERSIONS[0])
    assert kept(done.stdout) == example.files()


def test_pods_are_replaced_when_their_configuration_changes(helm: str) -> None:
    def digests(*options: str) -> list[str]:
        done = render(helm, "-f", MINIMAL, *options)
        assert done.returncode == 0, done.stderr
        return re.findall(r"tamis/config-digest: ([0-9a-f]{64})$", done.stdout, re.MULTILINE)

    changed = "edge.config.sources[0].kind=http,edge.config.sources[0].name=another"
    alerts, edge = digests()
    assert digests("--set", "edge.replicas=2") == [alerts, edge]
    (_, other) = digests("--set", changed)
    assert other != edge


@each_example
def test_helm_finds_no_mistake(helm: str, example: Example) -> None:
    command = [
        helm,
        "lint",
        "--strict",
        str(CHART),
        "-f",
        str(example.values),
        "--kube-version",
        f"{VERSIONS[-1]}.0",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_quick_start_uses_the_images_that_it_has_pushed(helm: str) -> None:
    """The commands of docs/install-helm.md: `make images` pushes what the chart then names."""
    section = (REPOSITORY / "docs/install-helm.md").read_text().partition("\n## Quick start\n")[2]
    lines = section.partition("\n## ")[0].replace("\\\n", " ").splitlines()
    (build,) = (line.split("#")[0].split() for line in lines if line.startswith("    make images "))
    (install,) = (line.split() for line in lines if line.startswith("    helm install "))
    steps = subprocess.run(
        ["make", "-n", *build[1:]], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    pushed = set(re.findall(r"docker push --quiet (\S+)", steps.stdout))
    assert install[2:4] == ["tamis", "helm/tamis"]
    command = [helm, "template", *install[2:], "--kube-version", f"{VERSIONS[-1]}.0"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    used = set(re.findall(r"image: (\S+)", done.stdout))
    assert len(used) == 4 and used <= pushed


def test_a_digest_decides_instead_of_the_tag(helm: str) -> None:
    digest = f"sha256:{'0a' * 32}"
    done = render(helm, "-f", MINIMAL, "--set", f"edge.image.digest={digest},image.tag=v2")
    used = set(re.findall(r"image: (\S+)", done.stdout))
    assert f"registry.example.com/tamis/tamis-edge@{digest}" in used
    assert "registry.example.com/tamis/tamis-joiner:v2" in used


NAMED = """
edge:
  config:
    sources:
      - {kind: mqtt, name: b, host: mqtt, topic: x}
      - {kind: kafka, name: c, topic: x, stream: y, bootstrap: "[::1]:9099,b.example:9100"}
alerts:
  config:
    sinks:
      - {kind: email, host: mail, from: a@example.com, to: [b@example.com]}
      - {kind: slack, url: "${SLACK_URL}"}
      - {kind: webhook, url: "http://hook/x"}
joiner: {checkpoint: "hdfs://nn:8020/x"}
"""


@pytest.mark.parametrize("named", [True, False])
def test_network_policies_allow_the_ports_that_the_values_name(
    helm: str, named: bool, tmp_path: Path
) -> None:
    """The usual port counts where an address has none."""
    values = tmp_path / "values.yaml"
    values.write_text(NAMED)
    done = render(helm, "-f", MINIMAL, "-f", values, "--set", f"networkPolicy.named={str(named).lower()}")
    files = split_rendering(done.stdout)
    wanted = {"edge": {1883, 9099, 9100}, "alerts": {443, 587, 80}, "joiner": {8020}, "registry": set()}
    for service, ports in wanted.items():
        egress = yaml.safe_load(files[f"{service}/networkpolicy.yaml"])["spec"]["egress"]
        found = {port["port"] for rule in egress for port in rule["ports"]}
        assert found == {53, 9092} | (ports if named else set()), service


@pytest.mark.parametrize(
    ("options", "clients"),
    [
        ("edge.kind=StatefulSet", [{"podSelector": {}}]),
        ("edge.tls.proxy=true", [{"namespaceSelector": {}}]),
        ("edge.service.type=LoadBalancer", None),
        ("edge.kind=DaemonSet,edge.hostPort=8282", None),
        (
            "edge.service.type=NodePort,networkPolicy.edgeClients[0].ipBlock.cidr=10.0.0.0/8",
            [{"ipBlock": {"cidr": "10.0.0.0/8"}}],
        ),
    ],
)
def test_whoever_the_service_is_for_may_send_readings(
    helm: str, options: str, clients: list[object] | None
) -> None:
    files = split_rendering(render(helm, "-f", MINIMAL, "--set", options).stdout)
    ingress = yaml.safe_load(files["edge/networkpolicy.yaml"])["spec"]["ingress"]
    (rule,) = (rule for rule in ingress if {"protocol": "TCP", "port": 8282} in rule["ports"])
    assert rule.get("from") == clients


def test_rules_and_dashboards_are_rendered_as_they_are(helm: str) -> None:
    files = split_rendering(render(helm, "-f", Example("everything").values).stdout)
    rules = yaml.safe_load(files["monitoring/prometheusrule.yaml"])
    links = ("docs/runbook.md", "https://wiki.example.com/tamis/runbook.md")
    assert rules["spec"]["groups"] == [
        group
        for file in sorted((REPOSITORY / "deploy/prometheus/rules").glob("*.yml"))
        for group in yaml.safe_load(file.read_text().replace(*links))["groups"]
    ]
    boards = yaml.safe_load_all(files["monitoring/dashboards.yaml"])
    found = {name: json.loads(text) for board in boards for name, text in board["data"].items()}
    assert found == {
        f"tamis-{file.name}": json.loads(file.read_text())
        for file in (REPOSITORY / "deploy/grafana/json").glob("*.json")
    }


def test_the_package_has_no_examples(helm: str, tmp_path: object) -> None:
    command = [helm, "package", str(CHART), "--destination", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    package = done.stdout.strip().rsplit(" ", 1)[1]
    listed = subprocess.run(
        ["tar", "-tzf", package], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "tamis/values.schema.json" in listed and "tamis/files/rules/alerts.yml" in listed
    assert not [name for name in listed if "examples" in name]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["kafka.bootstrap="], "kafka.bootstrap is empty"),
        (["kafka.securityProtocol=SASL_SSL"], "registry has no secret"),
        (["registry.tokens.existingSecret="], "registry.tokens.existingSecret is empty"),
        (["edge.tls.existingSecret="], "edge.tls.existingSecret is empty"),
        (["edge.kind=Deployment"], "pods of a Deployment lose their disk"),
        (["alerts.autoscaling.enabled=true", "alerts.autoscaling.minReplicas=5"], "minReplicas is greater"),
        (["edge.resources.limits.memory=abc"], "edge"),
        (["edge.autoscaling.enabled=true"], "sources are all of kind kafka"),
        (["edge.hostPort=8282"], "edge.hostPort needs edge.kind DaemonSet"),
        (["edge.config.name=kitchen"], "edge.config.name is set by the chart"),
        (["joiner.master=kubernetes"], "executors write state to the checkpoint"),
        (["alerts.replicas=5"], "more workers than there are partitions"),
        (["strimzi.topics.enabled=true"], "strimzi.cluster is empty"),
        (["strimzi.cluster=k,strimzi.users.enabled=true"], "set kafka.securityProtocol to SASL_SSL"),
        (["edge.replica=3"], "additional properties 'replica' not allowed"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_values_that_cannot_work_are_refused(helm: str, values: list[str], message: str) -> None:
    options = [option for value in values for option in ("--set", value)]
    done = render(helm, "-f", MINIMAL, *options)
    assert done.returncode != 0 and message in done.stderr, done.stderr


def test_a_service_without_http_sources_needs_no_tokens(helm: str) -> None:
    sources = '[{"kind": "kafka", "name": "air", "topic": "raw.air", "stream": "air"}]'
    done = render(
        helm,
        "-f",
        MINIMAL,
        "--set-json",
        f"edge.config.sources={sources}",
        "--set",
        "edge.tokens.existingSecret=,edge.tls.existingSecret=",
    )
    assert done.returncode == 0, done.stderr
    assert "TAMIS_EDGE_TOKENS_FILE" not in done.stdout
