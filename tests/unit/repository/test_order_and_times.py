"""The order of tests with a broker, and the budgets of CPU time."""

from __future__ import annotations

from pathlib import Path

from tests.cpu_times import over_budget
from tests.longest_first import FLEETS, SECONDS, begins, unit

REPOSITORY = Path(__file__).parents[3]


def test_files_whose_time_is_listed_exist() -> None:
    assert [name for name in SECONDS if not (REPOSITORY / name).exists()] == []


def test_files_that_share_what_takes_long_to_start_go_to_one_worker() -> None:
    assert unit("tests/integration/spark/test_retain.py::test_a[b::c]") == "tests/integration/spark/"
    assert unit("tests/integration/edge/test_edge.py::test_a[b::c]") == "tests/integration/edge/test_edge.py"


def test_two_fleets_begin_beside_one_other_test_and_the_longest_first() -> None:
    seconds = {
        f"{FLEETS}test_{name}.py": time for name, time in (("a", 100), ("b", 60), ("c", 50), ("d", 30))
    }
    seconds |= {f"tests/integration/test_{name}.py": time for name, time in (("x", 70), ("y", 40))}
    order = sorted(begins(seconds, seconds).items(), key=lambda one: one[1])
    assert [(Path(name).stem[-1], at) for name, (at, _) in order] == [
        ("a", 0.0),
        ("b", 0.0),
        ("x", 0.0),
        ("c", 60.0),
        ("y", 70.0),
        ("d", 100.0),
    ]


def test_files_over_their_budget_are_named_the_longest_first() -> None:
    used = {
        "tests/oracle/fleet/test_a.py": 30.4,
        "tests/unit/test_b.py": 99.0,
        "tests/oracle/test_c.py": 3.0,
        "tests/e2e/test_d.py": 500.0,
    }
    assert over_budget(used) == [
        "tests/unit/test_b.py took 99 s of CPU, more than its 15 s",
        "tests/oracle/fleet/test_a.py took 30 s of CPU, more than its 25 s",
    ]
