"""Keys, names and values that would steer the terminal of somebody who looks at them."""

from __future__ import annotations

import ast
import csv
import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner
from tests.unit.cli.answering import answering

from tamis.cli import main
from tamis.cli.common.state_tables import HEADINGS
from tamis.cli.manage.watch import line
from tamis.cli.shell.newest_readings import NewestReadings
from tamis.cli.shell.statements import show
from tamis.errors import SqlError
from tamis.expressions.nodes import Type

FORGED = "2026-01-01T00:00:00Z [info] all is well"
# A title, the clipboard, a link, an image, C1, backspaces, an order of writing, separators of lines.
HOSTILE = (
    "k\x1b]0;x\x07\x1b]52;c;eA==\x07\x1b]8;;http://x\x1b\\y\x1bPq#0\x1b\\\x9b2J\x9d0;x\x9c\b\b\x7f\u202eno\u2066"
    f"\u2028[red]:boom:[/]$\\frac$\r\n{FORGED}\n\r{FORGED}\x85{FORGED}\u200f"
)
TEMPERATURES = (
    "CREATE STREAM t (k VARCHAR KEY, ts TIMESTAMP, v DOUBLE CHECK (v BETWEEN 0 AND 99), "
    "WATERMARK FOR ts AS ts) WITH (keys = 9);"
)
WARM = f"{TEMPERATURES} CREATE ALERT warm AS SELECT t.k, t.ts, t.v FROM t WHERE t.v > 1;"


def harmless(shown: str) -> str:
    """The text without the colours and cursor movements of Tamis' own. It has nothing else but text."""
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown).replace("\r\n", "\n")
    found = {repr(one) for one in text if one not in "\n\t" and not one.isprintable()}
    assert not found, f"{found} in {text!r}"
    assert not [one for one in text.splitlines() if one.startswith(FORGED[:20])], text
    return text


def in_terminal(folder: Path, *arguments: str) -> str:
    """What a command shows on a terminal, both of its outputs."""
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "400", "LINES": "40"}
    command = [sys.executable, "-P", "-m", "tamis.cli", *arguments]
    process = subprocess.Popen(command, cwd=folder, stdout=slave, stderr=slave, env=environment)
    os.close(slave)
    shown, deadline = b"", time.monotonic() + 120
    while time.monotonic() < deadline:
        if select.select([master], [], [], 0.2)[0]:
            try:
                shown += os.read(master, 65_536)
            except OSError:  # the command has ended
                break
    os.close(master)
    assert process.wait(10) in (0, 1, 2)
    return shown.decode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with statements and a recording whose keys are hostile."""
    made = tmp_path_factory.mktemp("hostile")
    (made / "warm.sql").write_text(WARM)
    rows = [(HOSTILE if n % 2 else "k", f"2026-01-01T00:00:{n:02}Z", n) for n in range(1, 9)]
    with (made / "t.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([("k", "ts", "v"), *rows])
    (made / "t.ndjson").write_bytes(
        b"".join(orjson.dumps(dict(zip(["k", "ts", "v"], row, strict=True))) + b"\n" for row in rows)
    )
    return made


def hostile(document: Any) -> Any:
    """The document with hostile text wherever it has text that isn't a word of the protocol."""
    if isinstance(document, dict):
        return {name: hostile(value) for name, value in document.items()}
    if isinstance(document, list):
        return [hostile(one) for one in document]
    return HOSTILE if document == "*" else document


