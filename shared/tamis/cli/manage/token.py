"""`tamis token`: make a token for the HTTP of the registry and of edges."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import click
import yaml

from tamis.cli.common.options import Choice
from tamis.cli.common.output import write, write_json
from tamis.declarations.units import parse_duration
from tamis.errors import InputError
from tamis.settings.token_file import token_entry
from tamis.web.tokens import ROLES, Role, Token, digest, new_token


@click.command(
    epilog="""\b
Examples:
  tamis token --name grafana
  tamis token --name ci --role writer --expires 90d
  tamis token --name gateway-7 --role writer --streams air,surface
"""
)
@click.option("--name", default="default", show_default=True, help="Name of the token's user, for logs.")
@click.option(
    "--role",
    type=Choice(ROLES),
    default="reader",
    show_default=True,
    help="A reader looks and explains; a writer also changes definitions, or sends readings to edges.",
)
@click.option(
    "--streams", help="For edges: the only streams that it may send readings of, with commas between."
)
@click.option(
    "--readings", is_flag=True, help="It may also see readings at the registry: alarms, dead letters."
)
@click.option("--operate", is_flag=True, help="A reader may also silence alerts and acknowledge episodes.")
@click.option("--expires", metavar="DURATION", help="The token is valid for this time, such as 90d.")
@click.option("--json", "as_json", is_flag=True, help="Print token and entry as JSON.")
def command(
    name: str,
    role: Role,
    streams: str | None,
    readings: bool,
    operate: bool,
    expires: str | None,
    as_json: bool,
) -> None:
    """Make a token: print it once, and the entry with its digest for the file of tokens.

    The services keep only digests, so that the token can't be shown again.
    """
    only = None if streams is None else frozenset(filter(None, map(str.strip, streams.split(","))))
    if only is not None and not only:
        raise InputError(
            "no stream is named, so the token could send nothing",
            where="--streams",
            hint="name streams, such as --streams air,surface, or leave the option out for all streams",
        )
    text = new_token()
    token = Token(
        name,
        digest(text),
        role,
        only,
        None if expires is None else _after(expires),
        readings,
        operate,
    )
    if token.streams is not None and role != "writer":
        raise InputError("only a writer sends readings", where="--streams", hint="add --role writer")
    entry = token_entry(token)
    if as_json:
        write_json({"token": text, "entry": entry})
        return
    lines = yaml.safe_dump({"tokens": [entry]}, sort_keys=False, default_flow_style=None, width=200)
    shown = f"The token, which is shown only now:\n{text}\n\nIts entry for the file of tokens:\n{lines}"
    write(shown.rstrip("\n"))


def _after(duration: str) -> datetime:
    ticks = parse_duration(duration)
    if ticks <= 0:
        raise InputError(f"'{duration}' is over already", where="--expires", hint="give a time, such as 90d")
    return (datetime.now(UTC) + timedelta(microseconds=ticks)).replace(microsecond=0)
