"""`tamis kafka`: a single Kafka broker on this machine, without Docker."""

from __future__ import annotations

from pathlib import Path

import click

from tamis.cli._signals import stop_event
from tamis.errors import TamisError
from tamis.local.broker import EmbeddedKafka


@click.command(
    epilog="""\b
Example:
  tamis kafka --directory ./kafka --port 9092
"""
)
@click.option(
    "--directory",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory of its data, settings and logs; the next start continues with them.",
)
@click.option("--port", type=click.IntRange(1, 65535), help="Port on 127.0.0.1; by default a free one.")
@click.option("--heap", default="512m", show_default=True, help="Maximum heap of Java.")
def command(directory: Path, port: int | None, heap: str) -> None:
    """Run a single Kafka broker on this machine and print its address; Ctrl-C stops it."""
    stopping = stop_event()
    with EmbeddedKafka(directory, port=port, heap=heap) as broker:
        click.echo(broker.bootstrap)
        while not stopping.wait(0.5):
            if not broker.running:
                raise TamisError(f"Kafka ended; its log ends:\n  {broker.log_tail()}", where=str(directory))
