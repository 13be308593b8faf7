"""CPU time of tests: of the whole run, of files that take more than they may, and of those that take most.

The latter are as many as `--durations` says.

The duration of a test depends on how busy the machine is. CPU time hardly does, so that a file that has
become slow is seen in any run. Processes that a test starts count as soon as they have ended.
"""

from __future__ import annotations

import resource
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

# CPU seconds that the tests of a file may take in `make test`, by file or folder. More cases than fit into
# them are for `make soundness` (see `also_long` in tests/oracle/random_cases.py).
BUDGETS = {
    "tests/oracle/fleet/test_schedules.py": 60,
    "tests/unit/answers/test_field_alerts.py": 45,
    "tests/unit/": 15,
    "tests/oracle/": 25,
    "tests/model/": 25,
}
_PROPERTY = "CPU seconds"
_began: pytest.StashKey[float] = pytest.StashKey()
_used: defaultdict[str, float] = defaultdict(float)


def cpu_seconds() -> float:
    """CPU time of this process, with all its threads, and of the children that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Remember when the test begins."""
    item.stash[_began] = cpu_seconds()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Add the time to the last report of the test, which workers send to the process that prints."""
    try:
        return (yield)
    finally:
        item.user_properties.append((_PROPERTY, cpu_seconds() - item.stash[_began]))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up the times of each file."""
    if report.when == "teardown":
        properties: dict[str, Any] = dict(report.user_properties)
        _used[report.nodeid.partition("::")[0]] += properties.get(_PROPERTY, 0.0)


def over_budget(used: Mapping[str, float]) -> list[str]:
    """A line for each file that takes more CPU time than its folder allows."""
    found = []
    for file, seconds in sorted(used.items(), key=lambda one: -one[1]):
        budget = next((most for folder, most in BUDGETS.items() if file.startswith(folder)), None)
        if budget is not None and seconds > budget:
            found.append(f"{file} took {seconds:.0f} s of CPU, more than its {budget} s")
    return found


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the sum, and what is over budget; a long search has no budget."""
    if _used:
        terminalreporter.write_line(f"{sum(_used.values()):.0f} s of CPU in tests")
    if config.option.durations:
        for file, seconds in sorted(_used.items(), key=lambda one: -one[1])[: config.option.durations]:
            terminalreporter.write_line(f"{seconds:6.0f} s of CPU in {file}")
    for line in () if "not soundness" not in config.option.markexpr else over_budget(_used):
        terminalreporter.write_line(line, yellow=True)
