"""Order of the files of tests with a broker: the longest first, and whole fleets beside other tests.

Workers take whole files in this order (`--dist loadfile --no-loadscope-reorder`). By default xdist would
begin with the files that have most tests, and end with the fleets, whose files have one long test each.
The files of some folders share what takes long to start: one worker takes all of them, one after the other.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

# About how long each file or shared folder takes on two cores, in seconds. Only the order depends on it.
SECONDS = {
    "tests/e2e/one_fleet/": 460,
    "tests/e2e/test_demo.py": 110,
    "tests/e2e/test_planted_secrets.py": 70,
    "tests/e2e/test_up.py": 65,
    "tests/integration/alerts/test_alerts.py": 110,
    "tests/integration/edge/test_counts.py": 40,
    "tests/integration/edge/test_edge.py": 100,
    "tests/integration/edge/test_limits.py": 50,
    "tests/integration/joiner/test_cluster.py": 75,
    "tests/integration/joiner/test_joiner.py": 140,
    "tests/integration/registry/test_fair_shares.py": 60,
    "tests/integration/registry/test_files_over_http.py": 50,
    "tests/integration/registry/test_registry_life.py": 50,
    "tests/integration/registry/test_sharing.py": 60,
    "tests/integration/security/": 120,
    "tests/integration/spark/": 110,
}
FLEETS = "tests/e2e/"
# Folders whose files share a fleet, a secure broker, or a session of Spark.
SHARED = tuple(name for name in SECONDS if name.endswith("/"))
_SHORT = 20  # of a file that is not listed
# Of three workers, two have whole fleets as long as there are any: a fleet often waits for its triggers.
_LANES = {True: 2, False: 1}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests with a broker into that order, behind all others. The order in a file stays as it is."""
    units = {unit(item.nodeid) for item in items}
    order = begins({name for name in units if name.startswith((FLEETS, "tests/integration/"))}, SECONDS)
    items.sort(key=lambda item: order.get(unit(item.nodeid), (-1.0, "")))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give a shared folder to one worker as if it were one file."""
    if config.getoption("dist") != "loadfile":
        return None
    scheduling = LoadFileScheduling(config, log)
    scheduling._split_scope = unit
    return scheduling


def begins(units: Iterable[str], seconds: Mapping[str, int]) -> dict[str, tuple[float, str]]:
    """When each file or shared folder begins if fleets and others have lanes of their own, and its name."""
    found: dict[str, tuple[float, str]] = {}
    lanes = {fleet: [0.0] * count for fleet, count in _LANES.items()}
    for name in sorted(units, key=lambda name: (-seconds.get(name, _SHORT), name)):
        ends = lanes[name.startswith(FLEETS)]
        found[name] = (ends[0], name)
        heapq.heapreplace(ends, ends[0] + seconds.get(name, _SHORT))
    return found


def unit(nodeid: str) -> str:
    """The file of a test, or the shared folder that it is in."""
    file = nodeid.partition("::")[0]
    return next((folder for folder in SHARED if file.startswith(folder)), file)
