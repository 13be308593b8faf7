"""Runs the containers of pods as processes of this machine, in the place of a node."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
from tests.helm.kubernetes_server import KubernetesServer

from tamis.local.parent_death_signal import with_parent_death_signal

_STATUS = "application/merge-patch+json"
_ADDRESS = "127.0.0.1"


def environment_of(pod: Mapping[str, Any], container: Mapping[str, Any]) -> dict[str, str]:
    """The container's variables. References to fields of the pod are resolved, secrets are not."""
    fields = {"status.podIP": _ADDRESS, "metadata.name": pod["metadata"]["name"]}
    found: dict[str, str] = {}
    for variable in container.get("env", []):
        value = variable.get("value", "")
        if "valueFrom" in variable:
            value = fields[variable["valueFrom"]["fieldRef"]["fieldPath"]]
        for name, known in found.items():
            value = value.replace(f"$({name})", known)
        found[variable["name"]] = value
    return found


class PodProcesses:
    """The processes of the pods with a label. `paths` maps paths of containers to paths of this machine."""

    def __init__(
        self, server: KubernetesServer, namespace: str, selector: str, folder: Path, paths: Mapping[str, Path]
    ) -> None:
        self._server, self._namespace, self._selector = server, namespace, selector
        self._folder, self._paths = folder, dict(paths)
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        # All pods that were ever seen, as Spark asked for them.
        self.seen: dict[str, dict[str, Any]] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pods", daemon=True)

    def __enter__(self) -> PodProcesses:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()
        for process in self.running.values():
            process.kill()
            process.wait()

    def _run(self) -> None:
        while not self._stopping.wait(0.2):
            pods = {
                pod["metadata"]["name"]: pod for pod in self._server.pods(self._namespace, self._selector)
            }
            for name in [name for name in self.running if name not in pods]:
                # The pod was deleted.
                process = self.running.pop(name)
                process.kill()
                process.wait()
            for name, pod in pods.items():
                if name not in self.seen:
                    self._start(name, pod)
                elif name in self.running and self.running[name].poll() is not None:
                    self.running.pop(name)
                    self._report(name, pod, {"terminated": {"exitCode": 137}}, "Failed")

    def _start(self, name: str, pod: dict[str, Any]) -> None:
        self.seen[name] = pod
        (container,) = pod["spec"]["containers"]
        volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
        paths = dict(self._paths)
        for mount in container["volumeMounts"]:
            if "emptyDir" in volumes[mount["name"]] and mount["mountPath"] != "/tmp":
                paths[mount["mountPath"]] = self._folder / name / mount["name"]
                paths[mount["mountPath"]].mkdir(parents=True)
        environment = environment_of(pod, container)
        for variable, value in environment.items():
            for inside, here in paths.items():
                if value.startswith(inside):
                    environment[variable] = str(here) + value.removeprefix(inside)
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("TAMIS_")}
        command = [sys.executable, *container["command"][1:], *container["args"]]
        with (self._folder / f"{name}.log").open("wb") as out:
            self.running[name] = subprocess.Popen(
                with_parent_death_signal(command),
                env={**inherited, **environment},
                cwd=self._folder,
                stdout=out,
                stderr=out,
            )
        self._report(name, pod, {"running": {}}, "Running")

    def _report(self, name: str, pod: Mapping[str, Any], state: Mapping[str, Any], phase: str) -> None:
        (container,) = pod["spec"]["containers"]
        described = {
            "name": container["name"],
            "image": container["image"],
            "imageID": "",
            "ready": phase == "Running",
            "restartCount": 0,
            "state": state,
        }
        status = {"phase": phase, "podIP": _ADDRESS, "containerStatuses": [described]}
        path = f"/api/v1/namespaces/{self._namespace}/pods/{name}/status"
        with suppress(httpx.HTTPStatusError):  # it may have been deleted
            self._server.request("PATCH", path, {"status": status}, _STATUS)
