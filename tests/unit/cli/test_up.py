"""Inputs that `tamis up` refuses before it starts a process."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tamis.cli import main
from tamis.cli.up import _edge_spec
from tamis.errors import InputError
from tamis.local.fleet import EdgeSpec, Fleet, FleetSpec
from tamis.web.registry_client import difference


@pytest.mark.parametrize("names", [("a", "a"), ("registry",), ("a", "kafka")])
def test_no_two_processes_of_a_fleet_have_one_name(tmp_path: Path, names: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match=f"would be called '{names[-1]}'"):
        Fleet(FleetSpec(tmp_path / "fleet", [EdgeSpec(name) for name in names]), print)
    assert not (tmp_path / "fleet").exists()


def test_the_fleet_is_stopped_though_nobody_reads_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with `tamis up alerts.sql 2>&1 | tee log`, where Ctrl-C is for both."""
    stopped: list[Fleet] = []

    def echo(text: str, err: bool = False) -> None:
        if err:
            raise BrokenPipeError

    def stop(fleet: Fleet) -> None:
        stopped.append(fleet)

    monkeypatch.setattr(click, "echo", echo)
    monkeypatch.setattr(Fleet, "start", lambda *_: os.kill(os.getpid(), signal.SIGINT))
    monkeypatch.setattr(Fleet, "stop", stop)
    (tmp_path / "alerts.sql").write_text("SHOW ALERTS")
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        result = CliRunner().invoke(main, ["up", str(tmp_path / "alerts.sql")])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert (result.exit_code, len(stopped)) == (0, 1)


def test_an_edge_is_called_as_its_file_says(tmp_path: Path) -> None:
    path = tmp_path / "kitchen.yaml"
    path.write_text("name: cellar\n")
    assert _edge_spec(path).name == "cellar"
    path.write_text("batch: {rows: 10}\n")
    assert _edge_spec(path).name == "kitchen"


def test_an_edge_gets_the_rights_of_its_sources_on_the_fleet_s_kafka(tmp_path: Path) -> None:
    path = tmp_path / "kitchen.yaml"
    path.write_text(
        """sources:
  - {kind: kafka, name: a, stream: air, topic: raw.air}
  - {kind: kafka, name: b, stream: air, topic: raw.b, group: mine}
  - {kind: kafka, name: c, stream: air, topic: raw.c, bootstrap: "elsewhere:9092", group: other}
"""
    )
    assert [right.what for right in _edge_spec(path).rights] == [
        "Read on topic raw.air",
        "Read on topic raw.b",
        "Read on group mine",
    ]
    assert {right.principal for right in _edge_spec(path).rights} == {"edge"}


def test_mistakes_in_files_are_told_with_exit_code_2(tmp_path: Path) -> None:
    sql, edge = tmp_path / "alerts.sql", tmp_path / "edge.yaml"
    sql.write_bytes(b"\xff")
    edge.write_text("nam: cellar\n")
    result = CliRunner().invoke(main, ["up", str(sql)])
    assert (result.exit_code, "is not UTF-8 at byte 0" in result.output) == (2, True)
    sql.write_text("SHOW ALERTS")
    result = CliRunner().invoke(main, ["up", str(sql), "--edge", str(edge)])
    assert (result.exit_code, "line 1: nam" in result.output) == (2, True)


@pytest.mark.parametrize(
    ("kind", "asked", "how"),
    [
        ("alert", "CREATE ALERT hot AS\nSELECT 35", "write CREATE OR REPLACE ALERT hot there, and run: "),
        ("alert", "CREATE OR  REPLACE ALERT hot AS\nSELECT 35", "run: "),
        ("stream", "CREATE STREAM hot AS\nSELECT 35", "write DROP STREAM hot before it, and run: "),
    ],
)
def test_what_stays_in_service_is_shown_with_the_difference(kind: str, asked: str, how: str) -> None:
    outcome = {
        "statement": f"create {kind}",
        "result": "kept",
        "kind": kind,
        "name": "hot",
        "where": "my alerts.sql:3:1",
        "in_service": asked.replace("35", "50"),
        "asked": asked,
    }
    said = difference(outcome, "http://127.0.0.1:8181")
    assert f"{kind} 'hot' stays as it is in service; my alerts.sql:3:1 differs:" in said
    assert "-SELECT 50\n" in said and "+SELECT 35\n" in said
    assert said.endswith(f"{how}tamis apply 'my alerts.sql' --registry http://127.0.0.1:8181")
