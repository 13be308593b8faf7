"""Names that are slightly wrong on the command line: the message has the right one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tamis.cli import main

SQL = "CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, t DOUBLE, WATERMARK FOR ts AS ts);\n" + "\n".join(
    f"CREATE ALERT {name} AS SELECT k FROM air WHERE t > 40;" for name in ("boiling", "melting")
)


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["explain", "FILE", "--query", "boilin"], "boiling"),
        (["run", "FILE", "--query", "meltin", "--input", "air=x.csv"], "melting"),
        (["run", "FILE", "--query", "melting", "--input", "aire=x.csv"], "air"),
        (["size", "FILE", "--keys", "aire=3"], "air"),
    ],
)
def test_the_meant_name_is_suggested(tmp_path: Path, arguments: list[str], meant: str) -> None:
    file = tmp_path / "alerts.sql"
    file.write_text(SQL)
    result = CliRunner().invoke(main, [str(file) if one == "FILE" else one for one in arguments])
    assert result.exit_code == 2
    assert f"did you mean '{meant}'?" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["explian", "x.sql"], "there is no command 'explian'; did you mean 'explain'?"),
        (["frobnicate"], "there is no command 'frobnicate'; `tamis --help` lists them"),
        (["get", "alrts"], "'sinks'; did you mean 'alerts'?"),
        (["completion", "bsh"], "did you mean 'bash'?"),
        (["token", "--name", "ci", "--role", "wrter"], "did you mean 'writer'?"),
    ],
)
def test_the_meant_command_or_choice_is_suggested(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_python_suggests_the_meant_function() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import tamis; tamis.verfy"], capture_output=True, text=True, check=False
    )
    last = done.stderr.splitlines()[-1]
    assert last == "AttributeError: module 'tamis' has no attribute 'verfy'. Did you mean: 'verify'?"
