"""Nodes of static relations."""

from __future__ import annotations

from tamis.declarations.definitions import TableDef
from tamis.operators.tables import digest
from tamis.plan import nodes
from tamis.recordings.typed import Recording


def table(definition: TableDef, rows: Recording) -> nodes.Table:
    """A table with the rows that it has now."""
    columns = tuple(
        nodes.TableColumn(one.name, one.type, one.not_null, one.check) for one in definition.columns
    )
    return nodes.Table(definition.name, definition.path, columns, digest(rows))
