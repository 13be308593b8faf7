"""Cases of answers: SQL and a command, and the whole answer of Tamis.

The cases are in tests/fixtures/sql/answers. A case has

- a title: `---- title`;
- SQL, which becomes the file alerts.sql;
- lines of other files, if it needs any: `--@ air.csv station,ts,x`;
- a command, if it isn't `explain alerts.sql`: `--$ verify alerts.sql --input air=air.csv`;
- the answer: `--| `, first the exit code, then standard output and standard error.

`python -m tests.unit.answers.answer_cases` writes all answers anew. Read the difference before you commit it.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner

from tamis.cli import main

CASES = Path(__file__).resolve().parents[2] / "fixtures" / "sql" / "answers"
DEFAULT = "explain alerts.sql"


@dataclass(frozen=True)
class Case:
    """One case; `files`: the contents by name, without alerts.sql. `answer`: the lines that are expected."""

    title: str
    sql: str
    files: dict[str, str]
    command: str
    answer: tuple[str, ...]

    def answered(self, directory: Path) -> list[str]:
        """The answer of the command in an empty directory."""
        for name, content in {"alerts.sql": self.sql, **self.files}.items():
            (directory / name).write_text(content, encoding="utf-8")
        here = Path.cwd()
        os.chdir(directory)
        try:
            result = CliRunner().invoke(main, self.command.split())
        finally:
            os.chdir(here)
        return [f"exit {result.exit_code}", *(result.stdout + result.stderr).splitlines()]


def cases() -> Iterator[tuple[str, Case]]:
    """All cases, each with the name of its file."""
    for path in sorted(CASES.glob("*.sql")):
        for block in _blocks(path.read_text(encoding="utf-8")):
            yield path.stem, _case(block)


def _blocks(text: str) -> list[str]:
    return re.split(r"^---- ", text, flags=re.MULTILINE)[1:]


def _case(block: str) -> Case:
    title, *lines = block.splitlines()
    files: dict[str, str] = {}
    for line in lines:
        if line.startswith("--@ "):
            name, _, content = line[4:].partition(" ")
            files[name] = files.get(name, "") + content + "\n"
    command = next((line[4:] for line in lines if line.startswith("--$ ")), DEFAULT)
    answer = tuple(line[4:] for line in lines if line.startswith("--|"))
    sql = "\n".join(line for line in lines if not line.startswith(("--@ ", "--$ ", "--|")))
    return Case(title, sql + "\n", files, command, answer)


def _write() -> None:
    for path in sorted(CASES.glob("*.sql")):
        text = path.read_text(encoding="utf-8")
        written = [text.partition("---- ")[0]]
        for block in _blocks(text):
            with tempfile.TemporaryDirectory() as directory:
                answer = _case(block).answered(Path(directory))
            kept = [line for line in block.splitlines() if not line.startswith("--|")]
            written.append(
                "\n".join([f"---- {kept[0]}", *kept[1:], *(f"--| {line}".rstrip() for line in answer)]) + "\n"
            )
        path.write_text("".join(written), encoding="utf-8")


if __name__ == "__main__":
    _write()
