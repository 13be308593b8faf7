"""The joiner of the chart as Spark's driver: it asks a real API server for executor pods and works with them.

The test takes the place of the nodes: it runs the joiner's pod and the executors' pods as processes.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from pathlib import Path

import pytest
from tests.helm.chart import CHART
from tests.helm.helm_command import find_helm
from tests.helm.kubernetes_server import VARIABLE, programs, running_server, until
from tests.helm.pod_processes import PodProcesses, environment_of
from tests.integration.joiner.test_joiner import Bench, Row, create, plan, reference, sum_alert, topic_of

from tamis.local.broker import EmbeddedKafka
from tamis.local.service_process import ServiceProcess, free_ports
from tamis.messaging import topics

STARTING = 180.0
NAMESPACE = "plant"
EXECUTORS = "app.kubernetes.io/component=joiner-executor"


@pytest.mark.timeout(900)
def test_executor_pods_start_are_replaced_and_end_with_the_driver(tmp_path: Path) -> None:
    directory, helm = programs(), find_helm()
    if directory is None or helm is None:
        pytest.skip(f"needs helm, and {VARIABLE}: see tests/containers/build_kubernetes.sh")
    with (
        running_server(directory, tmp_path / "kubernetes") as server,
        EmbeddedKafka(tmp_path / "kafka") as broker,
    ):
        server.make_namespace(NAMESPACE)
        token = tmp_path / "token"
        values = {
            "kafka": {"bootstrap": broker.bootstrap},
            **{service: {"enabled": False} for service in ("registry", "edge", "alerts", "tests")},
            "joiner": {
                "master": "kubernetes",
                "memory": "600m",
                "persistence": {"accessModes": ["ReadWriteMany"]},
                "spark": {
                    "executorMemory": "512m",
                    "executorMemoryOverhead": "256m",
                    # In a pod Spark finds them in the directory of the service account.
                    "properties": {
                        "spark.kubernetes.authenticate.oauthTokenFile": str(token),
                        "spark.kubernetes.authenticate.caCertFile": str(server.certificate),
                    },
                },
            },
        }
        (tmp_path / "values.json").write_text(json.dumps(values))
        install = [helm, "install", "tamis", str(CHART), "-n", NAMESPACE, "-f", str(tmp_path / "values.json")]
        done = subprocess.run(
            [*install, "--kubeconfig", str(server.kubeconfig)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        until(lambda: server.pods(NAMESPACE), 60)
        (driver,) = server.pods(NAMESPACE)
        token.write_text(server.account_token(NAMESPACE, driver["spec"]["serviceAccountName"]))

        spark, data = tmp_path / "spark", tmp_path / "data"
        spark.mkdir()
        data.mkdir()
        config = server.request("GET", f"/api/v1/namespaces/{NAMESPACE}/configmaps/tamis-joiner")["data"]
        for name, text in config.items():
            (spark / name).write_text(text.replace("/etc/tamis/spark", str(spark)))
        telemetry, driver_port, blocks = free_ports(3)
        environment = {
            **environment_of(driver, driver["spec"]["containers"][0]),
            # What is different on this machine: addresses, and the directories of the volumes.
            "TAMIS_JOINER_MASTER": f"k8s://{server.url}",
            "TAMIS_JOINER_DRIVER_HOST": "127.0.0.1",
            "TAMIS_JOINER_DRIVER_PORT": str(driver_port),
            "TAMIS_JOINER_BLOCK_MANAGER_PORT": str(blocks),
            "TAMIS_JOINER_SPARK_CONF": str(spark / "spark.conf"),
            "TAMIS_JOINER_CHECKPOINT": str(data / "joiner"),
            "TAMIS_DATA": str(data),
            "TAMIS_TELEMETRY_HOST": "127.0.0.1",
            "TAMIS_TELEMETRY_PORT": str(telemetry),
        }
        streams = [topic_of("air"), topic_of("soil")]
        create(broker.bootstrap, topics.PLANS, topics.ALARMS, topics.FRONTIERS, topics.DEAD_LETTERS, *streams)
        url = f"http://127.0.0.1:{telemetry}"
        joiner = ServiceProcess("joiner", ["joiner"], environment, tmp_path / "joiner.log", f"{url}/readyz")
        bench = Bench(broker.bootstrap, joiner, url, data / "joiner/query", random.Random(5))
        pods = PodProcesses(server, NAMESPACE, EXECUTORS, tmp_path, {"/data": data})
        with pods:
            joiner.start()
            try:
                bench.plan(plan(1, ["air", "soil"], [sum_alert("worn", 1, "air", "soil", 12.0)]))
                bench.tuples(150, ["air", "soil"], 1)
                bench.until(lambda: bench.raised("worn") >= _expected(bench), STARTING)
                assert _expected(bench) and len(pods.running) == 2
                victim, process = next(iter(pods.running.items()))
                os.kill(process.pid, signal.SIGKILL)
                until(lambda: len(pods.seen) == 3 and len(pods.running) == 2, 60)
                assert victim not in pods.running
                bench.tuples(150, ["air", "soil"], 1)
                bench.until(lambda: bench.raised("worn") >= _expected(bench), STARTING)
                assert bench.raised("worn") == _expected(bench)
                assert joiner.exit_code() is None

                _check_executor(next(iter(pods.seen.values())), driver)
                # A driver that is gone takes its executors with it.
                server.request(
                    "DELETE", f"/api/v1/namespaces/{NAMESPACE}/pods/tamis-joiner-0?gracePeriodSeconds=0"
                )
                until(
                    lambda: (
                        not [
                            pod
                            for pod in server.pods(NAMESPACE, EXECUTORS)
                            if pod["metadata"]["name"] in pods.seen
                        ]
                    ),
                    60,
                )
            finally:
                bench.consumer.close()
                joiner.stop(timeout=15.0)
        refused = [
            f"{event['verb']} {event['requestURI']}"
            for event in map(json.loads, server.audit.read_text().splitlines())
            if event.get("responseStatus", {}).get("code") == 403
            and event["user"]["username"] == f"system:serviceaccount:{NAMESPACE}:tamis-joiner"
        ]
        assert refused == []


def _expected(bench: Bench) -> set[tuple[Row, Row]]:
    return reference(bench.sent["air"], bench.sent["soil"], 12.0)


def _check_executor(pod: object, driver: object) -> None:
    assert isinstance(pod, dict) and isinstance(driver, dict)
    (owner,) = pod["metadata"]["ownerReferences"]
    assert owner["uid"] == driver["metadata"]["uid"]
    spec = pod["spec"]
    (container,) = spec["containers"]
    assert spec["serviceAccountName"] == "tamis-joiner-executor"
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsUser"] == 10001
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["resources"]["limits"]["memory"] == "768Mi"
    assert container["image"] == driver["spec"]["containers"][0]["image"]
