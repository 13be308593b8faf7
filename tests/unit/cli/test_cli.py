"""The command `tamis`: its list of subcommands, and the exit codes of errors."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tamis.cli import main, modules, summary
from tamis.cli.services import kafka as kafka_module
from tamis.errors import NotAcceptedError, TamisError

_NAMES = main.list_commands(click.Context(main))


@pytest.mark.parametrize("name", _NAMES)
def test_each_subcommand_says_in_help_what_it_does(name: str) -> None:
    found = summary(modules()[name], name)
    assert found and found.split()[0] in CliRunner().invoke(main, ["--help"]).output


def test_help_imports_no_subcommand() -> None:
    code = (
        "import sys, tamis.cli; tamis.cli.main(['--help'], standalone_mode=False);"
        "print([m for m in sys.modules if m.startswith('tamis.cli.')])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.splitlines()[-1] == "[]"


def test_a_package_that_is_not_installed_is_a_message_and_exit_code_2() -> None:
    code = "import sys; sys.modules['sqlglot'] = None; import tamis.cli; tamis.cli.main(['explain', 'q.sql'])"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert (
        "Error: the Python package 'sqlglot' is not installed; install Tamis with the extra" in ended.stderr
    )


def test_a_tamis_error_is_a_message_and_exit_code_2(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def fails() -> None:
        raise TamisError("it broke", where="line 3", hint="mend it")

    monkeypatch.setattr(kafka_module, "command", fails)
    result = CliRunner().invoke(main, ["kafka"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "Error: line 3: it broke; mend it\n"


def test_a_query_that_is_not_accepted_is_exit_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def refuses() -> None:
        raise NotAcceptedError("not bounded", where="alert q")

    monkeypatch.setattr(kafka_module, "command", refuses)
    result = CliRunner().invoke(main, ["kafka"])
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", "Error: alert q: not bounded\n")


def test_a_full_disk_is_a_message_and_exit_code_2() -> None:
    command = [sys.executable, "-m", "tamis.cli", "explain", "--json", "/dev/null"]
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (
        2,
        "Error: the system refuses: No space left on device; make room, or write to another disk\n",
    )


def test_a_folder_that_cannot_be_made_is_a_message_and_exit_code_2() -> None:
    result = CliRunner().invoke(main, ["kafka", "--directory", "/dev/null/kafka"])
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: /dev/null/kafka: the system refuses: ")


def test_an_unknown_subcommand_is_exit_code_2() -> None:
    assert CliRunner().invoke(main, ["nonsense"]).exit_code == 2


def test_an_interrupt_is_exit_code_130(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(kafka_module, "command", interrupted)
    assert CliRunner().invoke(main, ["kafka"]).exit_code == 130


@pytest.mark.parametrize(("wanted", "code"), [(None, 2), ("75", 75), ("0", 2), ("300", 2), ("many", 2)])
def test_what_may_pass_by_itself_can_have_an_exit_code_of_its_own(
    tmp_path: Path, wanted: str | None, code: int
) -> None:
    """A supervisor restarts such a service, but not one with wrong input."""
    (tmp_path / "alerts.sql").write_text("SHOW ALERTS")
    environment = {"TAMIS_EXIT_UNAVAILABLE": wanted, "TAMIS_REGISTRY": "http://127.0.0.1:1"}
    away = CliRunner(env=environment).invoke(main, ["apply", str(tmp_path / "alerts.sql")])
    assert (away.exit_code, "the registry does not answer" in away.output) == (code, True)
    wrong = CliRunner(env=environment).invoke(main, ["apply", str(tmp_path / "none.sql")])
    assert wrong.exit_code == 2


def test_no_summary_of_a_command_is_cut_off() -> None:
    """Each is a whole sentence, of at most two lines of 80 columns."""
    shown = CliRunner().invoke(main, ["--help"], terminal_width=80).stdout.partition("Commands:\n")[2]
    for name, module in modules().items():
        told = summary(module, name)
        assert re.fullmatch(r"[A-Z][^.]*(?:\.[^ .][^.]*)*\.", told), (name, told)
        assert len(told) <= 2 * 65, (name, told)
        assert told in " ".join(shown.split()), name
