"""A mistake in a text shows its line with a mark under the place, in every command that reads SQL."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tamis.cli import main
from tamis.errors import SqlErrors
from tamis.query.model import Catalog
from tamis.query.parse import parse

SQL = """CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, t DOUBLE, WATERMARK FOR ts AS ts);
CREATE ALERT hot AS
SELECT k, heat FROM air
\tWHERE k = '日本' AND cold > 3;
"""
MARKED = """{file}:3:11: no stream in FROM has a column 'heat'; known names: k, t, ts
  SELECT k, heat FROM air
            ^
{file}:4:21: no stream in FROM has a column 'cold'; known names: k, t, ts
   WHERE k = '日本' AND cold > 3;
                        ^
"""


@pytest.mark.parametrize(
    "command", ["explain", "run", "verify", "size", "up", "plot --value t", "explain --json"]
)
def test_each_mistake_is_marked(tmp_path: Path, command: str) -> None:
    file = tmp_path / "alerts.sql"
    file.write_text(SQL)
    name, *options = command.split()
    result = CliRunner().invoke(main, [name, str(file), *options])
    assert result.exit_code == 2
    assert MARKED.format(file=file) in result.stderr


def test_a_mistake_in_a_condition_is_marked() -> None:
    result = CliRunner().invoke(main, ["match", "a > 3 AND", "b < 3"])
    assert result.exit_code == 2
    assert result.stderr.splitlines()[1:] == ["  a > 3 AND", "           ^"]


def test_a_line_is_cut_around_its_place() -> None:
    many = ", ".join(str(number) for number in range(500))
    with pytest.raises(SqlErrors) as raised:
        parse(f"CREATE PATTERN p VALUES ({many}, x, {many});", Catalog())
    (error,) = raised.value.errors
    line, mark = error.shown.splitlines()[1:]
    assert line[mark.index("^")] == "x" and len(line) < 120 and line.startswith("  …") and line.endswith("…")


def test_signs_that_move_the_cursor_are_not_shown() -> None:
    with pytest.raises(SqlErrors) as raised:
        parse("CREATE ALERT q AS SELECT \x1b[2J FROM \r air;", Catalog())
    assert all(sign.isprintable() or sign == "\n" for sign in raised.value.shown.partition("\n")[2])
