"""The files that add to the Compose file, run for real: a secure Kafka, and a Spark cluster."""

from __future__ import annotations

import pytest
from deploy.compose import make_secrets
from tests.containers.compose import compose, running, until

pytestmark = pytest.mark.timeout(1500)
# The services that raise alarms, without the monitoring.
FLEET = ["replay", "statements", "joiner", "watch"]


def alarms_in_log() -> bool:
    return "  alarm  " in compose("logs", "--no-color", "watch")


def test_with_tls_passwords_and_acls_alarms_are_raised() -> None:
    make_secrets.main(make_secrets.DIRECTORY)
    with running("docker-compose.yml", "docker-compose.secure.yml", names=[*FLEET, "alerts"]):
        until("alarms", alarms_in_log)
        assert "users and" in compose("logs", "--no-color", "kafka-users")
        until("an episode", lambda: "episode opened" in compose("logs", "--no-color", "alerts"))
        logs = compose("logs", "--no-color")
        for path in make_secrets.DIRECTORY.glob("*_*"):
            assert path.read_text().strip() not in logs, path.name


def test_on_a_spark_cluster_alarms_are_raised() -> None:
    with running("docker-compose.yml", "docker-compose.spark.yml", names=FLEET):
        until("alarms", alarms_in_log)
        assert "Registered app" in compose("logs", "--no-color", "spark-master")
