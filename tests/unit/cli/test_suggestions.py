"""Names that are slightly wrong on the command line: the message has the right one."""

from __future__ import annotations

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