SHARD = {"shard": "*", "state": "*", "plan": 3, "activation": 1_700_000_000_000_000, "why": "*"}
EPISODE = {"episode": "*", "alert": "*", "key": ["*", None], "start": 0, "end": 1, "alarms": 2}
LETTER = {"time": 0, "service": "*", "edge": "*", "stream": "*", "source": "*", "source_partition": 0}
SILENCE = {"id": "*", "state": "active", "from": 0, "until": 1, "by": "*", "comment": "*", "alerts": ["*"]}
JOINER = {"state": "*", "why": ["*"], "plan": 3, "partitions": [], "process": "*"}
PATTERN = {"name": "*", "kind": "*", "members": [], "readers": ["*"], "why": ["*"]}
ALERT = {"name": "*", "state": "*", "plan": 3, "activations": {}, "why": ["*"]}
STREAM = {"name": "*", "kind": "raw", "shards": [], "topics": ["*"], "alerts": ["*"], "why": ["*"]}
DOCUMENTS: dict[str, Any] = {
    "streams": [STREAM],
    "alerts": [ALERT],
    "patterns": [PATTERN],
    "edges": [{"name": "*", "state": "*", "why": ["*"], "failing": {HOSTILE: "*"}, "shards": [SHARD]}],
    "episodes": {
        "episodes": [{**EPISODE, "severity": "*", "acknowledged": {"by": "*"}, "silenced": None}],
        "complete": True,
    },
    "dead-letters": {
        "records": [
            {**LETTER, "source_offset": 1, "sink": "*", "text": "*", "reason": "*", "error": "*"},
        ],
        "unreadable": 0,
        "complete": True,
    },
    "silences": [{**SILENCE, "severities": ["*"], "labels": {HOSTILE: ["*"]}, "keys": [["*", 1]]}],
    "acknowledgements": [{"episode": "*", "alert": "*", "key": ["*"], "made": 0, "by": "*", "comment": "*"}],
    "sinks": [{"name": "*", "state": "*", "waiting": 1, "oldest": 0, "why": ["*"]}],
    "joiner": {**JOINER, "topics": [{"topic": "*", "frontier": None, "tuples": 1, "why": ["*"]}]},
    "plans": [
        {"version": 3, "newest": True, "shards": 1, "why": ["*"], "definitions": ["*"], "topics": ["*"]}
    ],
}


@pytest.mark.parametrize("what", HEADINGS)
def test_the_tables_of_get(what: str, folder: Path) -> None:
    answer = hostile(DOCUMENTS[what])
    with answering({f"/v1/{what}": answer}) as url:
        arguments = ["get", what, "--registry", url]
        piped = CliRunner().invoke(main, arguments)
        exact = CliRunner().invoke(main, [*arguments, "--json"])
        shown = in_terminal(folder, *arguments) if what == "episodes" else ""
        json_shown = in_terminal(folder, *arguments, "--json") if what == "alerts" else ""
    assert piped.exit_code == 0, piped.output
    assert "\\x1b]0;x" in harmless(piped.output)
    assert orjson.loads(exact.output) == answer and "\u202e" in exact.output
    for one in (shown, json_shown):
        assert ":boom:" in harmless(one) or not one
    if json_shown:
        assert orjson.loads(json_shown) == answer


def test_an_alarm_and_an_episode_of_watch() -> None:
    record = {"alert": HOSTILE, "key": [HOSTILE], "event_time": 0, "row": {HOSTILE: HOSTILE, "n": 1}}
    assert harmless(line("tamis.alarms", record)).count("\\x1b]52") == 4
    assert "\n" not in line("tamis.alarms", record)
    event = {**record, "event": "opened", "start": 0, "end": 0, "episode": "9d41e07a"}
    assert "\n" not in harmless(line("tamis.episodes", event))


def test_the_rows_of_the_sql_shell(capsys: pytest.CaptureFixture[str]) -> None:
    columns = ((HOSTILE, Type.VARCHAR), ("v", Type.DOUBLE))
    show(NewestReadings("t", columns, [(HOSTILE, 1.0)], complete=True, notices=(HOSTILE,)))
    said = capsys.readouterr()
    assert len(harmless(said.out).splitlines()) == 2
    assert "\\x1b]52" in said.err and "\x1b" not in said.err


