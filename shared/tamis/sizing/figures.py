"""Figures of the calculator: numbers with units and where they come from, and measured unit costs.

`python -m benchmarks sizing --write-docs` measures the costs of one tuple, and writes the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import orjson

Basis = Literal["proven", "measured", "given", "declared", "computed", "assumed"]
Unit = Literal["tuples/s", "alarms/s", "B", "B/s", "share", "tuples", "entries", "cores", "count", "s"]

FILE = Path(__file__).with_name("unit_costs.json")


@dataclass(frozen=True)
class Figure:
    """One number. `source` says in a few words how it was found.

    The basis of a product is the weakest basis of its factors, so a figure that rests on an assumption is
    marked as assumed.
    """

    value: float
    unit: Unit
    basis: Basis
    source: str

    def document(self) -> dict[str, object]:
        """The JSON object: whole numbers where the unit counts."""
        whole = self.unit in ("B", "tuples", "entries", "cores", "count")
        value = round(self.value) if whole else float(f"{self.value:.4g}")
        return {"value": value, "unit": self.unit, "basis": self.basis, "source": self.source}


def weakest(*figures: Figure) -> Basis:
    """The basis of a figure that is computed from others.

    >>> weakest(Figure(1, "count", "given", ""), Figure(2, "count", "proven", ""))
    'computed'
    """
    return "assumed" if any(one.basis == "assumed" for one in figures) else "computed"


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
