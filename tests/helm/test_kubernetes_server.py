"""The examples installed into a real API server, where each namespace enforces a level of Pod Security."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest
from tests.helm.chart import CHART, EXAMPLES, Example
from tests.helm.helm_command import find_helm
from tests.helm.kubernetes_server import (
    VARIABLE,
    KubernetesServer,
    programs,
    running_server,
    until,
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesServer]:
    directory = programs()
    if directory is None or find_helm() is None:
        pytest.skip(f"needs helm, and {VARIABLE}: see tests/containers/build_kubernetes.sh")
    with running_server(directory, tmp_path_factory.mktemp("kubernetes")) as running:
        # Classes that the example with everything names.
        for name in ("plant", "plant-critical"):
            path = "/apis/scheduling.k8s.io/v1/priorityclasses"
            running.request("POST", path, {"metadata": {"name": name}, "value": 1000})
        yield running


def helm(server: KubernetesServer, example: Example, verb: str, *options: str) -> str:
    """What helm prints when it installs or upgrades the release."""
    command = [str(find_helm()), verb, "tamis", str(CHART), "-n", example.name, "-f", str(example.values)]
    done = subprocess.run(
        [*command, *options, "--kubeconfig", str(server.kubeconfig)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def generations(server: KubernetesServer, namespace: str) -> dict[str, int]:
    """The number of changes of each workload."""
    return {
        f"{kind}/{found['metadata']['name']}": found["metadata"]["generation"]
        for kind in ("deployments", "statefulsets", "daemonsets")
        for found in server.request("GET", f"/apis/apps/v1/namespaces/{namespace}/{kind}")["items"]
    }


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_the_api_server_takes_all_objects_and_makes_their_pods(
    server: KubernetesServer, example: Example
) -> None:
    # A DaemonSet's edges use a directory of their node, which only "privileged" allows.
    level = "privileged" if example.name == "daemonset-edges" else "restricted"
    server.make_namespace(example.name, level)
    command = [
        str(find_helm()),
        "install",
        "tamis",
        str(CHART),
        "-n",
        example.name,
        "-f",
        str(example.values),
    ]
    done = subprocess.run(
        [*command, "--kubeconfig", str(server.kubeconfig)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "helm -n " + example.name + " test tamis" in done.stdout

    wanted = {
        found["metadata"]["name"]: found["spec"].get("replicas", 1)
        for found in example.objects()
        if found["kind"] in {"Deployment", "StatefulSet"}
    }

    def made() -> dict[str, int]:
        pods = [pod["metadata"]["labels"] for pod in server.pods(example.name)]
        components = [f"tamis-{labels['app.kubernetes.io/component']}" for labels in pods]
        return {name: components.count(name) for name in components}

    # The controllers make no pod that Pod Security refuses. Without nodes a DaemonSet has no pods.
    until(lambda: made() == wanted, 60)

    # The same values change nothing. Another image is no change of a field that can't be changed.
    before = generations(server, example.name)
    helm(server, example, "upgrade")
    assert generations(server, example.name) == before
    helm(server, example, "upgrade", "--set", "image.tag=2.0.0")
    after = generations(server, example.name)
    assert after.keys() == before.keys() and all(after[name] > before[name] for name in before)
