"""The typed query model: definitions and queries with resolved names, and positions for messages.

Begin with `queries`. `tamis.query.parse` makes the model; planning, EXPLAIN, `tamis run` and the DuckDB
reference read it.
"""

from tamis.query.model.catalog import Catalog
from tamis.query.model.definitions import (
    WINDOW_COLUMNS,
    WINDOW_END,
    WINDOW_START,
    ColumnDef,
    FunctionDef,
    PatternDef,
    Rate,
    Session,
    TableDef,
    Window,
)
from tamis.query.model.queries import (
    Absence,
    Aggregate,
    AsOfJoin,
    Conjunct,
    Grouping,
    NestedQuery,
    Output,
    Query,
    Source,
    StreamDef,
    same_window,
    watched_stream,
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
    "WINDOW_COLUMNS",
    "WINDOW_END",
    "WINDOW_START",
    "Absence",
    "Aggregate",
    "AlertDef",
    "AlertOptions",
    "AsOfJoin",
    "Catalog",
    "ColumnDef",
    "Conjunct",
    "DerivedDef",
    "Drop",
    "Explain",
    "FunctionDef",
    "Grouping",
    "NestedQuery",
    "Output",
    "PatternDef",
    "Query",
    "Rate",
    "Redefine",
    "Session",
    "SetPaused",
    "Show",
    "Source",
    "Statement",
    "StreamDef",
    "TableDef",
    "Window",
    "same_window",
    "watched_stream",
]
