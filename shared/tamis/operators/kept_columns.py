"""Columns of tuples that a standing query keeps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tamis.bounded.timeless.translate import Translation
from tamis.expressions.nodes import Column, Type, columns
from tamis.expressions.vectors import Value, Vector
from tamis.operators.contract import Batch
from tamis.query.model import Catalog, Query

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


def needed(*translations: Translation) -> list[Column]:
    """The columns that the conditions and the nodes of queries read."""
    found = [column for one in translations for column in one.columns]
    return found + [column for one in translations for expr in one.joins for column in columns(expr)]


def kept_columns(query: Query, catalog: Catalog, read: Iterable[Column]) -> KeptColumns:
    """The columns to keep of the tuples of each stream: those in `read` that one of its sources needs, and
    those of SELECT.
    """
    wanted = {(column.alias, column.name) for column in read}
    wanted |= {(c.alias, c.name) for output in query.select for c in columns(output.expr) if c.alias}
    own = {
        stream: {
            name
            for alias, name in wanted
            for one in query.sources
            if (one.alias, one.stream) == (alias, stream)
        }
        for stream in {source.stream for source in query.sources}
    }
    shown = {
        stream: [column for column in catalog.streams[stream].columns if column.name in names]
        for stream, names in own.items()
    }
    return KeptColumns(
        {stream: tuple(column.name for column in found) for stream, found in shown.items()},
        {stream: tuple(column.type for column in found) for stream, found in shown.items()},
    )
