"""The typed query model: definitions and queries with resolved names, and positions for messages.

`tamis.query.parse` makes it; planning, EXPLAIN, `tamis run` and the DuckDB reference read it.
"""

from tamis.query.model.catalog import Catalog
from tamis.query.model.queries import (
    WINDOW_COLUMNS,
    WINDOW_END,
    WINDOW_START,
    Absence,
    Aggregate,
    AsOfJoin,
    Conjunct,
    Grouping,
    NestedQuery,
    Output,
    Query,
    Session,
    Source,
    Window,
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
from tamis.query.model.streams import (
    ColumnDef,
    FunctionDef,
    PatternDef,
    Rate,
    StreamDef,
    TableDef,
    watched_stream,
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
