"""Kubernetes without nodes: etcd, API server and controllers as processes of this machine.

Objects are checked, controllers make pods of them, and accounts have the rights of their roles; no container
is ever started. TAMIS_KUBERNETES names the directory of the programs; tests/containers/build_kubernetes.sh
makes it.
"""

from __future__ import annotations

import os
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml

from tamis.local.parent_death_signal import with_parent_death_signal
from tamis.local.service_process import free_ports

VARIABLE = "TAMIS_KUBERNETES"
# On two busy cores the API server took 20 s.
STARTING = 120.0
_TOKEN = "administrator"
_CUSTOM = {
    "monitoring.coreos.com/v1": ("ServiceMonitor", "PrometheusRule"),
    "keda.sh/v1alpha1": ("ScaledObject", "TriggerAuthentication"),
    "kafka.strimzi.io/v1": ("KafkaUser", "KafkaTopic"),
}


class KubernetesServer:
    """A running API server. Paths are those of its HTTP interface, such as /api/v1/pods."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.certificate = folder / "certificates" / "apiserver.crt"
        self.kubeconfig = folder / "kubeconfig"
        self.audit = folder / "audit.log"
        self._client: httpx.Client | None = None

    def request(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        """The answer's JSON. Raises httpx.HTTPStatusError for an error."""
        if self._client is None:
            trusted = ssl.create_default_context(cafile=str(self.certificate))
            headers = {"Authorization": f"Bearer {_TOKEN}"}
            self._client = httpx.Client(base_url=self.url, verify=trusted, headers=headers)
        answer = self._client.request(method, path, json=body, headers={"Content-Type": kind}, timeout=30.0)
        answer.raise_for_status()
        return answer.json()

    def make_namespace(self, name: str, level: str = "restricted") -> None:
        """Make a namespace that enforces a level of Pod Security."""
        labels = {"pod-security.kubernetes.io/enforce": level}
        metadata = {"name": name, "labels": labels}
        self.request("POST", "/api/v1/namespaces", {"metadata": metadata})

    def pods(self, namespace: str, selector: str = "") -> list[dict[str, Any]]:
        """The pods of a namespace with these labels."""
        path = f"/api/v1/namespaces/{namespace}/pods?labelSelector={selector}"
        found: list[dict[str, Any]] = self.request("GET", path)["items"]
        return found

    def account_token(self, namespace: str, account: str) -> str:
        """A token of a service account, as a pod would get it."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        return str(self.request("POST", path, {"spec": {}})["status"]["token"])

    def close(self) -> None:
        """Close the connection."""
        if self._client is not None:
            self._client.close()


def programs() -> Path | None:
    """The directory with the programs; None where there is none."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else None


@contextmanager
def running_server(directory: Path, folder: Path) -> Iterator[KubernetesServer]:
    """An API server with the programs of `directory`. Its files are in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    store, peer, port, controllers = free_ports(4)
    server = KubernetesServer(f"https://127.0.0.1:{port}", folder)
    key = folder / "accounts.key"
    subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
    subprocess.run(
        ["openssl", "rsa", "-in", key, "-pubout", "-out", f"{key}.pub"], check=True, capture_output=True
    )
    (folder / "tokens.csv").write_text(f'{_TOKEN},{_TOKEN},1,"system:masters"\n')
    policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}
    (folder / "audit.yaml").write_text(yaml.safe_dump(policy))
    server.kubeconfig.write_text(yaml.safe_dump(_kubeconfig(server)))
    etcd = f"http://127.0.0.1:{store}"
    commands = {
        "etcd": {
            "data-dir": folder / "etcd",
            "listen-client-urls": etcd,
            "advertise-client-urls": etcd,
            "listen-peer-urls": f"http://127.0.0.1:{peer}",
        },
        "kube-apiserver": {
            "etcd-servers": etcd,
            "bind-address": "127.0.0.1",
            "secure-port": port,
            "endpoint-reconciler-type": "none",
            "cert-dir": folder / "certificates",
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-key-file": f"{key}.pub",
            "service-account-signing-key-file": key,
            "token-auth-file": folder / "tokens.csv",
            "authorization-mode": "RBAC",
            "audit-log-path": server.audit,
            "audit-policy-file": folder / "audit.yaml",
            "service-cluster-ip-range": "10.96.0.0/16",
        },
        "kube-controller-manager": {
            "kubeconfig": server.kubeconfig,
            "service-account-private-key-file": key,
            "use-service-account-credentials": "true",
            "bind-address": "127.0.0.1",
            "secure-port": controllers,
            "cert-dir": folder / "controllers",
            "leader-elect": "false",
        },
    }
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for name, options in commands.items():
            command = [str(directory / name), *(f"--{option}={value}" for option, value in options.items())]
            with (folder / f"{name}.log").open("wb") as out:
                processes.append(subprocess.Popen(with_parent_death_signal(command), stdout=out, stderr=out))
            if name == "kube-apiserver":
                until(lambda: _answers(server), STARTING)
        _register(server)
        yield server
    finally:
        server.close()
        for process in reversed(processes):
            process.kill()
            process.wait()


def until(condition: Callable[[], object], seconds: float) -> None:
    """Wait until the condition holds. Raises AssertionError after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s"
        time.sleep(0.2)


def _answers(server: KubernetesServer) -> bool:
    if not server.certificate.exists():
        return False
    try:
        server.request("GET", "/api/v1/namespaces/default")
    except httpx.HTTPError:
        return False
    return True


def _register(server: KubernetesServer) -> None:
    """Kinds of Prometheus, KEDA and Strimzi, without their schemas."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    for api, kinds in _CUSTOM.items():
        group, version = api.split("/")
        for kind in kinds:
            plural = f"{kind.lower()}s"
            served = {
                "name": version,
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": anything},
            }
            names = {"kind": kind, "plural": plural}
            server.request(
                "POST",
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                {
                    "metadata": {"name": f"{plural}.{group}"},
                    "spec": {"group": group, "names": names, "scope": "Namespaced", "versions": [served]},
                },
            )


def _kubeconfig(server: KubernetesServer) -> dict[str, Any]:
    cluster = {"server": server.url, "certificate-authority": str(server.certificate)}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": "test", "user": {"token": _TOKEN}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "current-context": "test",
    }
