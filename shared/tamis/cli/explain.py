"""`tamis explain`: what Tamis proves about each query of a file, before anything runs."""

from __future__ import annotations

import sys

import click
import orjson

from tamis.cli._sql_file import statements_of
from tamis.errors import InputError
from tamis.planning.explain import estimated, explain, grown
from tamis.query.model import AlertDef, Catalog, DerivedDef, Explain
from tamis.query.names import meant


@click.command(
    epilog="""\b
Examples:
  tamis explain demo/first/alerts.sql
  tamis explain demo/first/alerts.sql --query condensation --json
"""
)
@click.argument("source", metavar="FILE.sql")
@click.option("--query", metavar="NAME", help="Only the query of this name.")
@click.option(
    "--witness",
    "run_witness",
    is_flag=True,
    help="Run the example of a query that is unbounded, and show how it grows.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
def command(source: str, query: str | None, run_witness: bool, as_json: bool) -> None:
    """Prove what may be omitted and how much memory a query needs, or refuse it.

    With --witness, a query that is unbounded is shown to be: of ever more tuples of its example, how many
    states any evaluator must tell apart, and how many entries Tamis would keep.

    Exits with 0 if every query is accepted, 1 if one is refused, 2 if the file is wrong.
    """
    catalog, statements = statements_of(source)
    asked: dict[str, AlertDef | DerivedDef] = {}
    for statement in statements:
        if isinstance(statement, AlertDef | DerivedDef):
            asked[statement.name] = statement
        elif isinstance(statement, Explain) and isinstance(statement.target, AlertDef):
            asked[statement.target.name] = statement.target
    query = query if query is None else meant(query, asked)
    if query is not None and query not in asked:
        raise InputError(f"there is no query {query!r}", where=source, hint="it has " + _listed(asked))
    chosen = [one for name, one in asked.items() if query in (None, name) and _stands(one, catalog)]
    found = [estimated(catalog, explain(catalog, one), {}) for one in chosen]
    if run_witness:
        found = [grown(catalog, *pair) for pair in zip(chosen, found, strict=True)]
    if as_json:
        document = {"queries": [one.document() for one in found]}
        click.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2))
    else:
        click.echo("\n\n".join(one.text() for one in found) if found else "no query: nothing to explain")
    sys.exit(0 if all(one.accepted for one in found) else 1)


def _stands(query: AlertDef | DerivedDef, catalog: Catalog) -> bool:
    """Is every stream that it reads still there at the end of the file?"""
    return all(
        source.stream in catalog.streams or source.stream in catalog.tables for source in query.query.sources
    )


def _listed(asked: dict[str, AlertDef | DerivedDef]) -> str:
    return ", ".join(asked) if asked else "none"
