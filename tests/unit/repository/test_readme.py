"""The README shows the actual output of the commands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from tamis.cli import main

README = Path(__file__).resolve().parents[3] / "README.md"


FIRST = README.parent / "demo" / "first"
EXPLAIN = README.parent / "docs" / "explain.md"


def shown(pattern: str) -> str:
    """The block of the README that the pattern stands for."""
    found = re.search(pattern, README.read_text(), re.DOTALL)
    assert found
    return found[1]


def test_the_first_query_is_the_file_and_is_explained_as_shown() -> None:
    assert shown(r"```sql\n(.*?)```") == (FIRST / "alerts.sql").read_text()
    result = CliRunner().invoke(main, ["explain", str(FIRST / "alerts.sql")])
    assert result.exit_code == 0
    assert result.output.rstrip() == shown(r"```text\n(alert condensation.*?)```").rstrip()


def test_the_first_query_is_verified_as_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(README.parent)
    arguments = shown(r"```sh\ntamis (verify demo/first[^\n]*)\n```").split()
    result = CliRunner().invoke(main, arguments)
    assert (result.exit_code, result.stdout) == (0, shown(r"```text\n(condensation  640.*?)```"))


def test_the_page_on_explain_shows_the_output_of_explain(tmp_path: Path) -> None:
    page = EXPLAIN.read_text()
    accepted, refused, plan, _ = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    (query,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    (tmp_path / "query.sql").write_text(query)
    runs = (
        ([str(FIRST / "alerts.sql")], 0, accepted),
        ([str(tmp_path / "query.sql")], 1, refused),
        ([str(FIRST / "alerts.sql"), "--plan"], 0, plan),
    )
    for arguments, code, expected in runs:
        result = CliRunner().invoke(main, ["explain", *arguments])
        assert (result.exit_code, result.stdout) == (code, expected)
