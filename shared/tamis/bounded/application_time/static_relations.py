"""Static relations: the tables of a query are read when it is proven, and count as streams without time.

The limits of a table's values become CHECKs of that stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from tamis.declarations.definitions import ColumnDef
from tamis.declarations.streams import StreamDef
from tamis.expressions.nodes import Call, Column, Expr, Literal, Type
from tamis.operators.tables import read_table
from tamis.query.model import Catalog, Query
from tamis.recordings.typed import Recording


@dataclass(frozen=True)
class QueryInputs:
    """The streams and static relations that a query reads. `catalog` has all of them as streams; `relations`
    has the rows of tables by name.
    """

    catalog: Catalog
    relations: Mapping[str, Recording]


def query_inputs(query: Query, catalog: Catalog) -> QueryInputs:
    """Read the tables of a query.

    Raises InputError if a file can't be read, is too large, or has rows that violate its table's
    declaration; RefusedError where it lies outside of the catalogue's reach.
    """
    streams: dict[str, StreamDef] = {}
    relations: dict[str, Recording] = {}
    for name in dict.fromkeys(source.stream for source in query.sources):
        if name in catalog.tables:
            relations[name] = read_table(catalog.tables[name], catalog.file_access)
            streams[name] = _limited(relations[name])
        else:
            streams[name] = catalog.streams[name]
    return QueryInputs(replace(catalog, streams=streams), relations)


def _limited(found: Recording) -> StreamDef:
    """A relation as a stream, with the limits of its whole numbers as CHECKs."""
    columns = []
    for column in found.stream.columns:
        vector = found.columns[column.name]
        data = vector.data if vector.null is None else vector.data[~vector.null]
        check = column.check
        if column.type in (Type.INT, Type.BIGINT, Type.TIMESTAMP) and len(data):
            own = Column("", column.name, column.type)
            low, high = Literal(int(np.min(data)), column.type), Literal(int(np.max(data)), column.type)
            check = _both(check, Call(">=", (own, low), Type.BOOLEAN), Call("<=", (own, high), Type.BOOLEAN))
        columns.append(ColumnDef(column.name, column.type, False, vector.null is None, check))
    return replace(found.stream, columns=tuple(columns))


def _both(check: Expr | None, *more: Expr) -> Expr:
    return Call("and", more if check is None else (check, *more), Type.BOOLEAN)
