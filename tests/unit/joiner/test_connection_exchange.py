"""Python workers exchange connections, so that tasks come to the worker that had them last."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parent / "exchanging_workers.py"


def run(workers: int, tasks: int, batches: int, seconds: float, killed: int = 0) -> dict[str, Any]:
    """What the workers did. The program checks that each answer comes over the connection of its task."""
    ended = subprocess.run(
        [sys.executable, str(PROGRAM), *(str(one) for one in (workers, tasks, batches, seconds, killed))],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 0, ended.stderr
    assert not ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout)
    # Each task of each batch was done once.
    assert [[task for task, _ in batch] for batch in found["done"]] == [list(range(tasks))] * batches
    return found


@pytest.mark.parametrize(("workers", "tasks"), [(2, 4), (2, 3), (4, 16)])
def test_a_task_comes_to_the_worker_that_had_it_last(workers: int, tasks: int) -> None:
    found = run(workers, tasks, 40, 0.01)
    assert found["repeated"] == 0
    # At random it would be one of `workers`.
    assert share_of_same_worker(found) > 0.8


def test_spark_s_directory_may_have_a_longer_path_than_a_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / ("executor-" * 20)
    directory.mkdir()
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(directory))
    assert share_of_same_worker(run(2, 4, 20, 0.01)) > 0.8
    assert not list(directory.iterdir())


def test_only_the_tasks_of_killed_workers_are_repeated() -> None:
    assert run(3, 7, 100, 0.003, killed=30)["repeated"] <= 30


def share_of_same_worker(found: dict[str, Any]) -> float:
    """The share of tasks that the worker of the batch before had."""
    done: list[list[tuple[int, int]]] = found["done"]
    same = [
        last == now
        for before, after in itertools.pairwise(done)
        for (_, last), (_, now) in zip(before, after, strict=True)
    ]
    return sum(same) / len(same)
