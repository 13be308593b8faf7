"""`tamis explain`: the proofs about each query of a file, before anything runs."""

from __future__ import annotations

import sys
from typing import NoReturn, get_args

import click

from tamis.cli.common.options import Choice
from tamis.cli.common.output import write, write_json
from tamis.cli.common.recordings import as_arrived_option, files_of, read_recordings
from tamis.cli.common.sql_file import statements_of
from tamis.errors import InputError, SqlErrors
from tamis.offline.explain import Explained, Plans, asked_queries, explained, planned
from tamis.recordings.times import TimeUnit

FLEET_HINT = (
    "A file is explained by its own statements alone. If the fleet has these streams, ask it: "
    "tamis sql -c 'EXPLAIN CREATE ALERT …'"
)


@click.command(
    epilog="""\b
Examples:
  tamis explain demo/first/alerts.sql
  tamis explain demo/first/alerts.sql --query condensation --json
  tamis explain demo/first/alerts.sql --plan
"""
)
@click.argument("source", metavar="FILE.sql")
@click.option("--query", metavar="NAME", help="Only the query of this name.")
@click.option(
    "--plan",
    is_flag=True,
    help="Show the physical plan instead: the operators of edges and joiner, what they keep, and bounds.",
)
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
    type=Choice(get_args(TimeUnit)),
    help="The unit of times in recordings that are numbers. By default the time_unit of the stream, or us.",
)
@as_arrived_option
@click.option("--json", "as_json", is_flag=True, help="Print only one JSON document.")
def command(
    source: str,
    query: str | None,
    plan: bool,
    run_witness: bool,
    verbose: bool,
    inputs: tuple[str, ...],
    unit: TimeUnit | None,
    as_arrived: bool,
    as_json: bool,
) -> None:
    """Show which readings of each query can be omitted and how much memory it needs, or why it is refused.

    With --input, edges filter each recording for each query alone, and the share that they drop is shown.

    --witness shows that an unbounded query is unbounded: for more and more tuples of its example, it prints
    the number of states that any evaluator must distinguish, and the number of entries that Tamis would keep.

    --plan shows a tree of operators for each query, as EXPLAIN of a database does: where each runs, what it
    does, what it keeps between tuples, and its bound. The plan is that of a fleet with the whole file.

    A change of a stream or function is shown if a query would no longer be accepted with it.

    The exit code is 0 if every query is accepted, 1 if a query or a change is refused, and 2 if the file is
    wrong.
    """
    try:
        catalog, statements = statements_of(source)
    except SqlErrors as error:
        if any("there is no stream" in str(one) for one in error.errors):
            # A text for a fleet often reads streams that the fleet has.
            raise InputError(f"{error.shown}\n{FLEET_HINT}") from error
        raise
    chosen = asked_queries(catalog, statements, query, source)
    if plan:
        others = {"--input": inputs, "--witness": run_witness, "--verbose": verbose}
        if given := [name for name, value in others.items() if value]:
            raise InputError("a plan has nothing of these", where=" ".join(given), hint="leave out --plan")
        plans = planned(chosen, catalog)
        _finish(plans, None if as_json else plans.text())
    files = files_of(inputs, source, catalog)
    recordings = (
        read_recordings(catalog, chosen, files, None, unit, complete=False, as_arrived=as_arrived)
        if files
        else {}
    )
    found = explained(chosen, catalog, statements, recordings, witness=run_witness)
    _finish(found, None if as_json else found.text(verbose=verbose))


def _finish(found: Explained | Plans, text: str | None) -> NoReturn:
    """Print the text, or without one the JSON document, and end with the exit code."""
    if text is None:
        write_json(found.document())
    else:
        write(text)
    sys.exit(0 if found.accepted else 1)
