"""Variables that no service knows are named at the start of each service, and all others are known."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic_settings import BaseSettings
from structlog.testing import capture_logs

from tamis.settings import KafkaSettings, ServiceSettings, TableSettings
from tamis.settings.client import ClientSettings
from tamis.settings.known_variables import KNOWN, SECRETS, unknown_variables, warn_of_unknown_variables
from tamis.settings.schema_registry import SchemaRegistrySettings
from tamis.settings.secret_files import SUFFIX, _is_secret
from tamis.settings.yaml_file import referred_variables
from tamis_edge.service import EdgeHttpSettings
from tamis_joiner.settings import JoinerSettings
from tamis_registry.settings import RegistryHttpSettings, RegistrySettings

REPOSITORY = Path(__file__).parents[3]
CLASSES: tuple[type[BaseSettings], ...] = (
    ServiceSettings,
    KafkaSettings,
    SchemaRegistrySettings,
    ClientSettings,
    TableSettings,
    RegistrySettings,
    RegistryHttpSettings,
    EdgeHttpSettings,
    JoinerSettings,
)
# Names that stand for any variable, and those of this repository's tests.
NO_SETTINGS = {"TAMIS_X", "TAMIS_X_FILE", "TAMIS_PARTITION", "TAMIS_XYZZY"}
NO_SETTINGS |= {"TAMIS_SEED", "TAMIS_CASES", "TAMIS_HELM", "TAMIS_KUBERNETES"}
NO_SETTINGS |= {"TAMIS_SOAK_MINUTES", "TAMIS_SOAK_SPEED"}
NO_SETTINGS |= {"TAMIS_FAULTS_READINGS", "TAMIS_FAULT_SECONDS", "TAMIS_FUZZ_SECONDS"}
VALUE = "planted-value-of-a-variable"


def test_every_setting_is_known_and_no_name_is_too_many() -> None:
    fields = {
        f"{found.model_config.get('env_prefix', '')}{name}".upper(): _is_secret(field)
        for found in CLASSES
        for name, field in found.model_fields.items()
    }
    assert {name for name, secret in fields.items() if secret} == SECRETS
    others = {"TAMIS_EDGE_HTTP_HOST", "TAMIS_REGISTRY", "TAMIS_FUNCTIONS", "TAMIS_KERNELS", "TAMIS_JARS"}
    others |= {"TAMIS_EXIT_UNAVAILABLE", "TAMIS_VERSION", "TAMIS_IMAGES"}
    expected = fields.keys() | {f"{name}{SUFFIX}" for name in SECRETS} | others
    assert expected == KNOWN, "add it to both lists"


def test_every_variable_of_code_charts_and_compose_files_is_known() -> None:
    files = [*REPOSITORY.glob("docker-compose*.yml"), *REPOSITORY.glob("docs/*.md")]
    for folder in ("shared", "services", "deploy", "helm"):
        files += [
            f for f in (REPOSITORY / folder).rglob("*") if f.suffix in {".py", ".yaml", ".yml", ".md", ".tpl"}
        ]
    found = {
        name
        for file in files
        for name in re.findall(r"\bTAMIS_[A-Z][A-Z_]*[A-Z]\b(?![_…])", file.read_text())
    }
    assert len(found) > 50
    prefixes = {f"TAMIS_{part}" for part in ("EDGE", "KAFKA", "JOINER", "LOG", "TELEMETRY")}
    assert found - KNOWN - NO_SETTINGS - prefixes == set()


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("TAMIS_KAFKA_BOOTSTRAPS", "TAMIS_KAFKA_BOOTSTRAP"),
        ("TAMIS_KAFKA_SASL_PASWORD_FILE", "TAMIS_KAFKA_SASL_PASSWORD_FILE"),
        ("TAMIS_DATA_FILE", None),
        ("tamis_log_levl", "TAMIS_LOG_LEVEL"),
        ("TAMIS_SOMETHING_OF_MY_OWN", None),
    ],
)
def test_a_misspelt_variable_is_found_with_the_nearest_name(name: str, nearest: str | None) -> None:
    ((found, near),) = unknown_variables({name, "PATH", "tamis_data"})
    assert found == name
    if nearest is not None:
        assert near == nearest


def test_warnings_have_no_values_and_leave_out_what_a_configuration_refers_to(tmp_path: Path) -> None:
    config = tmp_path / "edge.yaml"
    config.write_text("sources: [{password: '${TAMIS_MQTT}'}, {password: '${TAMIS_OTHER}'}]\n")
    environment = dict.fromkeys(
        ("TAMIS_MQTT", "TAMIS_OTHER_FILE", "TAMIS_PARTITION", "TAMIS_OWN", "TAMIS_JOINER_BATCH"), VALUE
    )
    with capture_logs() as logs:
        warn_of_unknown_variables(referred_variables(config), environment)
    assert [(line["log_level"], line["variable"], line.get("nearest")) for line in logs] == [
        ("warning", "TAMIS_OWN", None),
        ("warning", "TAMIS_PARTITION", "TAMIS_PARTITIONS"),
    ]
    assert VALUE not in str(logs)
    assert referred_variables(None) == set() == referred_variables(tmp_path)


def test_each_service_warns_once_at_its_start(tmp_path: Path) -> None:
    """Each is started with a mistake that ends it."""
    (tmp_path / "file").touch()
    wrong = {"TAMIS_DATA": str(tmp_path / "file"), "TAMIS_REGISTRY_TLS_KEY": "half.pem"}
    running = {
        service: subprocess.Popen(
            [sys.executable, "-P", "-m", "tamis.cli", service],
            env={**os.environ, **wrong, "TAMIS_LOG_LEVL": VALUE, "TAMIS_EDGE_TLS": ""},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for service in ("edge", "registry", "joiner", "alerts")
    }
    for service, process in running.items():
        _, told = process.communicate(timeout=60)
        assert process.returncode == 2, told
        lines = [line for line in told.splitlines() if "TAMIS_LOG_LEVL" in line]
        assert len(lines) == 1, (service, told)
        assert "no setting has the name" in lines[0] and "nearest=TAMIS_LOG_LEVEL" in lines[0]
        assert VALUE not in told
