"""Figures of the calculator: a number, its unit, and where it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Basis = Literal["proven", "measured", "given", "declared", "computed", "assumed"]
Unit = Literal["tuples/s", "alarms/s", "B", "B/s", "share", "tuples", "entries", "cores", "count", "s"]


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
