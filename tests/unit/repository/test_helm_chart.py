"""The Helm chart, checked without helm: its values, its copies of other files, and the kept renderings.

tests/helm compares the kept renderings with what helm makes of the templates.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from jsonschema import Draft7Validator
from pydantic_settings import BaseSettings
from tests.helm.chart import (
    CHART,
    EXAMPLES,
    REPOSITORY,
    VERSIONS,
    Example,
    Object,
    containers,
    copies,
    pod_specs,
)
from tests.helm.values_table import described, leaves
from tests.unit.repository.test_images import stages

from tamis.messaging.topics import SPECS
from tamis.settings import KafkaSettings, ServiceSettings, TableSettings
from tamis.settings.secret_files import SUFFIX
from tamis_alerts.settings import AlertsConfig
from tamis_edge.service import EdgeHttpSettings
from tamis_edge.settings import EdgeConfig
from tamis_joiner.settings import JoinerSettings
from tamis_registry.settings import RegistryHttpSettings, RegistrySettings

VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
SETTINGS: tuple[type[BaseSettings], ...] = (
    ServiceSettings,
    KafkaSettings,
    TableSettings,
    RegistrySettings,
    RegistryHttpSettings,
    EdgeHttpSettings,
    JoinerSettings,
)
# Variables that are no fields of settings classes: an option of `tamis edge`, and modules that are imported.
OTHER_VARIABLES = {"TAMIS_EDGE_HTTP_HOST", "TAMIS_FUNCTIONS"}
# The one container with rights: it gives a directory of the node to the edge.
PREPARATION = "prepare-data"
CUSTOM = {"monitoring.coreos.com", "keda.sh", "kafka.strimzi.io"}

each_example = pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)


def merged(values: Any, given: Any) -> Any:
    """The values that helm gives to the templates."""
    if isinstance(values, Mapping) and isinstance(given, Mapping):
        return {key: merged(values.get(key), given.get(key, values.get(key))) for key in {*values, *given}}
    return given


def by_kind(example: Example, *kinds: str) -> list[Object]:
    return [found for found in example.objects() if found["kind"] in kinds]


def selects(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    return selector.items() <= labels.items()


# --- values


def test_the_default_values_and_those_of_the_examples_fit_the_schema() -> None:
    Draft7Validator.check_schema(SCHEMA)
    validator = Draft7Validator(SCHEMA)
    validator.validate(VALUES)
    for example in EXAMPLES:
        validator.validate(merged(VALUES, yaml.safe_load(example.values.read_text())))


def paths_of_schema(schema: Mapping[str, Any], path: str = "") -> Iterator[str]:
    if "$ref" in schema:
        schema = SCHEMA["definitions"][schema["$ref"].rsplit("/", 1)[1]]
    if schema.get("additionalProperties") is False:
        for name, part in schema["properties"].items():
            yield from paths_of_schema(part, f"{path}.{name}" if path else name)
    else:
        yield path


def test_the_schema_has_the_values_of_the_file_and_no_others() -> None:
    # What is free below is a value as a whole; `resources` has parts that the file doesn't name.
    file = {
        re.sub(r"^(podSecurityContext|containerSecurityContext|dashboards\.labels)\..*", r"\1", path)
        for path in leaves(VALUES)
    }
    schema = set(paths_of_schema(SCHEMA)) - {"global"}
    resources = {path for path in file | schema if ".resources." in path}
    parts = {path for path in schema if path.startswith("alerts.config.")}
    assert file - resources == schema - resources - parts | {"alerts.config"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"edges": {}},
        {"edge": {"kind": "Job"}},
        {"registry": {"replicas": 2}},
        {"kafka": {"bootstrap": "kafka"}},
        {"kafka": {"sasl": {"password": "x"}}},
        {"joiner": {"memory": "2Gi"}},
        {"joiner": {"spark": {"properties": {"executor.memory": "1g"}}}},
        {"alerts": {"secretFiles": [{"name": "HOOK", "value": "x"}]}},
        {"networkPolicy": {"kafkaPorts": ["kafka"]}},
    ],
    ids=json.dumps,
)
def test_the_schema_refuses_wrong_values(wrong: Mapping[str, Any]) -> None:
    assert not Draft7Validator(SCHEMA).is_valid(merged(VALUES, wrong))


def test_every_value_is_described() -> None:
    told = [value.path for value in described((CHART / "values.yaml").read_text())]
    untold = [path for path in leaves(VALUES) if not any(f"{path}.".startswith(f"{one}.") for one in told)]
    assert untold == []
    assert len(told) == len(set(told))


@each_example
def test_the_services_read_the_configuration_files(example: Example) -> None:
    read: dict[str, Callable[[Any], object]] = {
        "edge.yaml": EdgeConfig.model_validate_json,
        "alerts.yaml": AlertsConfig.model_validate_json,
    }
    for found in by_kind(example, "ConfigMap"):
        for name, text in found["data"].items():
            if name in read:
                values = re.sub(r'"\$\{\w+\}"', "null", json.dumps(yaml.safe_load(text)))
                read[name](values)


# --- copies


def test_copies_are_equal_to_their_sources() -> None:
    wanted = copies()
    stale = [str(file) for file, text in wanted.items() if file.read_text() != text]
    assert stale == [], "run `python -m tests.helm.update`"
    files = CHART / "files"
    assert {file for file in files.rglob("*") if file.is_file()} - wanted.keys() == {files / "readyz.py"}


def test_topics_of_strimzi_are_those_of_the_registry() -> None:
    topics = {
        found["metadata"]["name"]: found["spec"] for found in by_kind(Example("everything"), "KafkaTopic")
    }
    assert {name: spec["partitions"] for name, spec in topics.items()} == {
        spec.name: spec.partitions or 8 for spec in SPECS if "<" not in spec.name
    }


def test_users_of_strimzi_are_those_whose_secrets_are_mounted() -> None:
    example = Example("everything")
    users = {found["metadata"]["name"] for found in by_kind(example, "KafkaUser")}
    mounted = {
        volume["secret"]["secretName"]
        for _, pod in pod_specs(example.objects())
        for volume in pod.get("volumes", [])
        if volume["name"] == "kafka-sasl"
    }
    assert users == mounted == {f"tamis-{service}" for service in ("registry", "edge", "joiner", "alerts")}


def test_users_of_strimzi_have_the_rights_of_the_services() -> None:
    rights = yaml.safe_load((REPOSITORY / "deploy/kafka/acls.yaml").read_text())
    given = {
        user["metadata"]["name"].removeprefix("tamis-"): user["spec"]["authorization"]["acls"]
        for user in by_kind(Example("strimzi"), "KafkaUser")
    }
    # This example's edges read a topic of the same cluster.
    source = {
        "resource": {"type": "topic", "name": "raw.surface", "patternType": "literal"},
        "operations": ["Read"],
    }
    group = {"type": "group", "name": "tamis-edge.surface.raw.surface", "patternType": "literal"}
    assert given.pop("edge") == [*rights["edge"], source, {"resource": group, "operations": ["Read"]}]
    assert given == {service: rights[service] for service in given}


# --- objects


@each_example
@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_accepts_the_objects(example: Example, version: str) -> None:
    for found in example.objects():
        if found["apiVersion"].split("/")[0] not in CUSTOM:
            kubernetes_validate.validate(dict(found), version, strict=True)
        if "executor.yaml" in found.get("data", {}):
            kubernetes_validate.validate(yaml.safe_load(found["data"]["executor.yaml"]), version, strict=True)


@each_example
def test_containers_have_no_rights(example: Example) -> None:
    for name, pod in pod_specs(example.objects()):
        context = pod["securityContext"]
        assert context["runAsNonRoot"] and context["runAsUser"] == context["fsGroup"] == 10001, name
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert not any(pod.get(key) for key in ("hostNetwork", "hostPID", "hostIPC")), name
        for container in containers(pod):
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"], name
            assert not context["allowPrivilegeEscalation"], name
            assert context["capabilities"]["drop"] == ["ALL"], name
            if container["name"] == PREPARATION:
                assert context["capabilities"]["add"] == ["CHOWN"], name
            else:
                assert not {"add", "runAsUser", "runAsNonRoot"} & {*context, *context["capabilities"]}, name


def test_only_an_edge_with_a_directory_of_its_node_has_a_container_that_prepares_it() -> None:
    for example in EXAMPLES:
        for _, pod in pod_specs(example.objects()):
            if pod.get("initContainers"):
                assert example.name == "daemonset-edges"
                assert [container["name"] for container in pod["initContainers"]] == [PREPARATION]


@each_example
def test_only_sparks_driver_may_ask_the_api_server(example: Example) -> None:
    values = merged(VALUES, yaml.safe_load(example.values.read_text()))
    with_token = [name for name, pod in pod_specs(example.objects()) if pod["automountServiceAccountToken"]]
    on_kubernetes = values["joiner"]["enabled"] and values["joiner"]["master"] == "kubernetes"
    assert with_token == (["StatefulSet tamis-joiner"] if on_kubernetes else [])
    for role in by_kind(example, "Role"):
        assert [rule["resources"] for rule in role["rules"]] == [["pods"]]
    assert not by_kind(example, "ClusterRole", "ClusterRoleBinding")


@each_example
def test_services_have_probes_and_limits_of_memory(example: Example) -> None:
    for found in by_kind(example, "Deployment", "StatefulSet", "DaemonSet"):
        for container in containers(found["spec"]["template"]["spec"]):
            name = f"{found['metadata']['name']}: {container['name']}"
            resources = container["resources"]
            assert {"cpu", "memory"} <= resources["requests"].keys() and "memory" in resources["limits"], name
            if container["name"] == PREPARATION:
                continue
            ports = {port["name"]: port["containerPort"] for port in container["ports"]}
            assert ports["telemetry"] == 9464, name
            for probe, path in {"startup": "healthz", "liveness": "healthz", "readiness": "readyz"}.items():
                assert container[f"{probe}Probe"]["httpGet"] == {"path": f"/{path}", "port": "telemetry"}, (
                    name
                )


@each_example
def test_directories_that_are_written_to_are_volumes(example: Example) -> None:
    for name, pod in pod_specs(example.objects()):
        mounted = {
            mount["mountPath"]: mount["name"] for mount in pod["containers"][0].get("volumeMounts", [])
        }
        if not name.startswith("Pod "):
            assert mounted["/tmp"] == "tmp", name
        claimed = [
            found["metadata"]["name"]
            for owner in by_kind(example, "StatefulSet")
            if f"StatefulSet {owner['metadata']['name']}" == name
            for found in owner["spec"].get("volumeClaimTemplates", [])
        ]
        assert set(mounted.values()) == {volume["name"] for volume in pod.get("volumes", [])} | set(
            claimed
        ), name


# --- settings


def known_variables() -> set[str]:
    names = {
        f"{settings.model_config.get('env_prefix', '')}{field}".upper()
        for settings in SETTINGS
        for field in settings.model_fields
    }
    return names | {name + SUFFIX for name in names} | OTHER_VARIABLES


@each_example
def test_services_know_the_variables(example: Example) -> None:
    known = known_variables()
    for name, pod in pod_specs(example.objects()):
        for container in containers(pod):
            variables = [variable["name"] for variable in container.get("env", [])]
            assert len(variables) == len(set(variables)), name
            assert {one for one in variables if one.startswith("TAMIS_")} <= known, name


@each_example
def test_paths_in_variables_are_mounted(example: Example) -> None:
    for name, pod in pod_specs(example.objects()):
        for container in containers(pod):
            mounts = [mount["mountPath"] for mount in container.get("volumeMounts", [])]
            for variable in container.get("env", []):
                path = variable.get("value", "")
                if path.startswith("/"):
                    assert any(Path(path).is_relative_to(mount) for mount in mounts), f"{name}: {path}"


@each_example
def test_secrets_are_named_and_never_rendered(example: Example) -> None:
    assert not by_kind(example, "Secret")
    for name, pod in pod_specs(example.objects()):
        for container in containers(pod):
            for variable in container.get("env", []):
                if re.search(r"PASSWORD|SECRET|TOKEN|KEY", variable["name"]) and "value" in variable:
                    assert variable["value"].startswith("/") or variable["name"].endswith("_URL"), name
        for volume in pod.get("volumes", []):
            if "secret" in volume:
                # The services warn of secrets that all users of a container may read.
                assert volume["secret"]["defaultMode"] == 0o440, name


def test_images_are_those_of_the_dockerfiles() -> None:
    for service in ("registry", "edge", "joiner", "alerts"):
        (final,) = stages(service)[-1:]
        assert VALUES[service]["image"]["repository"] == f"tamis-{service}"
        assert final.all("ENTRYPOINT") == [f'["tamis", "{service}"]']
        assert final.all("USER") == ["10001"]


# --- services, metrics, network


@each_example
def test_services_select_pods_and_their_ports(example: Example) -> None:
    templates = [
        found["spec"]["template"] for found in by_kind(example, "Deployment", "StatefulSet", "DaemonSet")
    ]
    for service in by_kind(example, "Service"):
        name = service["metadata"]["name"]
        (template,) = [
            found for found in templates if selects(service["spec"]["selector"], found["metadata"]["labels"])
        ]
        ports = {
            port["name"]: port["containerPort"]
            for container in template["spec"]["containers"]
            for port in container["ports"]
        }
        for port in service["spec"]["ports"]:
            target = port.get("targetPort", port["port"])
            assert target in ports or target in ports.values(), name
    for owner in by_kind(example, "StatefulSet"):
        assert owner["spec"]["serviceName"] in {
            found["metadata"]["name"]
            for found in by_kind(example, "Service")
            if found["spec"].get("clusterIP") == "None"
        }


def test_prometheus_finds_each_service_under_the_job_of_the_rules() -> None:
    example = Example("everything")
    jobs = {}
    for monitor in by_kind(example, "ServiceMonitor"):
        (service,) = [
            found
            for found in by_kind(example, "Service")
            if selects(monitor["spec"]["selector"]["matchLabels"], found["metadata"]["labels"])
        ]
        (endpoint,) = monitor["spec"]["endpoints"]
        assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}
        (job,) = [rule["replacement"] for rule in endpoint["relabelings"] if rule["targetLabel"] == "job"]
        jobs[job] = monitor["metadata"]["name"]
    scraped = yaml.safe_load((REPOSITORY / "deploy/prometheus/prometheus.yml").read_text())["scrape_configs"]
    assert jobs.keys() == {one["job_name"] for one in scraped} - {"prometheus"}


def allowed(policies: list[Object], side: str, labels: Mapping[str, str]) -> set[int]:
    return {
        port["port"]
        for policy in policies
        if selects(policy["spec"]["podSelector"]["matchLabels"], labels)
        for rule in policy["spec"].get(side, [])
        for port in rule["ports"]
    }


def test_network_policies_allow_what_is_needed_and_nothing_else() -> None:
    example = Example("everything")
    policies = by_kind(example, "NetworkPolicy")
    dns, kafka = 53, 9093
    wanted = {
        "registry": ({8181, 9464}, {dns, kafka}),
        "edge": ({8282, 9464}, {dns, kafka}),
        "alerts": ({9464}, {dns, kafka}),
        # The driver reaches the API server and the executors' blocks.
        "joiner": ({9464, 7078, 7079}, {dns, kafka, 443, 6443, 7079}),
        "joiner-executor": ({7079}, {dns, kafka, 7078, 7079}),
    }
    found = {
        policy["spec"]["podSelector"]["matchLabels"]["app.kubernetes.io/component"]: policy
        for policy in policies
    }
    assert found.keys() == wanted.keys()
    for component, (ingress, egress) in wanted.items():
        labels = found[component]["spec"]["podSelector"]["matchLabels"]
        assert found[component]["spec"]["policyTypes"] == ["Ingress", "Egress"]
        assert allowed(policies, "ingress", labels) == ingress, component
        assert allowed(policies, "egress", labels) == egress, component
        # Whoever may come in is named, but not those of a Service that other networks reach.
        beyond = {8181} if component == "registry" else set()
        for rule in found[component]["spec"]["ingress"]:
            assert ("from" in rule) != bool({port["port"] for port in rule["ports"]} & beyond), component


@each_example
def test_every_pod_of_a_service_has_a_network_policy(example: Example) -> None:
    policies = by_kind(example, "NetworkPolicy")
    for found in by_kind(example, "Deployment", "StatefulSet", "DaemonSet"):
        labels = found["spec"]["template"]["metadata"]["labels"]
        assert any(selects(p["spec"]["podSelector"]["matchLabels"], labels) for p in policies), labels


@pytest.mark.parametrize(
    ("name", "component", "ports"),
    [
        ("minimal", "edge", {9092}),
        ("secure-kafka", "edge", {9093, 8883}),
        ("secure-kafka", "alerts", {9093, 443}),
        ("spark-on-kubernetes", "registry", {9093, 443}),
        ("spark-on-kubernetes", "joiner", {9093, 443, 9000, 6443, 7079}),
        ("kafka-sources", "edge", {9092}),
    ],
)
def test_network_policies_allow_the_ports_that_the_values_name(
    name: str, component: str, ports: set[int]
) -> None:
    """The broker of a source, the address of a sink, the checkpoint, and the address that gives tokens."""
    policies = by_kind(Example(name), "NetworkPolicy")
    labels = {"app.kubernetes.io/component": component}
    own = [p for p in policies if p["spec"]["podSelector"]["matchLabels"].items() >= labels.items()]
    assert {
        port["port"] for policy in own for rule in policy["spec"]["egress"] for port in rule["ports"]
    } == ports | {53}


# --- who may run twice


@each_example
def test_one_registry_and_one_joiner_run(example: Example) -> None:
    for found in by_kind(example, "Deployment", "StatefulSet"):
        component = found["metadata"]["labels"]["app.kubernetes.io/component"]
        if component == "registry":
            assert found["spec"]["replicas"] == 1 and found["spec"]["strategy"] == {"type": "Recreate"}
        if component == "joiner":
            assert found["spec"]["replicas"] == 1 and found["kind"] == "StatefulSet"


@each_example
def test_edges_keep_their_names_and_their_directories(example: Example) -> None:
    for found in by_kind(example, "Deployment", "StatefulSet", "DaemonSet"):
        if found["metadata"]["labels"]["app.kubernetes.io/component"] != "edge":
            continue
        pod = found["spec"]["template"]["spec"]
        (edge,) = pod["containers"]
        name = edge["args"][edge["args"].index("--name") + 1]
        (variable,) = [one for one in edge["env"] if f"$({one['name']})" in name]
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        field = variable["valueFrom"]["fieldRef"]["fieldPath"]
        if found["kind"] == "DaemonSet":
            assert field == "spec.nodeName" and "hostPath" in volumes["data"]
            assert found["spec"]["updateStrategy"]["rollingUpdate"]["maxSurge"] == 0
        elif found["kind"] == "StatefulSet":
            assert field == "metadata.name" and found["spec"]["volumeClaimTemplates"]
            assert found["spec"]["persistentVolumeClaimRetentionPolicy"]["whenScaled"] == "Retain"
        else:
            (config,) = [one for one in by_kind(example, "ConfigMap") if "edge.yaml" in one["data"]]
            sources = yaml.safe_load(config["data"]["edge.yaml"])["sources"]
            assert {source["kind"] for source in sources} == {"kafka"}
