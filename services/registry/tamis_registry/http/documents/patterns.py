"""The documents of patterns and folders of patterns."""

from __future__ import annotations

from tamis.query.catalog import dependents
from tamis.query.model import PatternDef
from tamis_registry.core.state.model import Stored
from tamis_registry.core.status import View
from tamis_registry.http.documents.document import Document


def pattern_documents(view: View) -> list[Document]:
    """Every pattern and folder of patterns, in the order of creation, without its values."""
    return [
        {key: value for key, value in document.items() if key != "sql"}
        for document in whole_pattern_documents(view)
    ]


def whole_pattern_documents(view: View) -> list[Document]:
    """The same with the SQL."""
    return [_pattern_document(view, stored) for stored in view.state.of_kind("pattern")]


def _pattern_document(view: View, stored: Stored) -> Document:
    """A pattern with the queries that compare with it."""
    made = stored.definition
    members = made.members if isinstance(made, PatternDef) else ()
    folder = [one.name for one in members] != [stored.name]
    return {
        "name": stored.name,
        "kind": "folder" if folder else "pattern",
        "why": [stored.refusal] if stored.refusal else [],
        "plan": stored.version,
        "members": [{"name": one.name, "length": len(one.values), "max_gap": one.max_gap} for one in members],
        "readers": list(dependents(view.state.catalog, "pattern", stored.name)),
        "sql": stored.sql,
    }
