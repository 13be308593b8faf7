"""The script of continuous integration: the order of its parts, what ends red, and the table at its end.

Programs that end as the test says replace its parts, since the order and the table are the question here.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.unit.repository.test_images import REPOSITORY

SETUP, COMMANDS, ALARM = "make setup", "commands of images against their locks", "first alarm"
ALARM_CALL = "run?tests/containers/test_first_alarm.py"
# Ends as the line `PATTERN CODE [SECONDS]` of the file `outcomes` says whose pattern is in its arguments.
STUB = """#!/usr/bin/env bash
echo "$*" >> calls
while read -r name code seconds; do
  if [[ "$*" == *$name* ]]; then sleep "${seconds:-0}"; exit "$code"; fi
done < outcomes
"""


def run(
    folder: Path, budget: int, *outcomes: str, usual: int | None = None
) -> tuple[int, list[str], list[str]]:
    """The exit code, the lines of the output from the table on, and the calls of the parts."""
    shutil.copytree(REPOSITORY / ".ci", folder / ".ci")
    script = folder / ".ci/run"
    if usual is not None:
        script.write_text(re.sub(r"optional \d+", f"optional {usual}", script.read_text()))
    for name in ("bin/make", "bin/apt-get", "bin/chromium", ".venv/bin/python", ".venv/bin/pytest"):
        stub = folder / name
        stub.parent.mkdir(parents=True, exist_ok=True)
        stub.write_text(STUB)
        stub.chmod(0o755)
    (folder / "outcomes").write_text("".join(f"{line}\n" for line in outcomes))
    environment = {
        **{name: value for name, value in os.environ.items() if name not in {"MAKE", "MAKEFLAGS"}},
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "TAMIS_CI_SECONDS": str(budget),
    }
    done = subprocess.run([script], env=environment, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    table = next(i for i, line in enumerate(lines) if re.match(r"part +seconds +outcome", line))
    return done.returncode, lines[table + 1 :], (folder / "calls").read_text().splitlines()


def outcome(table: list[str], part: str) -> str:
    (line,) = (line for line in table[:-1] if part in line)
    return re.split(r"  +(?:\d+|-)  ", line, maxsplit=1)[1]


def test_all_parts_run_in_order_and_the_table_has_them(tmp_path: Path) -> None:
    code, table, calls = run(tmp_path, 4500)
    assert code == 0 and table[-1].startswith("GREEN")
    targets = ["setup", "images", "test_first_alarm.py", "check", "test", "notebooks", "upgrade", "tutorial"]
    targets += ["recovery", "console-test", "--ignore tests/containers/test_first_alarm.py"]
    assert len(calls) == len(targets) == len(table) - 1
    assert all(call.endswith(target) for call, target in zip(calls, targets, strict=True))
    assert all(line.endswith("  passed") for line in table[:-1])


@pytest.mark.parametrize("failing", ["images", ALARM_CALL, "check", "notebooks", "console-test", "--ignore"])
def test_a_failed_part_is_red_and_the_others_run(tmp_path: Path, failing: str) -> None:
    code, table, calls = run(tmp_path, 4500, f"{failing} 1")
    assert code == 1 and table[-1].startswith("RED") and len(calls) == 11
    assert sum("FAILED with exit code 1" in line for line in table) == 1


def test_nothing_runs_after_a_failed_setup(tmp_path: Path) -> None:
    code, table, calls = run(tmp_path, 4500, "setup 2")
    assert code == 1 and calls == ["setup"] and outcome(table, SETUP) == "FAILED with exit code 2"


def test_a_machine_without_an_engine_is_not_red(tmp_path: Path) -> None:
    code, table, calls = run(tmp_path, 4500, f"{ALARM_CALL} 3")
    assert code == 0 and len(calls) == 10
    assert outcome(table, ALARM).startswith("NOT TESTED: the machine can't run it")
    assert outcome(table, "all tests of containers").startswith("NOT TESTED")


def test_a_part_that_does_not_fit_is_left_out_with_its_reason(tmp_path: Path) -> None:
    code, table, calls = run(tmp_path, 399)
    assert code == 0 and not any("upgrade" in call or "recovery" in call for call in calls)
    assert re.match(r"NOT TESTED: it usually takes 400 s, and 39\d s are left", outcome(table, "upgrade"))
    assert outcome(table, "notebooks") == outcome(table, "console-test") == "passed"


def test_a_part_is_cut_off_at_the_end_of_the_budget(tmp_path: Path) -> None:
    code, table, calls = run(tmp_path, 8, "notebooks 0 60", usual=1)
    assert code == 0 and calls[-1] == "notebooks"
    assert outcome(table, "notebooks").startswith("NOT TESTED to the end: it was cut off")
    assert outcome(table, "recovery").startswith("NOT TESTED: it usually takes 1 s, and ")


def test_the_first_alarm_leaves_time_for_the_tests(tmp_path: Path) -> None:
    code, table, calls = run(tmp_path, 12, f"{ALARM_CALL} 0 60", usual=0)
    assert code == 0 and {"check", "test"} <= set(calls)
    assert outcome(table, ALARM) == "NOT TESTED to the end: it was cut off after 4 s"


@pytest.mark.parametrize("part", ["check", "test"])
def test_tests_that_are_cut_off_are_red(tmp_path: Path, part: str) -> None:
    code, table, _ = run(tmp_path, 3, f"{part} 0 60")
    assert code == 1 and table[-1].startswith("RED")
    assert outcome(table, f"make {part} ").startswith("FAILED: it was cut off after ")


@pytest.mark.parametrize("part", ["images", "check"])
def test_only_containers_and_the_console_may_lack_what_they_need(tmp_path: Path, part: str) -> None:
    """An error within pytest has the exit code 3, too."""
    code, table, _ = run(tmp_path, 4500, f"{part} 3")
    assert code == 1 and sum("FAILED with exit code 3" in line for line in table) == 1


def test_tests_of_containers_that_failed_are_red_when_they_are_cut_off(tmp_path: Path) -> None:
    """The first test has failed when the time of the part is over. `timeout` sends the signal twice."""
    begun = tmp_path / "begun"
    tests = tmp_path / "test_two.py"
    tests.write_text(
        "import pathlib, time\n\ndef test_fails():\n    assert False\n\n"
        f"def test_hangs():\n    pathlib.Path({str(begun)!r}).touch()\n    time.sleep(200)\n"
    )
    program = (
        "import sys; from tests.containers import run; run.handle_signals(); "
        "sys.exit(run.run_tests(sys.argv[1:]))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(tests)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    while process.poll() is None and not begun.exists():
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    os.killpg(process.pid, signal.SIGTERM)
    said, _ = process.communicate(timeout=200)
    assert process.returncode == 1, said.decode()


def test_the_targets_exist_and_the_budget_is_below_the_limit_of_the_platform() -> None:
    script = (REPOSITORY / ".ci/run").read_text()
    targets = [*re.findall(r'"\$MAKE" ([a-z-]+)', script), "console-test"]
    makefile = (REPOSITORY / "Makefile").read_text()
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)
    (budget,) = re.findall(r"TAMIS_CI_SECONDS:-(\d+)", script)
    assert int(budget) == 75 * 60
    for path in re.findall(r"tests/[\w/]+(?:\.py)?", script):
        assert (REPOSITORY / path).exists(), path
