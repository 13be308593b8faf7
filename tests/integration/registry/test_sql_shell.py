"""`tamis sql` beside a registry: statements, newest readings, and the shell in a terminal."""

from __future__ import annotations

import errno
import os
import pty
import re
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result
from tests.integration.registry.test_newest_records import send
from tests.stream_records import progress_record

from tamis.cli import main

START = 1_700_000_000_000_000
MISTAKES = [
    ("SELECT tmp FROM air", "column 8", "no stream in FROM has a column 'tmp'"),
    ("SELECT v FROM airs", "column 15", "there is no stream 'airs'; did you mean 'air'?"),
    ("SELECT v\nFROM air WHERE v > 'x'", "line 2, column 16", ""),
    ("SELECT v FROM air JOIN surface ON air.k = surface.k", "column", "a join is not supported here"),
    ("SELECT count(*) FROM air", "column 8", "count(…) is not supported here"),
    ("SELECT v FROM air ORDER BY ts", "column", "the newest reading comes first"),
    ("SELECT v FROM air LIMIT 1000", "column 19", "LIMIT needs a whole number from 1 to 500"),
    ("SHOW ALERTS; CREATE ALERT x AS SELECT nothing FROM air", "line 1, column 39", "'nothing'"),
    ("DELETE FROM air", "column 1", "expected a statement"),
]
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]|\x1b\][^\x07]*\x07")


def reading(number: int, value: float) -> bytes:
    envelope = {"shard": "air:e/s", "plan": 2, "activation": 0}
    return orjson.dumps({"k": f"k{number % 2}", "ts": START + number * 1_000_000, "v": value, "_": envelope})


@pytest.fixture
def running(fresh: str, start: Any, sql: Any) -> Any:
    """A registry with ten readings of `air`, and progress records between them."""
    registry = start(fresh).ready()
    registry.sql(sql())
    now = time.time_ns() // 1_000_000
    written = [(n % 2, now + n, reading(n, 10.0 * n)) for n in range(10)]
    send(fresh, "tamis.stream.air.1", [*written, (0, now + 20, progress_record("air:e/s", 2, 0, 6))])
    return registry


def shell(running: Any, *arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, ["sql", "--registry", running.server.url, *arguments], input=stdin)


def test_select_shows_the_newest_readings_that_fit(running: Any) -> None:
    asked = "SELECT k, ts, v * 2 AS twice FROM air WHERE v > 25 AND k = 'k1' LIMIT 2"
    found = shell(running, "-c", asked)
    assert found.exit_code == 0, found.output
    assert [line.split() for line in found.stdout.splitlines()] == [
        ["k", "ts", "twice"],
        ["k1", "2023-11-14T22:13:29.000Z", "180.0"],
        ["k1", "2023-11-14T22:13:27.000Z", "140.0"],
    ]
    (document,) = orjson.loads(shell(running, "--json", "-c", asked).stdout)
    assert document["rows"] == [["k1", START + 9_000_000, 180.0], ["k1", START + 7_000_000, 140.0]]
    assert (document["columns"], document["complete"]) == (["k", "ts", "twice"], False)
    (whole,) = orjson.loads(shell(running, "--json", "-c", "SELECT * FROM air").stdout)
    assert [row[2] for row in whole["rows"]] == [10.0 * n for n in reversed(range(10))]
    assert whole["complete"] and not whole["notices"]
    nothing = shell(running, "-c", "SELECT * FROM surface")
    assert nothing.exit_code == 0 and "the topics of surface have no readings" in nothing.stderr


def test_readings_that_lack_are_counted(running: Any) -> None:
    now = time.time_ns() // 1_000_000
    deep = reading(10, 1.0).replace(b'"v":1.0', b'"v":1.0,"w":' + b"[" * 300 + b"]" * 300)
    written = [(0, now + 30, deep), (1, now + 31, b"[]"), (1, now + 32, b"{")]
    send(running.bootstrap, "tamis.stream.air.1", written)
    found = shell(running, "-c", "SELECT v FROM air LIMIT 1")
    assert found.exit_code == 0 and found.stdout.split() == ["v", "90.0"]
    assert "1 reading can't be shown: its value is nested deeper than 254 levels" in found.stderr
    assert "2 records in the topics of air can't be read" in found.stderr


