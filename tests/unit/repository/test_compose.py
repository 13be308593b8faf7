"""The Compose files, checked without Docker: schema, limits, rights, and that all they name exists."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from deploy.compose import kafka_users, make_secrets

from tamis.messaging.rights import PRINCIPALS

REPOSITORY = Path(__file__).resolve().parents[3]
BASE = "docker-compose.yml"
ADDED = sorted(path.name for path in REPOSITORY.glob("docker-compose.*.yml"))
TAMIS_IMAGES = {
    f"tamis-{service.name}" for service in (REPOSITORY / "services").iterdir() if service.is_dir()
}
# Services that do one thing and end. They have no health to check.
JOBS = {"registry-tokens", "edge-tokens", "statements", "kafka-users", "spark-secret"}
_VARIABLE = re.compile(r"(?<!\$)\$\{([A-Z_][A-Z0-9_]*)(?::?[-?]([^}]*))?\}")


def load(name: str) -> dict[str, Any]:
    """A Compose file with its anchors resolved."""
    found: dict[str, Any] = yaml.safe_load((REPOSITORY / name).read_text())
    return found


def services(name: str = BASE) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = load(name)["services"]
    return found


def defaults(text: str) -> str:
    """The text with each variable replaced by its default."""
    return _VARIABLE.sub(lambda match: match[2] or "", text)


def new_services() -> list[tuple[str, str]]:
    """The file and the name of each service that a file defines with an image."""
    return [(f, n) for f in (BASE, *ADDED) for n, service in services(f).items() if "image" in service]


@pytest.mark.parametrize("name", [BASE, *ADDED])
def test_the_file_follows_the_schema_of_compose(name: str) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", name]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(("file", "name"), new_services())
def test_a_container_has_few_rights_and_a_limit_of_memory(file: str, name: str) -> None:
    service = services(file)[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert re.fullmatch(r"[0-9]+[mg]", defaults(service["mem_limit"]))
    assert not service.get("privileged") and "cap_add" not in service
    assert service["logging"]["options"]["max-size"]


@pytest.mark.parametrize(("file", "name"), new_services())
def test_a_service_has_a_health_check_and_restarts(file: str, name: str) -> None:
    service = services(file)[name]
    if name in JOBS:
        assert service["restart"] == "on-failure"
    else:
        assert service["healthcheck"]["test"]
        assert service["restart"] in {"unless-stopped", "on-failure"}


def test_ports_are_published_on_loopback_only() -> None:
    published = {p for f in (BASE, *ADDED) for s in services(f).values() for p in s.get("ports", [])}
    assert published
    assert all(re.fullmatch(r"127\.0\.0\.1:[0-9]+:[0-9]+", defaults(port)) for port in published)


def test_images_have_a_version_and_those_of_tamis_a_dockerfile() -> None:
    for file, name in new_services():
        service = services(file)[name]
        image, _, tag = defaults(service["image"]).partition(":")
        assert tag, name
        assert (tag == "latest") == (image in TAMIS_IMAGES), name
        if "build" in service:
            assert (REPOSITORY / service["build"]["dockerfile"]).exists()
            assert image == f"tamis-{Path(service['build']['dockerfile']).parent.name}"
    built = {services(f)[n]["image"] for f, n in new_services() if "build" in services(f)[n]}
    used = {services(f)[n]["image"] for f, n in new_services() if "tamis-" in services(f)[n]["image"]}
    assert built == used


def test_mounted_paths_and_volumes_exist() -> None:
    for file in (BASE, *ADDED):
        volumes = {**load(BASE)["volumes"], **load(file).get("volumes", {})}
        for name, service in services(file).items():
            for mount in service.get("volumes", []):
                source = mount.split(":")[0]
                exists = (REPOSITORY / source).exists() if source.startswith(".") else source in volumes
                assert exists, f"{file}: {name}: {mount}"
                if source.startswith("."):
                    assert mount.endswith(":ro"), f"{file}: {name}: {mount} can be written to"


def test_services_wait_for_services_that_exist() -> None:
    for file in (BASE, *ADDED):
        known = {**services(BASE), **services(file)}
        for name, service in services(file).items():
            for other, condition in service.get("depends_on", {}).items():
                job = condition["condition"] == "service_completed_successfully"
                assert other in known and job == (other in JOBS), f"{file}: {name} waits for {other}"


def test_env_example_has_exactly_the_variables_that_are_used() -> None:
    text = "".join((REPOSITORY / name).read_text() for name in (BASE, *ADDED))
    used = {match[1]: match[2] or "" for match in _VARIABLE.finditer(text)}
    example = (REPOSITORY / ".env.example").read_text().splitlines()
    named = dict(line.split("=", 1) for line in example if line and not line.startswith("#"))
    assert named == used


def test_variables_of_tamis_are_those_that_the_code_reads() -> None:
    code = "".join(
        path.read_text() for root in ("shared", "services") for path in (REPOSITORY / root).rglob("*.py")
    )
    for file, name in new_services():
        service = services(file)[name]
        for variable in service.get("environment", {}):
            if variable.startswith("TAMIS_"):
                field = re.sub(r"^TAMIS_(REGISTRY_|EDGE_|JOINER_|KAFKA_)?|_FILE$", "", variable).lower()
                assert re.search(rf"\b{field}\b|{variable}", code), f"{name}: {variable}"


def test_prometheus_scrapes_every_service_of_tamis() -> None:
    config = yaml.safe_load((REPOSITORY / "deploy/prometheus/prometheus.yml").read_text())
    targets = {
        target
        for job in config["scrape_configs"]
        if job["job_name"].startswith("tamis-")
        for target in job["static_configs"][0]["targets"]
    }
    assert targets == {f"{name}:9464" for name in ("registry", "edge-a", "edge-b", "joiner", "alerts")}
    (alertmanager,) = config["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"]
    assert alertmanager.split(":")[0] in services()


def test_grafana_is_provisioned_with_the_dashboards() -> None:
    provisioning = REPOSITORY / "deploy/grafana/provisioning"
    (source,) = yaml.safe_load((provisioning / "datasources/prometheus.yml").read_text())["datasources"]
    assert source["url"] == "http://prometheus:9090" and source["isDefault"]
    (provider,) = yaml.safe_load((provisioning / "dashboards/tamis.yml").read_text())["providers"]
    grafana = services()["grafana"]
    folder = provider["options"]["path"]
    assert f"./deploy/grafana/json:{folder}:ro" in grafana["volumes"]
    home = Path(grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
    assert str(home.parent) == folder and (REPOSITORY / "deploy/grafana/json" / home.name).exists()
    text = "".join(path.read_text() for path in (REPOSITORY / "deploy/grafana/json").glob("*.json"))
    assert f'"{source["type"]}"' in text


def test_alertmanager_routes_every_severity_of_the_rules() -> None:
    rules = yaml.safe_load((REPOSITORY / "deploy/prometheus/rules/alerts.yml").read_text())
    severities = {rule["labels"]["severity"] for group in rules["groups"] for rule in group["rules"]}
    config = yaml.safe_load((REPOSITORY / "deploy/alertmanager/alertmanager.yml").read_text())
    routed = {match for route in config["route"]["routes"] for match in route["matchers"]}
    assert routed == {f'severity="{severity}"' for severity in severities}
    alerts = {rule["alert"] for group in rules["groups"] for rule in group["rules"]}
    named = set(re.findall(r"Tamis\w+", json.dumps(config["inhibit_rules"])))
    assert named <= alerts


@pytest.mark.parametrize(
    ("server", "roles"),
    [("registry", {"reader": "reader", "writer": "writer"}), ("edge", {"sender": "writer"})],
)
def test_tokens_are_made_once_and_only_their_digests_are_given_to_servers(
    server: str, roles: dict[str, str], tmp_path: Path
) -> None:
    digests, tokens = tmp_path / "digests", tmp_path / "tokens"

    def make() -> dict[str, str]:
        script = REPOSITORY / "deploy/compose/make_tokens.py"
        subprocess.run(
            [sys.executable, str(script), server, str(digests), str(tokens)], check=True, capture_output=True
        )
        return {path.name: path.read_text() for path in (*digests.iterdir(), *tokens.iterdir())}

    digests.mkdir()
    tokens.mkdir()
    first = make()
    assert {path.name for path in digests.iterdir()} == {f"{server}.yaml"}
    assert {path.name for path in tokens.iterdir()} == set(roles)
    assert make() == first
    assert not any(first[name].strip() in first[f"{server}.yaml"] for name in roles)
    entries = yaml.safe_load(first[f"{server}.yaml"])["tokens"]
    assert {entry["name"]: entry["role"] for entry in entries} == roles
    assert {oct(os.stat(path).st_mode & 0o777) for path in tmp_path.glob("*/*")} == {"0o400"}


def test_a_container_sees_only_its_own_tokens_or_digests() -> None:
    """The jobs that make them excepted, which are the only ones that may write."""
    seen: dict[str, set[str]] = {}
    for name, service in services().items():
        for mount in service.get("volumes", []):
            source, path = mount.split(":")[:2]
            if re.search("tokens|digests", source) and not source.startswith("."):
                assert name in JOBS - {"statements"} or mount.endswith(":ro"), f"{name}: {mount}"
                assert name in JOBS or path == "/run/tamis"
                seen.setdefault(source, set()).add(name)
    assert seen == {
        "registry-digests": {"registry-tokens", "registry"},
        "operator-tokens": {"registry-tokens", "statements"},
        "edge-digests": {"edge-tokens", "edge-a", "edge-b"},
        "sender-tokens": {"edge-tokens", "replay"},
    }
    # A new volume gets the owner of a directory that the image has.
    assert (
        "install -d -o tamis -g tamis -m 700 /data /run/tamis"
        in (REPOSITORY / "deploy/images/root.sh").read_text()
    )


def test_the_replayed_statements_are_those_of_the_demo_with_shorter_times() -> None:
    """The replay is twenty times as fast as the recording."""
    seconds = {"SECOND": 1, "MINUTE": 60, "seconds": 1, "minutes": 60}

    def spans(path: str) -> list[float]:
        text = (REPOSITORY / path).read_text()
        text = text[text.index("CREATE ALERT") :].replace(" max_delay = '2 seconds',", "")
        found = re.findall(r"'([0-9.]+)' (SECOND|MINUTE)|'([0-9.]+) (seconds|minutes)'", text)
        return [float(a or c) * seconds[b or d] for a, b, c, d in found]

    original, replayed = spans("demo/alerts.sql"), spans("deploy/compose/alerts.sql")
    assert replayed == [span / 20 for span in original] and len(original) > 5


def test_every_secret_is_made_by_the_script_and_ignored_by_git(tmp_path: Path) -> None:
    secure = load("docker-compose.secure.yml")
    used = {name for service in secure["services"].values() for name in service.get("secrets", [])}
    assert used == set(secure["secrets"])
    paths = [Path(secret["file"]) for secret in secure["secrets"].values()]
    assert {str(path.parent) for path in paths} == {"deploy/compose/secrets"}
    assert "/deploy/compose/secrets/" in (REPOSITORY / ".gitignore").read_text().splitlines()
    make_secrets.main(tmp_path / "secrets")
    made = {path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()}
    assert {path.name for path in paths} <= set(made)
    make_secrets.main(tmp_path / "secrets")
    assert {path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()} == made
    assert not any(made[f"mqtt_{name}"].strip() in made["mqtt_users"] for name in make_secrets.MQTT_USERS)


def test_each_principal_of_the_secure_fleet_gets_its_own_password() -> None:
    users = {}
    for name, service in services("docker-compose.secure.yml").items():
        environment = service.get("environment", {})
        if user := environment.get("TAMIS_KAFKA_SASL_USERNAME"):
            users[name] = user
            secret = f"kafka_{user}"
            assert environment["TAMIS_KAFKA_SASL_PASSWORD_FILE"] == f"/run/secrets/{secret}"
            assert secret in service["secrets"]
    clients = {n for n, s in services().items() if "TAMIS_KAFKA_BOOTSTRAP" in s.get("environment", {})}
    assert set(users) == clients
    assert set(users.values()) == set(make_secrets.KAFKA_USERS) == set(kafka_users.USERS)
    assert set(users.values()) <= set(PRINCIPALS)


def test_the_two_settings_of_kafka_differ_in_security_only() -> None:
    def read(name: str) -> dict[str, str]:
        lines = (REPOSITORY / "deploy/compose/kafka" / name).read_text().splitlines()
        return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))

    plain, secure = read("server.properties"), read("secure.properties")
    assert set(plain) <= set(secure)
    differing = {name for name in plain if plain[name] != secure[name]}
    assert differing <= {
        "listeners",
        "advertised.listeners",
        "inter.broker.listener.name",
        "listener.security.protocol.map",
    }


def test_services_answer_to_the_names_under_which_others_call_them() -> None:
    """A service refuses requests for other host names than its own."""
    targets = re.findall(r"([\w-]+):9464", (REPOSITORY / "deploy/prometheus/prometheus.yml").read_text())
    assert {"registry", "edge-a", "joiner", "alerts"} <= set(targets)
    for name in targets:
        assert services()[name]["hostname"] == name
