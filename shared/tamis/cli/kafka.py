"""`tamis kafka`: a Kafka broker on this machine, without Docker."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from types import FrameType

import click

from tamis.errors import TamisError
from tamis.fleet.broker import EmbeddedKafka


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
    help="Where it keeps its data, settings and logs, to go on with next time.",
)
@click.option("--port", type=click.IntRange(1, 65535), help="Its port on 127.0.0.1; a free one without it.")
@click.option("--heap", default="512m", show_default=True, help="Java's largest heap.")
def command(directory: Path, port: int | None, heap: str) -> None:
    """Run one Kafka broker on this machine; prints its address, Ctrl-C stops it cleanly."""
    stopping = threading.Event()

    def stop(signum: int, frame: FrameType | None) -> None:
        stopping.set()

    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, stop)
    with EmbeddedKafka(directory, port=port, heap=heap) as broker:
        click.echo(broker.bootstrap)
        while not stopping.wait(0.5):
            if not broker.running:
                raise TamisError(
                    f"Kafka ended by itself; its last words:\n  {broker.log_tail()}", where=str(directory)
                )
