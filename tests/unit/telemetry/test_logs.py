"""Every line of a service's standard error is JSON where JSON is asked for, whoever writes it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest
from structlog.testing import capture_logs

from tamis_joiner.spark.jvm_messages import forwarded_logs, log_line


def said(program: str) -> tuple[int, list[dict[str, str]]]:
    """The exit code and standard error, line by line, of a service that does so."""
    whole = f"""
import threading
import time
import warnings
import click
from confluent_kafka import Consumer
from tamis.cli import main
from tamis.errors import InputError
from tamis.settings import KafkaSettings
from tamis.telemetry import configure_logs
import tamis.cli.services.kafka as module

@click.command()
def command():
    configure_logs("joiner", "info", "json")
    {program}

module.command = command
main(["kafka"])
"""
    done = subprocess.run([sys.executable, "-c", whole], capture_output=True, text=True, check=False)
    return done.returncode, [json.loads(line) for line in done.stderr.splitlines()]


def test_the_kafka_library_and_warnings_are_in_it() -> None:
    code, lines = said("""
    nowhere = KafkaSettings(bootstrap="127.0.0.1:1").client_config()
    refused = []
    consumer = Consumer({**nowhere, "group.id": "g", "log_level": 3, "error_cb": refused.append})
    deadline = time.monotonic() + 60
    while not refused and time.monotonic() < deadline:
        consumer.poll(0.1)
    for _ in range(5):
        consumer.poll(0.1)
    consumer.close()
    warnings.warn("an old way", UserWarning)
""")
    assert code == 0
    assert {line["service"] for line in lines} == {"joiner"}
    assert any("Connection refused" in line["event"] for line in lines)
    assert "an old way" in lines[-1]["event"]


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("raise InputError('it broke', where='line 3', hint='mend it')", 2),
        ("1 // 0", 1),
        ("of = threading.Thread(target=lambda: 1 // 0); of.start(); of.join()", 0),
    ],
)
def test_the_last_words_of_a_service_are_json(program: str, code: int) -> None:
    ended, (line,) = said(program)
    assert (ended, line["service"], line["level"]) == (code, "joiner", "error")
    if code == 2:
        assert line["event"] == "line 3: it broke; mend it"
    else:
        assert line["exception"].endswith("ZeroDivisionError: integer division or modulo by zero")


def test_events_of_spark_are_events_of_ours() -> None:
    failed = "a.Error: no room\n\tat a.B.run(B.java:7)\nCaused by: b.Error: no disk\n\t... 1 more\n"
    common = {"logger": "Task", "exception": None}
    given: list[dict[str, object]] = [
        {**common, "level": "ERROR", "msg": "it failed", "exception": failed},
        {**common, "level": "WARN", "msg": "it may fail"},
        {**common, "level": "INFO", "msg": "it goes"},
    ]
    with capture_logs() as told:
        for line in (*(json.dumps(one).encode() for one in given), b"WARNING: \xff", b"[1]", b'{"level": 1}'):
            log_line(line)
    assert told == [
        {
            "event": "it failed",
            "log_level": "error",
            "logger": "Task",
            "exception": failed.strip(),
        },
        {"event": "it may fail", "log_level": "warning", "logger": "Task"},
        {"event": "WARNING: �", "log_level": "warning", "logger": "java"},
        {"event": "[1]", "log_level": "warning", "logger": "java"},
        {"event": '{"level": 1}', "log_level": "warning", "logger": "java"},
    ]


def test_what_a_child_says_is_told_to_its_end() -> None:
    with capture_logs() as told, forwarded_logs() as stderr:
        program = "import sys; print(*range(1000), sep='\\n\\n', end='', file=sys.stderr)"
        subprocess.run([sys.executable, "-c", program], stderr=stderr, check=True)
    assert [one["event"] for one in told] == [str(number) for number in range(1000)]
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(stderr)


def test_a_fatal_signal_says_where() -> None:
    program = "import os, signal; from tamis.telemetry import configure_logs; configure_logs('edge')\n"
    program += "def write(): os.kill(os.getpid(), signal.SIGBUS)\nwrite()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGBUS
    assert "Fatal Python error: Bus error" in done.stderr and "in write" in done.stderr
