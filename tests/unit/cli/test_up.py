"""Inputs that `tamis up` refuses before it starts a process."""

from __future__ import annotations

import io
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from rich.console import Console

from tamis.cli import main
from tamis.cli.fleet.up import StartProgress, _addresses, _edge_spec, _metrics_ports, _sink_rights
from tamis.errors import InputError, UnavailableError
from tamis.local.fleet import EdgeSpec, Fleet, FleetSpec
from tamis.local.service_process import free_ports
from tamis.web.registry_client import difference


@pytest.mark.parametrize("names", [("a", "a"), ("registry",), ("a", "kafka")])
def test_no_two_processes_of_a_fleet_have_one_name(tmp_path: Path, names: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match=f"would be called '{names[-1]}'"):
        Fleet(FleetSpec(tmp_path / "fleet", [EdgeSpec(name) for name in names]), print)
    assert not (tmp_path / "fleet").exists()


@pytest.fixture
def handlers() -> Iterator[None]:
    """Handlers of signals as they were before."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("handlers")
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
    result = CliRunner().invoke(main, ["up", str(tmp_path / "alerts.sql")])
    assert (result.exit_code, len(stopped)) == (0, 1)


@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize("secure", [False, True])
def test_the_fleet_is_as_secure_as_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, secure: bool
) -> None:
    asked: list[bool] = []

    def start(fleet: Fleet, *_: object) -> None:
        asked.append(fleet.spec.secure)
        raise UnavailableError("enough")

    monkeypatch.setattr(Fleet, "start", start)
    (tmp_path / "alerts.sql").write_text("SHOW ALERTS")
    option = ["--secure"] if secure else []
    CliRunner().invoke(main, ["up", str(tmp_path / "alerts.sql"), *option])
    assert asked == [secure]


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


def test_metrics_have_the_ports_that_were_asked_for(tmp_path: Path) -> None:
    port, other = free_ports(2)
    asked = _metrics_ports((f"joiner={port}", f"edge={other}"))
    spec = FleetSpec(tmp_path / "fleet", [EdgeSpec("edge")], registry_port=1, metrics_ports=asked)
    fleet = Fleet(spec, print)
    for name in ("joiner", "edge", "alerts"):
        fleet._add(name, [])
    assert fleet.telemetry["joiner"] == f"http://127.0.0.1:{port}"
    assert fleet.processes["edge"].environment["TAMIS_TELEMETRY_PORT"] == str(other)
    assert fleet.telemetry["alerts"] not in (fleet.telemetry["joiner"], fleet.telemetry["edge"])
    fleet._add("registry", [], telemetry=1)
    fleet.registry_url = "http://127.0.0.1:8181"
    assert "TAMIS_REGISTRY" not in _addresses(fleet)
    fleet.registry_url = "http://127.0.0.1:8182"
    said = _addresses(fleet)
    assert "\n  export TAMIS_REGISTRY=http://127.0.0.1:8182\n" in said
    for name in ("joiner", "edge", "alerts", "registry"):
        assert f"  {name:<10} {fleet.telemetry[name]}/metrics\n" in said
    for wrong, message in {
        "joiner": "names no port",
        "joiner=0": "names no port",
        "joiner=65536": "names no port",
        "=9101": "names no port",
        f"alerts={port}": "repeats a service or a port",
    }.items():
        with pytest.raises(InputError, match=message):
            _metrics_ports((f"joiner={port}", wrong))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", other))
        taken.listen()
        with pytest.raises(UnavailableError, match=f"port {other} is in use"):
            _metrics_ports((f"edge={other}",))
    unknown = FleetSpec(tmp_path / "second", [EdgeSpec("edge")], metrics_ports={"edgy": 1})
    with pytest.raises(InputError, match="'edgy' has no port of its own for metrics; did you mean 'edge'"):
        Fleet(unknown, print)


def test_progress_of_a_start_is_lines_and_on_a_terminal_what_is_waited_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = io.StringIO()
    for terminal in (False, True):
        console = Console(file=told, force_terminal=terminal, width=100)
        with StartProgress(console) as progress:
            progress.show_waiting({"kafka": "starting"})
            progress.say("kafka ready at [1]")
            progress.show_waiting({"joiner": "Spark is starting", "alerts": "[b]"})
            if terminal:
                assert progress._progress is not None
                progress._progress.refresh()
            progress.show_waiting({})
        progress.say("stopping")
        assert capsys.readouterr().err == ("stopping\n" if terminal else "kafka ready at [1]\nstopping\n")
        shown = click.unstyle(told.getvalue())
        assert ("kafka ready at [1]\n" in shown) is terminal
        assert ("joiner: Spark is starting" in shown and "alerts: [b]" in shown) is terminal


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


def test_sinks_that_write_a_topic_need_rights_and_a_mistake_in_their_file_starts_nothing(
    tmp_path: Path,
) -> None:
    sinks, sql = tmp_path / "sinks.yaml", tmp_path / "alerts.sql"
    sinks.write_text(
        "sinks:\n- {kind: kafka, topic: plant.alarms}\n- {kind: slack, url: 'http://a.example'}\n"
    )
    rights = [(right.principal, right.what) for right in _sink_rights(sinks)]
    assert rights == [(who, "Write on topic plant.alarms") for who in ("alerts", "operator")]
    sinks.write_text("sinks:\n- kind: slack\n  url: http://a.example\n  text: '{{ alrt }}'\n")
    sql.write_text("SHOW ALERTS")
    arguments = ["up", str(sql), "--alerts", str(sinks), "--directory", str(tmp_path / "fleet")]
    result = CliRunner().invoke(main, arguments)
    assert isinstance(result.exception, InputError) or result.exit_code == 2
    said = result.output + str(result.exception)
    assert "line 4: sinks.0.slack.text: " in said and "there is no 'alrt'" in said
    assert not (tmp_path / "fleet").exists()
