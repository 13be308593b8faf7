"""`tamis sql`: an interactive shell for statements, and for SELECT over newest readings."""

from __future__ import annotations

import sys

import click

from tamis.cli.common.options import registry_option
from tamis.cli.common.output import write_json
from tamis.cli.common.sql_file import STANDARD_INPUT, file_name, read_sql
from tamis.errors import InputError
from tamis.web.registry_client import RegistryClient


@click.command(
    epilog="""\b
Examples:
  tamis sql
  tamis sql -c 'SELECT station, ts, temp FROM air WHERE temp > 30 LIMIT 10'
  tamis sql --json < statements.sql
"""
)
@click.option("-c", "--command", "sql", metavar="SQL", help="Run these statements, and end.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array with a document a statement.")
@registry_option
def command(sql: str | None, as_json: bool, registry: RegistryClient) -> None:
    """Run SQL statements at the registry: typed in a terminal, from -c, or from standard input.

    In a terminal, a statement ends with a semicolon. Tab completes keywords and names, and \\? shows help.

    SELECT … FROM stream [WHERE condition] [LIMIT n] shows the newest readings in the stream's topics. All
    other statements are those of `tamis apply`. Each statement is applied by itself; one that fails ends the
    text.

    The exit code is 0 if all statements have run, 1 if a query is refused (its memory isn't proven to be
    bounded, or a condition can't be executed), and 2 if the input is wrong.
    """
    from tamis.cli.shell.statements import document, results, show

    if sql is None and sys.stdin.isatty():
        from tamis.cli.shell.prompt import interact

        if as_json or not sys.stdout.isatty():
            raise InputError(
                "no statements", where="tamis sql", hint="give them with -c, or on standard input"
            )
        interact(registry)
        return
    file = None if sql is not None else file_name(STANDARD_INPUT)
    found = results(registry, read_sql(STANDARD_INPUT) if sql is None else sql, file)
    if as_json:
        write_json([document(one) for one in found])
        return
    for one in found:
        show(one)
