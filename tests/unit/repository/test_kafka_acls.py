"""The ACLs in deploy/kafka and in the docs are those that the services need."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from deploy.kafka.acls import FILES, HERE

from tamis.messaging.rights import PRINCIPALS, RIGHTS
from tamis.messaging.topics import SPECS


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_file_is_as_the_rights_say(file: Path) -> None:
    assert file.read_text() == FILES[file](), "run `python -m deploy.kafka.acls`"


def test_no_right_is_given_twice_and_each_names_a_topic_of_the_fleet() -> None:
    rights = [(r.principal, r.resource, r.name, r.operation) for r in RIGHTS]
    assert len(set(rights)) == len(rights)
    assert {principal for principal, *_ in rights} == set(PRINCIPALS)
    names = {spec.name.partition("<")[0] for spec in SPECS} | {"tamis-alerts-episodes-changelog"}
    for right in RIGHTS:
        if right.resource == "topic":
            fits = (name.startswith(right.name) if right.prefixed else name == right.name for name in names)
            assert any(fits), right


def test_the_users_of_strimzi_have_the_same_acls() -> None:
    users = list(yaml.safe_load_all((HERE / "kafka-users.yaml").read_text()))
    acls = yaml.safe_load((HERE / "acls.yaml").read_text())
    assert {user["metadata"]["name"]: user["spec"]["authorization"]["acls"] for user in users} == acls


def test_the_script_passes_every_right_to_kafka(tmp_path: Path) -> None:
    """kafka-acls.sh is a stand-in that writes down its arguments."""
    said = tmp_path / "said"
    tool = tmp_path / "kafka-acls.sh"
    tool.write_text(f'#!/bin/sh\necho "$@" >> {said}\n')
    tool.chmod(0o755)
    environment = {
        "PATH": f"{tmp_path}:/usr/bin:/bin",
        "BOOTSTRAP": "k:1",
        "EDGE": "User:CN=e",
        "SOURCES": "a b",
    }
    subprocess.run([str(HERE / "create-acls.sh")], env=environment, check=True)
    calls = said.read_text().splitlines()
    assert sum(call.count("--operation") for call in calls) == len(RIGHTS) + 2
    assert all(call.startswith("--bootstrap-server k:1 --add --allow-principal User:") for call in calls)
    edge = "--bootstrap-server k:1 --add --allow-principal User:CN=e --operation"
    assert f"{edge} Write --topic tamis.acks --resource-pattern-type literal" in calls
    assert f"{edge} Read --topic b --resource-pattern-type literal" in calls
    if shutil.which("shellcheck"):
        subprocess.run(["shellcheck", str(HERE / "create-acls.sh")], check=True)
