"""`tamis omit`: bracket omission of a recording."""

from __future__ import annotations

from typing import Literal

import click

from tamis.cli.common.options import Choice
from tamis.cli.common.output import say
from tamis.offline.omit import Rule, retained_rows
from tamis.offline.wording import COMMAND
from tamis.recordings.files import Format, format_of, read_rows, write_rows


@click.command(
    epilog="""\b
Examples:
  tamis omit --interval 30s --sides above --value temp --key station demo/first/air.csv -o kept.csv
  tamis omit --interval 12 --time reading --value temperature --key mote_id --stats \\
    demo/data/suthaharan-single-hop.csv -o kept.parquet
  cat demo/first/surface.csv | tamis omit --interval 1m --value temp --key station --format csv - > kept.csv
"""
)
@click.argument("source", metavar="INPUT")
@click.option("-o", "--output", default="-", show_default=True, help="The file for the retained rows.")
@click.option(
    "--interval",
    required=True,
    metavar="L",
    help="The omission interval: 30s, 5m, or a number in the unit of the times.",
)
@click.option(
    "--sides",
    type=Choice(["both", "above", "below"]),
    default="both",
    show_default=True,
    help="above keeps maxima, for alarms on high values; below keeps minima.",
)
@click.option(
    "--time",
    "time_column",
    default="ts",
    show_default=True,
    help="Column of the event time, in ISO 8601 or as numbers.",
)
@click.option("--value", "value_column", default="v", show_default=True, help="Column of the value.")
@click.option("--key", "key_columns", multiple=True, help="Column of the key; several columns form one key.")
@click.option("--max-delay", metavar="D", help="Maximum delay of a decision, in the form of --interval.")
@click.option("--strict", is_flag=True, help="Ties as in cai-2021: equal values don't bracket each other.")
@click.option("--stats", is_flag=True, help="Print the number of retained rows to standard error.")
@click.option(
    "--format",
    "form",
    type=Choice(["csv", "ndjson", "parquet"]),
    help="Format of standard input and output, and of files without a known extension.",
)
def command(
    source: str,
    output: str,
    interval: str,
    sides: Literal["both", "above", "below"],
    time_column: str,
    value_column: str,
    key_columns: tuple[str, ...],
    max_delay: str | None,
    strict: bool,
    stats: bool,
    form: Format | None,
) -> None:
    """Keep only the rows of a recording that a threshold alert over windows up to the interval can need.

    For aggregates of windows, edges send partial aggregates in place of readings: `tamis explain --input`
    says how many.

    The rows are written unchanged, in the order of time. Standard output has the format of the input, unless
    --format is given.
    """
    output_form = format_of(output, form or format_of(source) if output == "-" else form)
    rows = read_rows(source, form)
    rule = Rule(
        interval=interval,
        sides=sides,
        time=time_column,
        value=value_column,
        key=key_columns,
        max_delay=max_delay,
        ties="strict" if strict else "fewest",
    )
    found = retained_rows(rows, rule, COMMAND)
    if found.warning is not None:
        say(found.warning)
    kept = found.numbers
    write_rows(rows.take(kept), output, output_form)
    if stats:
        share = 100 * len(kept) / max(1, len(rows))
        say(f"{len(rows)} rows, {len(kept)} retained ({share:.2f} %)")
