"""Changes of the catalogue by statements, and refused changes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.unit.query.test_mistakes import base

from tamis.errors import SqlError, SqlErrors
from tamis.query.catalog import apply, dependents
from tamis.query.model import AlertDef, Catalog
from tamis.query.parse import catalog_of, parse

DOCS = Path(__file__).parents[3] / "docs" / "sql.md"


def run(sql: str, catalog: Catalog) -> Catalog:
    """Parse and apply."""
    for made in parse(sql, catalog):
        apply(catalog, made)
    return catalog


def test_readers_are_found_through_derived_streams_and_functions() -> None:
    catalog = run(
        "CREATE ALERT q AS SELECT f FROM warm; CREATE FUNCTION g() RETURNS DOUBLE AS fahrenheit(1);", base()
    )
    assert list(dependents(catalog, "stream", "air")) == ["stream 'warm'", "alert 'hot'", "alert 'q'"]
    assert list(dependents(catalog, "stream", "warm")) == ["alert 'q'"]
    assert list(dependents(catalog, "stream", "surface")) == []
    assert list(dependents(catalog, "function", "fahrenheit")) == ["stream 'warm'", "function 'g'"]


def test_a_function_called_by_a_check_is_in_use() -> None:
    catalog = run("CREATE STREAM s (t DOUBLE CHECK (fahrenheit(t) > 0)); DROP STREAM warm", base())
    with pytest.raises(SqlErrors, match="used by stream 's'"):
        parse("DROP FUNCTION fahrenheit", catalog)


def test_replacing_keeps_the_pause_and_dropping_ends_it() -> None:
    catalog = run("PAUSE ALERT hot; PAUSE ALERT hot", base())
    assert catalog.paused == {"hot"}
    run("CREATE OR REPLACE ALERT hot AS SELECT n FROM air", catalog)
    assert catalog.paused == {"hot"}
    assert [o.name for o in catalog.alerts["hot"].query.select] == ["n"]
    run("DROP ALERT hot; CREATE ALERT hot AS SELECT n FROM air", catalog)
    assert catalog.paused == set()
    run("PAUSE ALERT hot; RESUME ALERT hot; RESUME ALERT hot", catalog)
    assert catalog.paused == set()


def test_a_refused_statement_changes_nothing() -> None:
    catalog = base()
    (alert,) = parse("CREATE ALERT q AS SELECT n FROM air", catalog)
    apply(catalog, alert)
    with pytest.raises(SqlError, match="already"):
        apply(catalog, alert)
    assert isinstance(alert, AlertDef) and catalog.alerts["q"] is alert


def test_a_stream_and_its_readers_drop_in_one_text() -> None:
    catalog = run("DROP ALERT hot; DROP STREAM warm; DROP STREAM air", base())
    assert "air" not in catalog.streams and "warm" not in catalog.derived


def test_the_examples_of_the_documentation_parse() -> None:
    blocks = re.findall(r"```sql\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    catalog = catalog_of(*blocks)  # each sees those before it
    created = re.findall(r"^CREATE (ALERT|PATTERN|STREAM) (\w+)", "\n".join(blocks), re.MULTILINE)
    names = {kind: [name for of, name in created if of == kind] for kind, _ in created}
    assert list(catalog.alerts) == names["ALERT"] and list(catalog.patterns) == names["PATTERN"]
    assert set(names["STREAM"]) <= catalog.raw_streams.keys() | catalog.derived.keys()
    assert len(catalog.alerts) >= 30
