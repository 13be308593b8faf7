"""Former definitions of streams and functions, which the old definition of a replaced alert still reads.

A stream may change while alerts read it. Each alert is then replaced, and its old definition runs on until it
has counted the tuples from before the change (protocol, rule 11). It was proved with the stream as it was, so
it must not meet readings that only the changed stream accepts: their values may be outside of the domains on
which its omission rests. Therefore its inputs also have the former domains of the columns that it reads as
a filter. Tuples from before the change pass this filter, because the edges had checked them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tamis.declarations.definitions import ColumnDef, FunctionDef, TableDef
from tamis.declarations.domains import domain_check
from tamis.declarations.streams import StreamDef
from tamis.expressions.nodes import Column, Expr, conjunction, substitute
from tamis.expressions.signatures import call
from tamis.plan.model import FormerColumns, StreamColumn
from tamis.query.catalog import put
from tamis.query.model import AlertDef, Catalog, DerivedDef


@dataclass(frozen=True)
class Former:
    """A definition that plan version `until` replaced."""

    until: int
    definition: StreamDef | TableDef | FunctionDef | DerivedDef


def former_catalog(catalog: Catalog, former: Sequence[Former], origin: AlertDef | DerivedDef) -> Catalog:
    """The catalogue that `origin` was resolved with, as far as `origin` reads it."""
    if not former:
        return catalog.reading(origin)
    found = catalog.copy()
    put(found, (one.definition for one in former))
    # Watched streams have the same name with other columns of their base.
    found.streams |= {stream.name: stream for stream in origin.query.watched}
    return found


def former_domains(stream: StreamDef, read: Iterable[str], alias: str) -> Expr | None:
    """The condition that the columns in `read` are in the domains of a former stream; None if they have none.

    It also holds for domains that are the same again: in between the stream may have had others.
    """
    wanted = set(read)
    parts = [part for column in stream.columns if column.name in wanted for part in _domain(column)]
    whole = conjunction(tuple(parts))
    return None if whole is None else substitute(whole, lambda c: Column(alias, c.name, c.type))


def _domain(column: ColumnDef) -> Iterator[Expr]:
    """The conditions with which edges accept a column."""
    if column.not_null:
        yield call("not", call("is_null", Column("", column.name, column.type)))
    check = domain_check(column)
    if check is not None:
        yield call("or", call("is_null", check), check)


def former_columns(
    catalog: Catalog, of_readers: Iterable[Sequence[Former]]
) -> Mapping[str, tuple[FormerColumns, ...]]:
    """The former columns of streams, by stream, that a shard may need to read readings again."""
    found: dict[str, dict[int, StreamDef]] = {}
    for some in of_readers:
        for one in some:
            if isinstance(one.definition, StreamDef):
                found.setdefault(one.definition.name, {})[one.until] = one.definition
    return {
        name: tuple(
            FormerColumns(until, stream_columns(stream))
            for until, stream in sorted(of.items())
            if stream_columns(stream) != stream_columns(catalog.streams[name])
        )
        for name, of in found.items()
        if name in catalog.streams
    }


def stream_columns(stream: StreamDef) -> tuple[StreamColumn, ...]:
    """The columns of a stream as edges check them."""
    return tuple(
        StreamColumn(column.name, column.type, column.not_null, domain_check(column))
        for column in stream.columns
    )
