"""`tamis kafka`: a single Kafka broker on this machine, without Docker."""

from __future__ import annotations

from pathlib import Path

import click

from tamis.cli.common.output import write
from tamis.cli.common.signals import stop_event
from tamis.errors import TamisError
from tamis.local.broker import EmbeddedKafka
from tamis.local.fleet_logins import FleetLogins, grant


@click.command(
    epilog="""\b
Examples:
  tamis kafka --directory ./kafka --port 9092
  tamis kafka --directory ./kafka --port 9093 --secure
"""
)
@click.option(
    "--directory",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory of its data, settings and logs; the next start continues with them.",
)
@click.option("--port", type=click.IntRange(1, 65535), help="Port on 127.0.0.1; by default a free one.")
@click.option(
    "--secure",
    is_flag=True,
    help="With TLS, a password for each service, and ACLs with exactly its rights. Certificates and "
    "passwords are in `logins` of the directory, which only its owner can read.",
)
@click.option("--heap", default="512m", show_default=True, help="Maximum heap of Java.")
def command(directory: Path, port: int | None, secure: bool, heap: str) -> None:
    """Run a single Kafka broker on this machine and print its address; Ctrl-C stops it."""
    stopping = stop_event()
    logins = FleetLogins(directory / "logins", port) if secure else None
    security = logins.security if logins else None
    with EmbeddedKafka(directory, port=None if secure else port, heap=heap, security=security) as broker:
        if logins is None:
            write(broker.bootstrap)
        else:
            grant(broker)
            logins.write_environments(broker.bootstrap)
            example = logins.in_shell("tamis registry", "registry")
            write(f"{logins.bootstrap}\n{logins.description()}\nExample:\n  {example}")
        while not stopping.wait(0.5):
            if not broker.running:
                raise TamisError(f"Kafka ended; its log ends:\n  {broker.log_tail()}", where=str(directory))
