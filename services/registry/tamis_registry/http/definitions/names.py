"""Names over HTTP, for the completion of SQL in editors."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from starlette.responses import Response

from tamis.query.functions import AGGREGATE_FUNCTIONS, SCALAR_FUNCTIONS, SIMILARITY_FUNCTIONS
from tamis.query.model import Catalog, DerivedDef
from tamis.query.syntax.dialect import WORDS
from tamis_registry.http.common.parts import as_json
from tamis_registry.http.state.readings import Names
from tamis_registry.registry_loop import RegistryLoop

# Words that begin statements and their parts, beside the keywords of SELECT.
STATEMENTS = (
    *(
        "ALERT",
        "ALTER",
        "CHECK",
        "COLUMN",
        "CREATE",
        "DROP",
        "EXPLAIN",
        "FUNCTION",
        "KEY",
        "PATTERN",
        "PAUSE",
    ),
    *("REPLACE", "RESUME", "RETURNS", "SHOW", "STREAM", "TABLE", "WATERMARK FOR"),
)


def name_routes(app: FastAPI, loop: RegistryLoop) -> None:
    """Add the route."""

    @app.get(
        "/v1/names",
        summary="The names that SQL can use now",
        description="For completion in an editor: streams with their columns, functions, patterns, keywords.",
        tags=["Statements"],
        response_model=Names,
    )
    def names() -> Response:
        with loop.reading() as (registry, _):
            catalog = registry.state.catalog
        return as_json(names_document(catalog))


def names_document(catalog: Catalog) -> dict[str, Any]:
    """The names of a catalogue."""
    streams = [
        {"name": one.name, "kind": "raw", "columns": _columns(one), "time": one.time}
        for one in catalog.raw_streams.values()
    ]
    streams += [_derived(one) for one in catalog.derived.values()]
    streams += [
        {"name": one.name, "kind": "table", "columns": _columns(one), "time": None}
        for one in catalog.tables.values()
    ]
    return {
        "streams": streams,
        "alerts": list(catalog.alerts),
        "functions": [
            {"name": one.name, "parameters": [name for name, _ in one.parameters], "sql": one.sql}
            for one in catalog.functions.values()
        ],
        "patterns": list(catalog.patterns),
        "builtin": sorted({*SCALAR_FUNCTIONS, *AGGREGATE_FUNCTIONS, *SIMILARITY_FUNCTIONS}),
        "keywords": sorted({*WORDS, *STATEMENTS}),
    }


def _columns(stream: Any) -> list[dict[str, Any]]:
    return [{"name": one.name, "type": one.type.name, "key": one.key} for one in stream.columns]


def _derived(stream: DerivedDef) -> dict[str, Any]:
    columns = [{"name": one.name, "type": one.expr.type.name, "key": False} for one in stream.query.select]
    return {"name": stream.name, "kind": "derived", "columns": columns, "time": None}