def test_statements_change_definitions_one_by_one(running: Any) -> None:
    text = """CREATE FUNCTION twice(x DOUBLE) RETURNS DOUBLE AS x * 2;
CREATE ALERT warm AS SELECT k, v FROM air WHERE v > 30;
SELECT twice(v) AS w FROM air LIMIT 1;
EXPLAIN SELECT k FROM air WHERE v > 40; SHOW ALERTS; EXPLAIN warm;
PAUSE ALERT warm;
DROP ALERT cold;
DROP ALERT warm"""
    found = shell(running, stdin=text)
    assert found.exit_code == 2
    # The registry logs to the same standard output.
    lines = [line for line in found.stdout.splitlines() if " [info " not in line]
    assert lines[0].startswith("function twice created (plan ")
    assert lines[1].startswith("alert warm created (plan ") and "memory bounded" in lines[1]
    assert lines[2:4] == ["w", "180.0"]
    assert lines[4].endswith(": accepted") and any("of tuples with v > 40" in line for line in lines)
    assert any(line.startswith("    topic tamis.stream.air.") for line in lines)
    assert [line.split()[:2] for line in lines if line.startswith(("ALERT", "hot", "warm"))] == [
        ["ALERT", "STATE"],
        ["hot", "starting"],
        ["warm", "starting"],
    ]
    assert "<stdin>:6:12: there is no alert 'cold'" in found.stderr
    states = {one["name"]: one["state"] for one in running.get("alerts")}
    assert states == {"hot": "starting", "warm": "paused"}  # what followed the mistake was not run


def test_mistakes_are_at_their_place(running: Any) -> None:
    for statement, place, what in MISTAKES:
        found = shell(running, "-c", statement)
        assert found.exit_code == 2, statement
        assert place in found.stderr and what in found.stderr, found.stderr
        assert found.stderr.splitlines()[-1].strip() == "^", found.stderr


class Terminal:
    """A process in a pseudo-terminal, and the text that it has written."""

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self.process, self._master, self._text = process, master, ""

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def until(self, expected: str, seconds: float = 60) -> str:
        """The text up to `expected`, which counts as read."""
        deadline = time.monotonic() + seconds
        os.set_blocking(self._master, False)
        while expected not in (shown := _ESCAPES.sub("", self._text)):
            assert time.monotonic() < deadline, f"no {expected!r} in {shown!r}"
            try:
                self._text += os.read(self._master, 65536).decode(errors="replace")
            except BlockingIOError:
                time.sleep(0.02)
            except OSError as error:
                if error.errno == errno.EIO:
                    pytest.fail(f"it has ended, and showed {shown!r} without {expected!r}")
                raise
        before, _, self._text = shown.partition(expected)
        return before + expected


@contextmanager
def terminal(running: Any, home: Path) -> Iterator[Terminal]:
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (30, 100))
    environment = {**os.environ, "HOME": str(home), "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}
    command = [sys.executable, "-P", "-m", "tamis.cli", "sql", "--registry", running.server.url]
    with subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True
    ) as process:
        os.close(slave)
        try:
            yield Terminal(process, master)
        finally:
            with suppress(ProcessLookupError):
                process.kill()
    os.close(master)


def test_the_shell_in_a_terminal(running: Any, tmp_path: Path) -> None:
    with terminal(running, tmp_path) as shown:
        shown.until("tamis>")
        # Keys that follow Tab at once don't take away what it completes.
        shown.type("select v from ai\t where v > 85\r")
        shown.until("->")
        shown.type("limit 3;\r")
        assert "90.0" in shown.until("90.0")
        shown.until("tamis>")
        shown.type("SELECT k,\r  nothing FROM air;\r")
        told = shown.until("known names") + shown.until("^")
        marked = [line.rstrip() for line in told.replace("\r", "").split("\n")]
        mark = marked.index(next(line for line in marked if line.strip() == "^"))
        assert marked[mark - 1] == "    nothing FROM air;" and marked[mark] == "    ^"
        shown.until("tamis>")
        shown.type("show al\t;\r")
        shown.until("starting")
        shown.until("tamis>")
        # What is typed is discarded by Ctrl-C, and the shell goes on.
        shown.type("SELECT\x03")
        shown.until("tamis>")
        shown.type("\\?\r")
        shown.until("Ctrl-R")
        shown.until("tamis>")
        shown.type("\\q\r")
        assert shown.process.wait(30) == 0
    history = tmp_path / ".tamis_history"
    assert "from air where v > 85" in history.read_text() and history.stat().st_mode & 0o77 == 0
