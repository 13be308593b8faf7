"""What the README shows is what the commands print."""

from __future__ import annotations

import re
from pathlib import Path

from click.testing import CliRunner

from tamis.cli import main

README = Path(__file__).resolve().parents[2] / "README.md"


def test_the_first_query_is_explained_as_shown(tmp_path: Path) -> None:
    text = README.read_text()
    sql = re.search(r"```sql\n(.*?)```", text, re.DOTALL)
    shown = re.search(r"```text\n(alert condensation.*?)```", text, re.DOTALL)
    assert sql and shown
    (tmp_path / "alerts.sql").write_text(sql[1])
    result = CliRunner().invoke(main, ["explain", str(tmp_path / "alerts.sql")])
    assert result.exit_code == 0
    assert result.output.rstrip() == shown[1].rstrip()
