"""The typed query model: queries with resolved names, and the statements and the catalogue that have them.

Begin with `queries`. `tamis.query.parse` makes the model; planning, EXPLAIN, `tamis run` and the DuckDB
reference read it.
"""

from tamis.query.model.catalog import Catalog
from tamis.query.model.queries import (
    Absence,
    AsOfJoin,
    Conjunct,
    Grouping,
    NestedQuery,
    Output,
    Query,
    RowStream,
    Source,
    same_window,
)
from tamis.query.model.statements import (
    AlertDef,
    AlertOptions,
    DerivedDef,
    Drop,
    Explain,
    Redefine,
    SetPaused,
    Show,
    Statement,
)

__all__ = [
    "Absence",
    "AlertDef",
    "AlertOptions",
    "AsOfJoin",
    "Catalog",
    "Conjunct",
    "DerivedDef",
    "Drop",
    "Explain",
    "Grouping",
    "NestedQuery",
    "Output",
    "Query",
    "Redefine",
    "RowStream",
    "SetPaused",
    "Show",
    "Source",
    "Statement",
    "same_window",
]
