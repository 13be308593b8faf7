"""Python workers exchange connections, so that tasks come to the worker that had them last."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parent / "exchanging_workers.py"


def run(workers: int, tasks: int, batches: int, seconds: float, killed: int = 0) -> dict[str, Any]:
    """What the workers did. The program checks that each answer comes over the connection of its task."""
    arguments = [str(one) for one in (workers, tasks, batches, seconds, killed)]
    ended = subprocess.run(
        [sys.executable, str(PROGRAM), *arguments], check=False, capture_output=True, text=True, timeout=120
    )
    assert ended.returncode == 0, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout)
    # Each task of each batch was done once.
    assert [[task for task, _ in batch] for batch in found["done"]] == [list(range(tasks))] * batches
    return found


@pytest.mark.parametrize(("workers", "tasks"), [(2, 4), (2, 3), (4, 16)])
def test_a_task_comes_to_the_worker_that_had_it_last(workers: int, tasks: int) -> None:
    found = run(workers, tasks, 40, 0.01)
    assert found["repeated"] == 0
    same = [
        last == now
        for before, after in zip(found["done"], found["done"][1:], strict=False)
        for (_, last), (_, now) in zip(before, after, strict=True)
    ]
    # At random it would be one of `workers`.
    assert sum(same) > 0.8 * len(same)


def test_only_the_tasks_of_killed_workers_are_repeated() -> None:
    assert run(3, 7, 100, 0.003, killed=30)["repeated"] <= 30
