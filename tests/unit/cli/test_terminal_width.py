"""Output of commands in a narrow terminal."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import termios

from tests.unit.cli.answering import answering

TOPIC = "tamis.stream.temperature_of_cold_stores.1"
NAME = "temperature_of_cold_stores"
STREAM = {"name": NAME, "kind": "raw", "shards": [], "topics": [TOPIC]}
STREAM |= {"alerts": ["too_warm"], "why": []}


def in_terminal(width: int, *arguments: str) -> str:
    """The standard output of a command in a terminal of this width."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (30, width))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    command = [sys.executable, "-P", "-m", "tamis.cli", *arguments]
    subprocess.run(command, stdout=slave, env={**environment, "TERM": "xterm"}, check=True, timeout=60)
    os.close(slave)
    with os.fdopen(master, "rb") as shown:
        return os.read(shown.fileno(), 65536).decode()


def test_no_name_is_cut_off() -> None:
    with answering({"/v1/streams": [STREAM]}) as url:
        shown = in_terminal(50, "get", "streams", "--registry", url)
    heading, *lines = re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines()
    starts = [heading.index(one) for one in heading.split()]
    columns = zip(starts, [*starts[1:], 50], strict=True)
    cells = ["".join(line[start:end].strip() for line in lines) for start, end in columns]
    assert cells == [NAME, "raw", "0/0", TOPIC, "too_warm", ""]


def test_the_reasons_of_the_joiner_are_wrapped_below_its_table() -> None:
    why = f"shard air:roof/air has had nothing new for 60 s; joins wait for it: tamis drop shard {NAME}"
    one = {"topic": TOPIC, "frontier": None, "tuples": 12, "why": [why]}
    joiner = {"state": "running", "why": [], "plan": 3, "partitions": [], "topics": [one]}
    with answering({"/v1/joiner": joiner}) as url:
        shown = re.sub(r"\x1b\[[0-9;]*m", "", in_terminal(60, "get", "joiner", "--registry", url))
    table, _, notes = shown.replace("\r", "").partition("\n\n")
    lines = notes.splitlines()
    assert "WHY" not in table and max(map(len, lines)) <= 60 and len(lines) > 2
    assert " ".join(line.strip() for line in lines) == f"{TOPIC}: {why}"


def test_nothing_is_said_where_there_is_nothing() -> None:
    with answering({"/v1/edges": []}) as url:
        command = [sys.executable, "-P", "-m", "tamis.cli", "get", "edges", "--registry", url]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert (done.stdout.split()[0], done.stderr) == ("EDGE", "there are no edges\n")
