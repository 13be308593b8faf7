"""`tamis explain`: the proofs about each query of a file, before anything runs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Set
from dataclasses import replace
from typing import get_args

import click
import orjson

from tamis.cli._recordings import files_of, read_recordings, since_begin
from tamis.cli._sql_file import statements_of
from tamis.errors import InputError
from tamis.planning.explain import estimated, explain, grown
from tamis.planning.explanations.advice import advice
from tamis.planning.explanations.explanation import Explanation
from tamis.planning.explanations.measured import measured
from tamis.planning.explanations.text import refused_change, text
from tamis.planning.refused_changes import RefusedChange, refused_changes
from tamis.query.model import AlertDef, Catalog, DerivedDef, Explain, Statement
from tamis.query.names import normalized_name
from tamis.recordings.time_units import TimeUnit
from tamis.recordings.typed import Recording


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
    help="Run the example of an unbounded query, and show how its memory grows.",
)
@click.option("--verbose", is_flag=True, help="Also print the proofs, the compared values and the formulas.")
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="STREAM=FILE",
    help="A recording: the share of its tuples that edges drop is measured.",
)
@click.option(
    "--time-unit",
    "unit",
    type=click.Choice(get_args(TimeUnit)),
    help="The unit of times in recordings that are numbers. By default the time_unit of the stream, or us.",
)
@click.option("--json", "as_json", is_flag=True, help="Print only one JSON document.")
def command(
    source: str,
    query: str | None,
    run_witness: bool,
    verbose: bool,
    inputs: tuple[str, ...],
    unit: TimeUnit | None,
    as_json: bool,
) -> None:
    """Show which readings of each query can be omitted and how much memory it needs, or why it is refused.

    With --input, edges filter each recording for each query alone, and the share that they drop is shown.

    --witness shows that an unbounded query is unbounded: for more and more tuples of its example, it prints
    the number of states that any evaluator must distinguish, and the number of entries that Tamis would keep.

    A change of a stream or function is shown if a query would no longer be accepted with it.

    The exit code is 0 if every query is accepted, 1 if a query or a change is refused, and 2 if the file is
    wrong.
    """
    catalog, statements = statements_of(source)
    asked: dict[str, AlertDef | DerivedDef] = {}
    for statement in statements:
        if isinstance(statement, AlertDef | DerivedDef):
            # A later statement may have changed a function or stream that it reads.
            asked[statement.name] = _at_the_end(statement, catalog)
        elif isinstance(statement, Explain) and isinstance(statement.target, AlertDef):
            asked[statement.target.name] = statement.target
    query = query if query is None else normalized_name(query, asked)
    if query is not None and query not in asked:
        raise InputError(f"there is no query {query!r}", where=source, hint="it has " + _listed(asked))
    chosen = [one for name, one in asked.items() if query in (None, name) and _stands(one, catalog)]
    files = files_of(inputs, source, catalog)
    recordings = read_recordings(catalog, chosen, files, None, unit, complete=False) if files else {}
    found = [_explained(one, catalog, recordings) for one in chosen]
    changes = _changes(statements, {one.name for one in chosen})
    if run_witness:
        found = [grown(catalog, *pair) for pair in zip(chosen, found, strict=True)]
    if as_json:
        document = {"queries": [one.document() for one in found]}
        if changes:
            document["changes"] = [one.document() for one in changes]
        click.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2))
    else:
        click.echo(
            "\n\n".join([*map(refused_change, changes), *(text(one, verbose=verbose) for one in found)])
            if found
            else "no query: nothing to explain"
        )
    sys.exit(0 if all(one.accepted for one in found) and not changes else 1)


def _explained(
    query: AlertDef | DerivedDef, catalog: Catalog, recordings: Mapping[str, Recording]
) -> Explanation:
    """The explanation with estimates, advice, and what edges drop of the recordings."""
    found = estimated(catalog, explain(catalog, query), {})
    if not found.accepted or not any(source.key or source.interval for source in found.streams):
        changes = {}
    else:
        changes = advice(query, catalog)
    dropped = {}
    if isinstance(query, AlertDef) and found.accepted and recordings:
        dropped = measured(query, catalog, since_begin(query, recordings))
    sources = (
        replace(
            source,
            advice=changes.get(source.alias, ()),
            measured=dropped.get(source.stream if source.watched is None else source.watched.name),
        )
        for source in found.streams
    )
    return replace(found, streams=tuple(sources))


def _changes(statements: Iterable[Statement], queries: Set[str]) -> list[RefusedChange]:
    """The changes that are refused because of these queries."""
    found = []
    for change in refused_changes(statements):
        named = tuple(one for one in change.queries if one.name in queries)
        if named:
            found.append(replace(change, queries=named))
    return found


def _at_the_end(query: AlertDef | DerivedDef, catalog: Catalog) -> AlertDef | DerivedDef:
    """The query as it is at the end of the file, or as it was if it has been dropped."""
    queries: Mapping[str, AlertDef | DerivedDef] = (
        catalog.alerts if isinstance(query, AlertDef) else catalog.derived
    )
    return queries.get(query.name, query)


def _stands(query: AlertDef | DerivedDef, catalog: Catalog) -> bool:
    """True if every stream that the query reads still exists at the end of the file."""
    bases = {stream.name: stream.shown_name for stream in query.query.watched}
    read = (bases.get(source.stream, source.stream) for source in query.query.sources)
    return all(name in catalog.streams or name in catalog.tables for name in read)


def _listed(asked: dict[str, AlertDef | DerivedDef]) -> str:
    return ", ".join(asked) if asked else "none"
