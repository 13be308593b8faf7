"""Explanations of queries, each made once for the same definitions and versions of table files."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator

from tamis.planning import verdict
from tamis.planning.explain import explain
from tamis.planning.explanations.explanation import Explanation
from tamis.query.model import AlertDef, Catalog, DerivedDef


def explained(definition: AlertDef | DerivedDef, catalog: Catalog) -> Explanation:
    """The explanation of a query; raises what `explain` raises."""
    objects = (definition, *verdict.read_by(definition, catalog))
    extra = ("explanation", _file_versions(definition, catalog))
    found: Explanation = catalog.results.get(objects, extra, lambda: explain(catalog, definition))
    return found


def learn(definition: AlertDef | DerivedDef, catalog: Catalog, found: Explanation) -> None:
    """Cache an explanation that another process has made of an equal definition and an equal catalogue."""
    objects = (definition, *verdict.read_by(definition, catalog))
    catalog.results.put(objects, ("explanation", _file_versions(definition, catalog)), found)


def _file_versions(definition: AlertDef | DerivedDef, catalog: Catalog) -> Hashable:
    """The versions of the table files that a query reads."""
    return tuple(_versions(definition, catalog))


def _versions(definition: AlertDef | DerivedDef, catalog: Catalog) -> Iterator[Hashable]:
    members = definition.query.members or (definition.query,)
    for name in dict.fromkeys(source.stream for one in members for source in one.sources):
        if (table := catalog.tables.get(name)) is not None:
            try:
                found = os.stat(table.path)
                yield table.path, found.st_mtime_ns, found.st_size, found.st_ino
            except OSError:
                yield table.path, None