@pytest.mark.parametrize(
    ("form", "command"),
    [
        ("csv", ["run", "warm.sql", "--input", "t=t.csv"]),
        ("ndjson", ["omit", "--interval", "1s", "--key", "k", "t.ndjson"]),
    ],
)
def test_rows_on_a_terminal_are_printable_and_in_a_pipe_exact(
    folder: Path, form: str, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    shown = harmless(in_terminal(folder, *command, "--format", form))
    piped = CliRunner().invoke(main, [*command, "--format", form])
    assert piped.exit_code == 0, piped.output
    if form == "ndjson":
        assert HOSTILE in {orjson.loads(one)["k"] for one in piped.stdout_bytes.splitlines()}
        assert HOSTILE in {orjson.loads(one)["k"] for one in shown.splitlines() if one.startswith("{")}
    else:
        assert HOSTILE.encode() in piped.stdout_bytes
        assert "\\x1b]52;c;eA==" in shown


def test_plots(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    arguments = ["plot", "warm.sql", "--input", "t=t.csv", "--value", "v"]
    assert "\\x1b]52" in harmless(CliRunner().invoke(main, arguments).output)
    # A key is no formula, which matplotlib would refuse.
    done = CliRunner().invoke(main, [*arguments, "-o", "plot.svg"])
    assert (done.exit_code, done.output) == (0, "")


@pytest.mark.parametrize("command", ["explain", "run", "verify"])
def test_mistakes_with_names_and_comments_of_somebody_else(folder: Path, command: str) -> None:
    comment = HOSTILE.replace("\r", "").replace("\n", "")
    wrong = f"-- {comment}\n{TEMPERATURES} CREATE ALERT w AS /* {HOSTILE} */\n"
    wrong += f'SELECT t."{HOSTILE[:60]}", t."{HOSTILE[-90:]}" FROM t WHERE t.v > \'{HOSTILE}\';'
    (folder / "wrong.sql").write_text(wrong)
    inputs = [] if command == "explain" else ["--input", "t=t.csv"]
    said = CliRunner().invoke(main, [command, str(folder / "wrong.sql"), *inputs]).output
    assert "\\x1b]0;x" in harmless(said)


def test_an_error_of_sql_names_what_is_wrong_in_one_line() -> None:
    assert "\n" not in str(SqlError(f"there is no column {HOSTILE}"))


def test_the_text_log_has_a_line_for_each_event_and_the_json_log_exact_facts() -> None:
    code = (
        "import sys, logging; from tamis.telemetry import configure_logs, get_logger\n"
        "configure_logs('edge', 'info', sys.argv[1])\n"
        "hostile = sys.argv[2].encode().decode('unicode_escape')\n"
        "get_logger('edge').warning(hostile, key=hostile, keys=[hostile], **{hostile: 1})\n"
        "logging.getLogger('tamis.x').warning('%s', hostile)\n"
        "try: raise ValueError(hostile)\n"
        "except ValueError: get_logger('edge').exception('failed')\n"
    )

    def logged(form: str) -> str:
        command = [sys.executable, "-c", code, form, HOSTILE.encode("unicode_escape").decode()]
        return subprocess.run(command, capture_output=True, text=True, check=True).stderr

    first, second, *failure = harmless(logged("text")).splitlines()
    assert "\\x1b]52" in first and "\\x1b]52" in second and "failed" in failure[0]
    event = orjson.loads(logged("json").splitlines()[0])
    assert (event["event"], event["key"]) == (HOSTILE, HOSTILE)


def test_all_output_of_commands_passes_through_one_module() -> None:
    """A module of the command line that writes by itself would have to think of hostile text again."""
    folder = Path(main.callback.__code__.co_filename).parent  # type: ignore[union-attr]
    # Scripts for shells, and a plot with colours whose labels are printable.
    allowed = {"output.py", "completion.py", "plot.py"}
    writers = {"print", "click.echo", "click.secho", "sys.stdout.write", "sys.stderr.write"}
    found = [
        f"{file.name}:{node.lineno}: {ast.unparse(node.func)}"
        for file in folder.glob("*/*.py")
        if file.name not in allowed
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in writers
    ]
    assert found == []
