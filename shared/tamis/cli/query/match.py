"""`tamis match`: compare the predicates of a query and of a stream."""

from __future__ import annotations

import sys

import click

from tamis.cli.common.options import Choice
from tamis.cli.common.output import write, write_json
from tamis.cli.common.sql_file import statements_of
from tamis.errors import InputError, RefusedError
from tamis.expressions.nodes import Type
from tamis.predicates.matching import match
from tamis.predicates.predicate import Predicate
from tamis.query.condition import read_condition


@click.command(
    context_settings={"ignore_unknown_options": True},  # "-5 < a" is a predicate
    epilog="""\b
Examples:
  tamis match "temp > 20 OR rh > 80" "temp BETWEEN 25 AND 30"
  tamis match "a <= 2 OR a >= 4" "a IN (1, 5)" --json
  tamis match "a < b + 5" "a < b + 3 AND b > 0"
  tamis match "rh > 40 OR temp < 5" "rh > 60" --schema demo/first/alerts.sql
""",
)
@click.argument("stream_predicate")
@click.argument("query_predicate")
@click.option(
    "--schema",
    metavar="FILE.sql",
    help="File with CREATE STREAM statements for the types of columns; without it numbers are DOUBLE.",
)
@click.option(
    "--method",
    type=Choice(["exact", "hsr", "hcr"]),
    default="exact",
    show_default=True,
    help="The exact decision, or a heuristic of kuntschke-2006 that compares single boxes.",
)
@click.option("--json", "as_json", is_flag=True, help="Print only one JSON document.")
def command(
    stream_predicate: str, query_predicate: str, schema: str | None, method: str, as_json: bool
) -> None:
    """Decide whether a query's predicate implies a stream's, or relax the stream's predicate until it does.

    If the query's predicate implies the stream's, the stream has every tuple that the query needs. The exit
    code is 0 if so, 1 if not, and 2 if the input is wrong.
    """
    types = _types(schema) if schema is not None else None
    stream = _read(stream_predicate, types, "STREAM_PREDICATE")
    query = _read(query_predicate, types, "QUERY_PREDICATE")
    found = match(stream, query, method)
    relaxed = found.relaxed.sql()
    if as_json:
        write_json({"implied": found.implied, "relaxed": relaxed}, indented=False)
    elif found.implied:
        write("implied: the stream has every tuple that the query wants")
    else:
        write(f"not implied; relaxed:\n  {relaxed}")
    sys.exit(0 if found.implied else 1)


def _read(text: str, types: dict[str, Type] | None, argument: str) -> Predicate:
    condition = read_condition(text, types, argument)
    try:
        return Predicate.of(condition)
    except RefusedError as error:
        raise RefusedError(error.what, where=argument, hint=error.hint) from None


def _types(source: str) -> dict[str, Type]:
    """The types of all columns of the streams that a file declares."""
    catalog, _ = statements_of(source)
    types: dict[str, Type] = {}
    for stream in catalog.streams.values():
        for column in stream.columns:
            if types.setdefault(column.name, column.type) is not column.type:
                raise InputError(
                    f"'{column.name}' is {types[column.name]} in one stream and {column.type} in another",
                    where=source,
                    hint="give a file that has only the stream you mean",
                )
    return types
