"""Columns of tuples that a standing query keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Value, Vector
from tamis.operators.contract import Batch
from tamis.plan.nodes import StreamColumns

Values = tuple[Value, ...]  # of the columns that are kept of a tuple


@dataclass(frozen=True)
class KeptColumns:
    """The columns that are kept of each stream's tuples, and their types."""

    names: Mapping[str, tuple[str, ...]]
    types: Mapping[str, tuple[Type, ...]]

    def values(self, stream: str, batch: Batch, rows: int) -> list[Values]:
        """The kept values of every tuple of a batch."""
        columns = [batch[name].to_list() for name in self.names[stream]]
        return list(zip(*columns, strict=True)) if columns else [()] * rows

    def vectors(self, stream: str, kept: Sequence[Values]) -> dict[str, Vector]:
        """Kept values as columns."""
        columns = zip(*kept, strict=True) if kept else ([] for _ in self.names[stream])
        return {
            name: Vector.from_list(list(values), kind)
            for name, kind, values in zip(self.names[stream], self.types[stream], columns, strict=True)
        }


def kept_columns(kept: Sequence[StreamColumns]) -> KeptColumns:
    """The kept columns of a node."""
    return KeptColumns(
        {one.stream: tuple(name for name, _ in one.columns) for one in kept},
        {one.stream: tuple(kind for _, kind in one.columns) for one in kept},
    )
