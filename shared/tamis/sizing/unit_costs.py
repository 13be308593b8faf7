"""Measured unit costs: bytes, memory and CPU time for one tuple, and the machine on which they were measured.

`python -m benchmarks sizing --write-docs` measures them and writes the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import orjson

FILE = Path(__file__).with_name("unit_costs.json")


@dataclass(frozen=True)
class UnitCost:
    """One cost, and how it was measured."""

    name: str
    value: float
    unit: str
    how: str


@dataclass(frozen=True)
class UnitCosts:
    """All costs, by name. `machine` describes where they were measured."""

    machine: str
    costs: Mapping[str, UnitCost]

    def __getitem__(self, name: str) -> float:
        return self.costs[name].value


def written(costs: Iterable[UnitCost], facts: Mapping[str, Any]) -> bytes:
    """The content of the file. `facts`: those of the benchmark about its machine."""
    described = (
        f"{facts['processor']}, {facts['cores']} cores, {facts['memory_gib']} GiB, Python {facts['python']},"
        f" {facts['java']}"
    )
    rounded = [asdict(one) | {"value": float(f"{one.value:.3g}")} for one in costs]
    return orjson.dumps({"machine": described, "costs": rounded}, option=orjson.OPT_INDENT_2) + b"\n"


@cache
def unit_costs() -> UnitCosts:
    """The costs of the file."""
    document = orjson.loads(FILE.read_bytes())
    found = (UnitCost(**one) for one in document["costs"])
    return UnitCosts(document["machine"], {one.name: one for one in found})
