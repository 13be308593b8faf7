"""Order of the files of tests with a broker: the longest first, and whole fleets beside other tests.

Workers take whole files in this order (`--dist loadfile --no-loadscope-reorder`). By default xdist would
begin with the files that have most tests, and end with the fleets, whose files have one long test each.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping

import pytest

# About how long each file takes on two cores, in seconds. Only the order depends on it.
SECONDS = {
    "tests/e2e/test_changes.py": 110,
    "tests/e2e/test_demo.py": 110,
    "tests/e2e/test_hung_services.py": 150,
    "tests/e2e/test_patterns.py": 75,
    "tests/e2e/test_planted_secrets.py": 70,
    "tests/e2e/test_readers_of_derived_streams.py": 55,
    "tests/e2e/test_secure_demo.py": 100,
    "tests/e2e/test_silences.py": 80,
    "tests/e2e/test_standing.py": 65,
    "tests/e2e/test_up.py": 110,
    "tests/e2e/test_value_formats.py": 40,
    "tests/integration/alerts/test_alerts.py": 110,
    "tests/integration/edge/test_counts.py": 40,
    "tests/integration/edge/test_edge.py": 100,
    "tests/integration/edge/test_limits.py": 50,
    "tests/integration/joiner/test_cluster.py": 75,
    "tests/integration/joiner/test_joiner.py": 140,
    "tests/integration/registry/test_registry_life.py": 50,
    "tests/integration/registry/test_sharing.py": 60,
    "tests/integration/security/test_logins.py": 80,
    "tests/integration/security/test_rights.py": 40,
    "tests/integration/spark/test_retain.py": 60,
    "tests/integration/spark/test_temporal_join.py": 50,
}
FLEETS = "tests/e2e/"
_SHORT = 20  # of a file that is not listed
# Of three workers, two have whole fleets as long as there are any: a fleet often waits for its triggers.
_LANES = {True: 2, False: 1}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests with a broker into that order, behind all others. The order in a file stays as it is."""
    files = {_file(item) for item in items if _file(item).startswith((FLEETS, "tests/integration/"))}
    order = begins(files, SECONDS)
    items.sort(key=lambda item: order.get(_file(item), (-1.0, "")))


def begins(files: Iterable[str], seconds: Mapping[str, int]) -> dict[str, tuple[float, str]]:
    """When each file begins if fleets and others have lanes of their own, and its name."""
    found: dict[str, tuple[float, str]] = {}
    lanes = {fleet: [0.0] * count for fleet, count in _LANES.items()}
    for file in sorted(files, key=lambda file: (-seconds.get(file, _SHORT), file)):
        ends = lanes[file.startswith(FLEETS)]
        found[file] = (ends[0], file)
        heapq.heapreplace(ends, ends[0] + seconds.get(file, _SHORT))
    return found


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]
